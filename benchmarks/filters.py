"""What filters save: `make bench-filters`. One key of a table, and the last minute of a day of messages, each read with Spark's setting off and on."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Producer
from data import SCHEMA, rows
from pyspark.sql import SparkSession
from topics import drop_topic, new_topic

from pyspark_upsert_kafka import LocalKafka

SETTING = "spark.sql.python.filterPushdown.enabled"
DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class Reads:
    """A query over a topic, as the options and the filter of a batch read.

    Args:
        about: What it is.
        schema: Its columns.
        options: Its options.
        where: Its filter.
    """

    about: str
    schema: str
    options: dict[str, str]
    where: str


def main() -> int:
    """Fills both topics and prints how long each query takes with the setting off and on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500_000, help="of each topic")
    parser.add_argument("--keys", type=int, default=125_000, help="of the table")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3, help="runs of each side, in turn")
    given = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with LocalKafka() as kafka:
        servers = kafka.bootstrap_servers
        table, day = (new_topic(servers, given.partitions) for _ in range(2))
        _fill_table(spark, servers, table, given.messages, given.keys)
        begin_ms = _fill_day(servers, day, given.messages, given.partitions)
        print(
            f"{given.messages:,} messages in {given.partitions} partitions, {given.keys:,} keys; "
            f"median (range) of {given.runs} runs in turn"
        )
        for reads in (_one_key(servers, table), _last_minute(servers, day, begin_ms)):
            _measure(spark, reads, given.runs)
        for topic in (table, day):
            drop_topic(servers, topic)
    spark.stop()
    return 0


def _options(servers: str, topic: str) -> dict[str, str]:
    return {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "value.format": "json",
        "scan.filter-pushdown": "one-filter-per-load",
    }


def _one_key(servers: str, topic: str) -> Reads:
    keyed = {"primary-key": "id", "key.format": "json", "scan.key-partitioner": "murmur2"}
    return Reads("one key of a table", SCHEMA, _options(servers, topic) | keyed, "id = 4711")


def _last_minute(servers: str, topic: str, begin_ms: int) -> Reads:
    since_ms = begin_ms + DAY_MS - 60_000
    options = _options(servers, topic) | {"read.mode": "append"}
    where = f"_timestamp >= timestamp_millis({since_ms})"
    return Reads("last minute of a day", "id BIGINT, _timestamp TIMESTAMP", options, where)


def _fill_table(spark: SparkSession, servers: str, topic: str, count: int, keys: int) -> None:
    options = _options(servers, topic) | {"primary-key": "id", "key.format": "json"}
    writer = rows(spark, count, keys, 2).write.format("upsert-kafka").mode("append")
    writer.options(**options).save()


def _fill_day(servers: str, topic: str, count: int, partitions: int) -> int:
    """Messages that were made evenly over a day; returns when it began."""
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    begin_ms = int(time.time() * 1000) - DAY_MS
    for number in range(count):
        producer.produce(
            topic, b'{"id":%d,"name":"user"}' % number, b"%d" % number,
            partition=number % partitions, timestamp=begin_ms + DAY_MS * number // count,
        )  # fmt: skip
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    return begin_ms


def _measure(spark: SparkSession, reads: Reads, runs: int) -> None:
    seconds: dict[str, list[float]] = {"false": [], "true": []}
    found = set()
    for _ in range(runs + 1):
        for setting, taken in seconds.items():
            spark.conf.set(SETTING, setting)
            count, elapsed = _timed(lambda: _rows(spark, reads))
            found.add(count)
            taken.append(elapsed)
    (count,) = found  # the same with and without
    off, on = (times[1:] for times in seconds.values())
    ratios = [a / b for a, b in zip(off, on, strict=True)]
    print(
        f"{reads.about:<24}{count:>8,} rows   off {_told(off)} s   on {_told(on)} s   "
        f"{statistics.median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f})",
        flush=True,
    )


def _rows(spark: SparkSession, reads: Reads) -> int:
    reader = spark.read.format("upsert-kafka").schema(reads.schema).options(**reads.options)
    return len(reader.load().where(reads.where).collect())


def _timed(job: Callable[[], int]) -> tuple[int, float]:
    begin = time.monotonic()
    found = job()
    return found, time.monotonic() - begin


def _told(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f}-{max(seconds):.2f})"


if __name__ == "__main__":
    sys.exit(main())
