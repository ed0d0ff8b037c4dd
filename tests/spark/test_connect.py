"""Spark Connect: `make test-connect` runs all tests of this folder over it, `make test-all` those marked so, `make test` three."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import upsert_sink
from tests.conftest import Broker, options
from tests.spark.batches import refused
from tests.spark.conftest import CONNECT, run_to_end
from tests.spark.test_sink_stream import put, stream

ROOT = Path(__file__).parents[2]


THREE = [
    "tests/spark/test_batch_read.py::test_snapshot_changelog_and_append",
    "tests/spark/test_connect.py::test_exactly_once_is_refused",
    "tests/spark/test_sink_stream.py::test_append",
]


@pytest.mark.classic("starts a client that runs the others")
@pytest.mark.parametrize(
    "tests",
    [
        THREE,
        pytest.param(["-m", "connect", "tests/spark"], marks=pytest.mark.long("some twenty tests")),
    ],
    ids=["three", "all that are marked"],
)
def test_the_chosen_tests_pass_over_spark_connect(
    connect_server: str, broker: Broker, tmp_path: Path, tests: list[str]
) -> None:
    """Reading, writing, streaming, SQL, update mode, whole rows, and what is refused there."""
    # Other runs in this folder, beside it, have failed tests of their own.
    own_cache = f"cache_dir={tmp_path}"
    chosen = [sys.executable, "-m", "pytest", "-o", own_cache, *tests]
    environment = {
        **os.environ,
        "SPARK_REMOTE": connect_server,
        "KAFKA_BOOTSTRAP_SERVERS": broker.servers,
    }

    done = subprocess.run(
        chosen, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=1200
    )

    assert done.returncode == 0, done.stdout[-5000:]
    assert "skipped" not in done.stdout.splitlines()[-1]


@pytest.mark.connect
@pytest.mark.skipif(CONNECT is None, reason="says what is refused over Spark Connect")
def test_exactly_once_is_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Its receipts need the id of the query, which Spark Connect tells nobody; nothing is written."""
    topic, files = broker.topic(), tmp_path / "in"
    put(files, 0, (1, "a", "+I"))
    sink = upsert_sink(
        options(broker, topic),
        **{
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": "sink",
            "sink.parallelism": 1,
        },
    )
    writer = stream(spark, files).writeStream.foreachBatch(sink).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    text = refused(lambda: run_to_end(writer.start()))

    assert "OptionError: 'sink.delivery-guarantee' = 'exactly-once' does not work over" in text
    assert broker.messages(topic) == []


@pytest.mark.connect
@pytest.mark.long("a stream of two batches with a function of a user")
@pytest.mark.skipif(
    CONNECT is None, reason="says how a function runs on the server of Spark Connect"
)
def test_a_function_for_batches_has_a_session_of_its_own(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Since Spark 4.3: what it takes from the DataFrame can be joined with it, what it takes from the program cannot."""
    topic, files = broker.topic(), tmp_path / "in"
    put(files, 0, (1, "a", "+I"), (2, "b", "+I"))
    sink, known, other = upsert_sink(options(broker, topic)), [(1,), (3,)], spark.range(4)

    def write_known(rows: DataFrame, number: int) -> None:
        sink(
            rows.join(rows.sparkSession.createDataFrame(known, "id BIGINT"), "id", "left_semi"),
            number,
        )

    def write_other(rows: DataFrame, number: int) -> None:
        sink(rows.join(other, "id"), number)

    def run(function: Callable[[DataFrame, int], None], name: str) -> None:
        writer = stream(spark, files).writeStream.foreachBatch(function).trigger(availableNow=True)
        run_to_end(writer.option("checkpointLocation", str(tmp_path / name)).start())

    run(write_known, "known")
    assert [message.key for message in broker.messages(topic)] == [b'{"id":1}']
    if spark.version >= "4.3":
        assert "SESSION_NOT_SAME" in refused(lambda: run(write_other, "other"))
