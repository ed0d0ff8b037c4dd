"""Reading, compared with Flink: all changes of a topic, discarded; and whole rows before and after each change."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from bench import Bench
from data import SCHEMA
from pyspark.sql import DataFrame
from stages import noop

from pyspark_upsert_kafka import normalize_changelog
from tools.flink import flink

_COLUMNS = (
    "id BIGINT NOT NULL, name STRING, region STRING, score DOUBLE, clicks INT, active BOOLEAN, "
    "updated {}, PRIMARY KEY (id) NOT ENFORCED"
)
_UPDATED = {"json": "TIMESTAMP_LTZ(3)", "avro": "TIMESTAMP(3)"}
"""What Flink has for Spark's TIMESTAMP in each format."""

_LIMIT = 1_000_000
"""Changes of a micro-batch: Spark saves its state with each, so about as often as Flink does."""

_STATE = {
    "state.backend.type": "rocksdb",
    "execution.checkpointing.interval": "5 s",
    "execution.checkpointing.incremental": "true",
}
"""Flink keeps its state as Spark does, and saves it about as often."""

Job = Callable[[], float]


def beside_reading(bench: Bench, format_: str, tasks: int) -> None:
    """Every change of a topic, read into nothing."""
    topic = bench.filled(bench.count, bench.count, format_, deletes=True)
    frame = _changes(bench, topic, format_)
    columns = ", ".join(column.split()[0] for column in SCHEMA.split(", "))
    query = f"INSERT INTO nothing SELECT {columns} FROM changes"
    jobs = (lambda: _timed(frame), lambda: _flinks(bench, topic, format_, query, tasks))
    _show(bench, f"{format_}: changes into nothing", *jobs)
    bench.drop(topic)


def beside_normalizing(bench: Bench, keys: int, tasks: int) -> None:
    """The rows before and after each change."""
    topic = bench.filled(bench.count, keys)
    # A sum takes back what it had of a row, so it needs the row before each change.
    query = "INSERT INTO sums SELECT region, COUNT(*), SUM(clicks) FROM changes GROUP BY region"
    jobs = (
        lambda: _normalized(bench, topic),
        lambda: _flinks(bench, topic, "json", query, tasks),
    )
    _show(bench, f"json: rows before and after, {keys:,} keys", *jobs)
    bench.drop(topic)


def _show(bench: Bench, name: str, ours: Job, flinks: Job) -> None:
    ours()  # warms up; Flink's job does so itself
    seconds = [(ours(), flinks()) for _ in range(bench.runs)]
    ours_s, flinks_s = (statistics.median(each) for each in zip(*seconds, strict=True))
    print(
        f"{name:<46}{bench.count / ours_s:>12,.0f}{bench.count / flinks_s:>12,.0f}{flinks_s / ours_s:>8.2f}",
        flush=True,
    )


def _changes(bench: Bench, topic: str, format_: str) -> DataFrame:
    options = bench.options(topic, format_) | {"read.mode": "changelog"}
    schema = f"{SCHEMA}, _change_type STRING"
    return bench.spark.read.format("upsert-kafka").schema(schema).options(**options).load()


def _timed(frame: DataFrame) -> float:
    begin = time.monotonic()
    noop(frame)
    return time.monotonic() - begin


def _normalized(bench: Bench, topic: str) -> float:
    """Micro-batches of a million changes; the query's start is counted."""
    begin = time.monotonic()
    reader = bench.spark.readStream.format("upsert-kafka").options(**bench.options(topic))
    reader = reader.schema(f"{SCHEMA}, _partition INT, _offset BIGINT, _change_type STRING")
    rows = normalize_changelog(reader.option("maxOffsetsPerTrigger", _LIMIT).load(), ["id"])
    writer = rows.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", tempfile.mkdtemp(dir=bench.folder)).start()
    query.awaitTermination()
    read = sum(batch["numInputRows"] for batch in query.recentProgress)
    if read != bench.count:
        sys.exit(f"The stream read {read:,} rows instead of {bench.count:,}.")
    return time.monotonic() - begin


def _flinks(bench: Bench, topic: str, format_: str, query: str, tasks: int) -> float:
    """The second of two equal jobs of a Flink; each reads up to the end that the topic has when it starts."""
    source = {
        "connector": "upsert-kafka",
        "topic": topic,
        "properties.bootstrap.servers": bench.servers,
        "key.format": format_,
        "value.format": format_,
        "scan.bounded.mode": "latest-offset",
    }
    if format_ == "json":
        source["value.json.timestamp-format.standard"] = "SQL"
    columns, nothing = _COLUMNS.format(_UPDATED[format_]), {"connector": "blackhole"}
    sums = "region STRING, rows_ BIGINT, clicks INT, PRIMARY KEY (region) NOT ENFORCED"
    statements = [
        flink.table("changes", columns, source),
        flink.table("nothing", columns, nothing),
        flink.table("sums", sums, nothing),
    ]
    settings = {**_STATE, "execution.checkpointing.dir": bench.folder.as_uri()}
    _, seconds = flink.run([*statements, query, query], tasks, settings)
    return seconds
