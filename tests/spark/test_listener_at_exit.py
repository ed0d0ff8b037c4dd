"""A program that listens to a query and ends: Spark's JVM lives a little longer than its Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.spark.streams import message

pytestmark = [
    pytest.mark.classic("over Spark Connect nobody calls the listener from outside"),
    pytest.mark.long("starts programs with a JVM"),
]

PROGRAM = """
import sys
from pyspark_upsert_kafka import ProgressListener
from pyspark.sql import SparkSession

servers, topic, folder, last = sys.argv[1:]
settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
spark.streams.addListener(ProgressListener(print_to=sys.stdout))
table = spark.readStream.format("upsert-kafka").schema("id BIGINT").option("topic", topic)
table = table.options(**{"properties.bootstrap.servers": servers, "value.format": "json", "read.mode": "append"})
writer = table.load().writeStream.option("checkpointLocation", folder)
query = writer.foreachBatch(lambda rows, number: rows.collect()).start()
query.processAllAvailable()
exec(last)
"""


INTERRUPTED = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
try:
    threading.Timer(2, os.kill, [os.getpid(), signal.SIGINT]).start()
    query.awaitTermination()
except KeyboardInterrupt:
    pass
"""


@pytest.mark.parametrize(
    "last", ["query.stop()", "pass", "query.stop(); spark.stop()", INTERRUPTED]
)
def test_a_program_that_ends_after_its_query(broker: Broker, tmp_path: Path, last: str) -> None:
    """The lines of all batches are printed, and the JVM does not call a listener whose Python has gone."""
    topic = broker.topic()
    broker.produce(topic, message(1))
    given = [broker.servers, topic, str(tmp_path / "checkpoint"), last]
    program = [sys.executable, "-c", PROGRAM, *given]
    # Until its end of the pipe is closed, the JVM may still print.
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)

    assert done.returncode == 0, done.stderr
    assert "CallbackClient" not in done.stderr
    assert "StackOverflowError" not in done.stderr
    if "stop()" in last:
        assert ", batch 0 (" in done.stdout


OVER_CONNECT = """
import sys
from pyspark_upsert_kafka import ProgressListener
from pyspark.sql import SparkSession

server, folder, last = sys.argv[1:]
spark = SparkSession.builder.remote(server).getOrCreate()
spark.streams.addListener(ProgressListener(print_to=sys.stdout))
print("listens", flush=True)
if last != "before a query":
    rows = spark.readStream.format("rate").load()
    query = rows.writeStream.format("noop").option("checkpointLocation", folder).start()
if last != "the program is done":
    raise ValueError("a mistake of the program")
"""


@pytest.mark.parametrize("last", ["before a query", "while a query runs", "the program is done"])
def test_a_client_of_spark_connect_ends(connect_server: str, tmp_path: Path, last: str) -> None:
    """A program that has not removed its listener ends by itself, also with an exception, and shows that."""
    program = [
        sys.executable,
        "-c",
        OVER_CONNECT,
        connect_server,
        str(tmp_path / "checkpoint"),
        last,
    ]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)

    assert "listens" in done.stdout
    assert "UserWarning" not in done.stderr, "PySpark could not remove the listener any more"
    if last == "the program is done":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1, done.stderr
        assert "ValueError: a mistake of the program" in done.stderr
