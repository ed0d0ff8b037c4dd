"""`merge_sink` over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lakehouse.engines import Lake

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pyspark_upsert_kafka import merge_sink

files, table, checkpoint = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
stream = spark.readStream.schema(
    "id BIGINT, name STRING, _partition INT, _offset BIGINT, _change_type STRING"
).option("maxFilesPerTrigger", 1).json(files)
sink = merge_sink(table, primary_key="id", deletes="soft", unavailable="?")
writer = stream.writeStream.foreachBatch(sink).trigger(availableNow=True)
query = writer.option("checkpointLocation", checkpoint).start()
assert query.awaitTermination(600)
"""


@pytest.mark.timeout(900)
def test_a_stream_of_spark_connect(lake: Lake, connect_server: str, tmp_path: Path) -> None:
    """The function runs on the server, in each micro-batch: the table is made, merged into, and rows stay."""
    table = lake.table() if lake.engine.name == "iceberg" else str(tmp_path / "users")
    files = tmp_path / "in"
    files.mkdir()
    batches = [
        [(1, "a", "upsert"), (2, "b", "upsert")],
        [(1, "?", "upsert"), (2, None, "delete"), (3, "c", "upsert")],
    ]
    for number, batch in enumerate(batches):
        rows = [
            {"id": id_, "name": name, "_partition": 0, "_offset": 10 * number + n, "_change_type": kind}
            for n, (id_, name, kind) in enumerate(batch)
        ]  # fmt: skip
        file = files / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (number, number))  # Spark takes the oldest first

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(files), table, str(tmp_path / "checkpoint")],
        cwd=ROOT, env={**os.environ, "SPARK_REMOTE": connect_server},
        check=False, capture_output=True, text=True, timeout=800,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-5000:]
    assert lake.rows(table) == [(1, "a", False), (2, "b", True), (3, "c", False)]
