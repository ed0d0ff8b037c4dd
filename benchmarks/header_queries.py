"""What whole queries take where headers name the schemas of keys and values; `make bench-header-queries` runs it.

The same rows are in two topics, with ids in payloads and with ids in headers. Queries read them in turn, into nothing. For each query a
line: the median of CPU time and of wall time with ids in payloads, and of the ratios and the differences of pairs. The CPU time is that of
Spark's JVM and its workers, or of the process of `read_table`; the broker's is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from functools import partial

from data import SCHEMA, rows
from pyspark.sql import SparkSession
from stages import noop
from topics import new_topic
from without_spark import Run, alone, by_spark

from pyspark_upsert_kafka import LocalKafka
from tests.unit.registry.fake_registry import FakeRegistry, serving

PLACES = ("payload", "header")
SIDES = ("key", "value")


def main() -> int:
    """Fills both topics and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000, help="of each topic")
    parser.add_argument("--keys", type=int, default=500_000, help="of the table")
    parser.add_argument("--runs", type=int, default=7, help="runs of each side, in turn")
    given = parser.parse_args()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "no_proxy": "*"}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with LocalKafka() as kafka, serving() as registry:
        sides = [
            _filled(spark, kafka.bootstrap_servers, registry, place, given) for place in PLACES
        ]
        print(
            f"{given.messages:,} messages, {given.keys:,} keys, seven columns; medians of {given.runs} pairs\n"
            f"{'':<24}{'ids in payloads':<34}{'ids in headers: ratio (range), more a message'}"
        )
        queries: dict[str, Callable[[dict[str, str]], Run]] = {
            "spark.read, snapshot": partial(_spark, spark, "snapshot"),
            "spark.read, changelog": partial(_spark, spark, "changelog"),
            "read_table": lambda options: alone("read_table", options, given.keys),
        }
        for name, query in queries.items():
            for options in sides:
                query(options)
            pairs = [(query(sides[0]), query(sides[1])) for _ in range(given.runs)]
            _show(name, pairs, given.messages)
    spark.stop()
    return 0


def _filled(
    spark: SparkSession, servers: str, registry: FakeRegistry, place: str, given: argparse.Namespace
) -> dict[str, str]:
    """Options of a table that is filled."""
    options = {
        "topic": new_topic(servers),
        "properties.bootstrap.servers": servers,
        "primary-key": "id",
    }
    for side in SIDES:
        options |= {f"{side}.format": "avro-confluent", f"{side}.avro-confluent.url": registry.url}
    numbers = {
        f"/subjects/{options['topic']}-{side}/versions": at for at, side in enumerate(SIDES, 7)
    }
    registry.answers |= {path: [(200, {"id": number})] for path, number in numbers.items()}
    location = {f"{side}.avro-confluent.schema-id-location": place for side in SIDES}
    source = rows(spark, given.messages, given.keys, 2)
    source.write.format("upsert-kafka").options(**options, **location).mode("append").save()
    for asked in registry.asked:
        if asked.path in numbers:
            registry.schema(numbers[asked.path], asked.body["schema"])
    return options


def _spark(spark: SparkSession, mode: str, options: dict[str, str]) -> Run:
    schema = SCHEMA if mode == "snapshot" else f"{SCHEMA}, _change_type STRING"
    reader = spark.read.format("upsert-kafka").schema(schema).options(**options)
    return by_spark(lambda: noop(reader.option("read.mode", mode).load()))


def _show(name: str, pairs: list[tuple[Run, Run]], messages: int) -> None:
    first = f"{_median(one.cpu for one, _ in pairs):.2f} s of CPU, {_median(one.seconds for one, _ in pairs):.2f} s"
    ratios = sorted(other.cpu / one.cpu for one, other in pairs)
    more = _median((other.cpu - one.cpu) / messages * 1e6 for one, other in pairs)
    wall = _median(other.seconds / one.seconds for one, other in pairs)
    print(
        f"{name:<24}{first:<34}CPU {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
        f"{more:.2f} core-µs; wall {wall:.2f}",
        flush=True,
    )


def _median(numbers: Iterable[float]) -> float:
    return statistics.median([*numbers])


if __name__ == "__main__":
    sys.exit(main())
