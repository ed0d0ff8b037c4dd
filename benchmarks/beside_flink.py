"""`make bench-flink`: compares this sink and source with Flink's upsert-kafka, on the same machine, in turn.

For writing, both sides generate their rows themselves, on two tasks. A rate is computed from the time of a job in a running Spark or
Flink, after a warm-up job of the same kind. With a buffer, the messages in the topic are counted for a stream in which eight of ten
changes are of a hundred keys.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import Bench
from confluent_kafka import Consumer, TopicPartition
from flink_reads import beside_normalizing, beside_reading
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from sides import ARROW, ROCKSDB
from topics import PARTITIONS, drop_topic, new_topic

from pyspark_upsert_kafka import LocalKafka
from tools.flink import flink

TASKS = 2
TUNED = {"linger.ms": "20", "batch.size": "1000000"}
BUFFER = {"sink.buffer-flush.max-rows": "10000", "sink.buffer-flush.interval": "10s"}

COLUMNS = (
    "id BIGINT NOT NULL, name STRING, region STRING, score DOUBLE, clicks INT, active BOOLEAN, "
    "updated TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED"
)
VALUES = {
    "name": "CONCAT('user ', CAST(MOD(n, 1000) AS STRING))",
    "region": "CONCAT('region-', CAST(MOD(n, 10) AS STRING))",
    "score": "n * CAST(0.37 AS DOUBLE)",
    "clicks": "CAST(MOD(n, 100) AS INT)",
    "active": "MOD(n, 2) = 0",
}
"""Columns in the SQL of both, from a number ``n``; the key and the time are spelt differently."""

ALL_KEYS = "n"
HOT_KEYS = "CASE WHEN MOD(n, 10) < 8 THEN MOD(n * 7919, 100) ELSE MOD(n * 7919, 100000) END"

_PARTS = ["read", "normalize", "write"]

Job = Callable[[str], float]
"""Writes to a topic; returns the seconds that it took."""


def main() -> None:
    """Runs the comparison and prints it."""
    arguments = _arguments()
    spark = _session()
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers, count, runs = kafka.bootstrap_servers, arguments.rows, arguments.runs
        bench = Bench(spark, servers, "", count, runs, Path(folder))
        print(
            f"{count:,} rows of seven columns, {PARTITIONS} partitions, {TASKS} tasks, medians of "
            f"{runs} alternating runs\n{'rows per second':<46}{'ours':>12}{'Flink':>12}{'ratio':>8}",
            flush=True,
        )
        if "read" in arguments.parts:
            for format_ in arguments.formats:
                beside_reading(bench, format_, TASKS)
        if "normalize" in arguments.parts:
            beside_normalizing(bench, arguments.keys, TASKS)
        if "write" in arguments.parts:
            _beside_writes(spark, servers, count, runs, arguments.formats)
            _saved(spark, servers, count)
    spark.stop()


def _beside_writes(
    spark: SparkSession, servers: str, count: int, runs: int, formats: Sequence[str]
) -> None:
    for format_ in formats:
        for name, tuning in (("", {}), (", Flink's producer tuned", TUNED)):
            given = {"value.format": format_}
            ours = _ours(spark, servers, count, ALL_KEYS, given)
            theirs = _flinks(servers, count, ALL_KEYS, {**given, **_properties(tuning)})
            ours_s, theirs_s = _medians(servers, runs, ours, theirs)
            print(
                f"{format_ + name:<46}{count / ours_s:>12,.0f}{count / theirs_s:>12,.0f}"
                f"{theirs_s / ours_s:>8.2f}",
                flush=True,
            )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each side")
    parser.add_argument("--formats", nargs="*", default=["json", "avro"])
    parser.add_argument("--keys", type=int, default=50_000, help="keys of the table to normalize")
    parser.add_argument("--parts", nargs="+", default=_PARTS, choices=_PARTS)
    return parser.parse_args()


def _session() -> SparkSession:
    builder = SparkSession.builder.master(f"local[{TASKS}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    builder = builder.config("spark.sql.shuffle.partitions", str(TASKS))
    builder = builder.config(map=ARROW)
    spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _medians(servers: str, runs: int, *jobs: Job) -> list[float]:
    """Seconds of each job, in turn; the first run of each warms up."""
    seconds: list[list[float]] = [[] for _ in jobs]
    for _ in range(runs + 1):
        for job, taken in zip(jobs, seconds, strict=True):
            topic = new_topic(servers)
            taken.append(job(topic))
            drop_topic(servers, topic)
    return [statistics.median(taken[1:]) for taken in seconds]


def _saved(spark: SparkSession, servers: str, count: int) -> None:
    """What the buffer saves."""
    shown = ", ".join(f"{name.split('.')[-1]} {value}" for name, value in BUFFER.items())
    print(f"\n{f'of {count:,} changes, 8 of 10 of 100 keys; {shown}':<72}{'messages':>12}{'MB':>9}")
    for name, buffer in (("without a buffer", {}), ("with it", BUFFER)):
        given = {"value.format": "json", **buffer}
        jobs = {
            "ours": _ours(spark, servers, count, HOT_KEYS, given),
            "Flink": _flinks(servers, count, HOT_KEYS, given),
        }
        for side, job in jobs.items():
            topic = new_topic(servers)
            job(topic)
            messages, size = _arrived(servers, topic)
            print(f"{f'{side}, {name}':<72}{messages:>12,}{size / 1e6:>9.1f}", flush=True)
            drop_topic(servers, topic)


def _ours(spark: SparkSession, servers: str, count: int, key: str, given: Mapping[str, str]) -> Job:
    rows = spark.range(0, count, 1, TASKS).toDF("n")
    columns = [f.expr(sql).alias(name) for name, sql in VALUES.items()]
    updated = f.timestamp_millis(1_767_225_600_000 + f.col("n")).alias("updated")
    frame = rows.select(f.expr(key).alias("id"), *columns, updated)

    def job(topic: str) -> float:
        begin = time.monotonic()
        _save(frame, {**_table(servers, topic, given), "primary-key": "id"})
        return time.monotonic() - begin

    return job


def _save(frame: DataFrame, options: Mapping[str, str]) -> None:
    frame.write.format("upsert-kafka").mode("append").options(**options).save()


def _flinks(servers: str, count: int, key: str, given: Mapping[str, str]) -> Job:
    updated = "CAST(TO_TIMESTAMP_LTZ(1767225600000 + n, 3) AS TIMESTAMP(3))"
    made = ", ".join([key, *VALUES.values(), updated])
    numbers = {
        # By default it makes 10,000 rows a second.
        "connector": "datagen", "rows-per-second": "1000000000", "fields.n.kind": "sequence",
        "fields.n.start": "0", "fields.n.end": str(count - 1),
    }  # fmt: skip

    def job(topic: str) -> float:
        warm_up = new_topic(servers)
        statements = [flink.table("numbers", "n BIGINT", numbers)]
        for target in (warm_up, topic):
            options = {"connector": "upsert-kafka", **_table(servers, target, given)}
            statements += [
                flink.table(target, COLUMNS, options),
                f"INSERT INTO `{target}` SELECT {made} FROM numbers",
            ]
        *_, seconds = flink.run(statements, parallelism=TASKS)
        drop_topic(servers, warm_up)
        return seconds

    return job


def _table(servers: str, topic: str, given: Mapping[str, str]) -> dict[str, str]:
    return {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "key.format": given["value.format"],
        **given,
    }


def _properties(tuning: Mapping[str, str]) -> dict[str, str]:
    return {f"properties.{name}": value for name, value in tuning.items()}


def _arrived(servers: str, topic: str) -> tuple[int, int]:
    """How many messages are in a topic, and the bytes of their keys and values."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench", "log_level": 3})
    partitions = [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(each)[1] for each in partitions)
    consumer.assign(partitions)
    count = size = 0
    while count < left:
        for message in consumer.consume(5_000, 10):
            count += 1
            size += len(message.key() or b"") + len(message.value() or b"")
    consumer.close()
    return count, size


if __name__ == "__main__":
    sys.exit(main())
