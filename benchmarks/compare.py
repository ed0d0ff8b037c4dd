"""The comparison: cases, where the time goes, a snapshot, a stream that begins with the table, and the table without Spark."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import pyspark
from bench import Bench
from buffers import run_buffers
from cases import Result, run_cases
from data import SCHEMA, rows
from dirty import run_dirty
from pyspark.sql import DataFrame
from sides import ARROW, CASES, FORMATS, JARS, MATRIX, TUNED, WHOLE_QUERIES, session
from small import run_partitions, run_small
from stages import arrow, noop, reading, writing
from table_first import TableRead, run_table_first
from topics import PARTITIONS
from usage import Usage
from whole import run_whole
from without_spark import run_without_spark

from pyspark_upsert_kafka import LocalKafka
from tests.local_registry import LocalRegistry

_PARTS = [
    "cases",
    "whole",
    "formats",
    "stages",
    "dirty",
    "snapshot",
    "full",
    "without-spark",
    "partitions",
    "small",
    "buffers",
]


def main() -> int:
    """Runs the cases and prints them."""
    arguments = _arguments()
    with (
        LocalKafka() as kafka,
        LocalRegistry() as registry,
        tempfile.TemporaryDirectory() as folder,
    ):
        bench = Bench(
            session(),
            kafka.bootstrap_servers,
            registry.url,
            arguments.messages,
            arguments.runs,
            Path(folder),
        )
        print(_about(arguments), flush=True)
        results: list[Result] = []
        if "cases" in arguments.parts:
            results += run_cases(bench, CASES, arguments.only)
        if "whole" in arguments.parts:
            run_whole(bench, WHOLE_QUERIES, arguments.sizes, arguments.only)
        if "formats" in arguments.parts:
            results += run_cases(bench, MATRIX, arguments.only)
        if "stages" in arguments.parts:
            _stages(bench)
        if "dirty" in arguments.parts:
            run_dirty()
        _tables(bench, arguments)
        if "partitions" in arguments.parts:
            run_partitions(bench)
        if "small" in arguments.parts:
            run_small(bench)
        if "buffers" in arguments.parts:
            run_buffers(bench, arguments.only)
        if results:
            arguments.raw.parent.mkdir(exist_ok=True)
            arguments.raw.write_text(json.dumps([asdict(r) for r in results], indent=2))
    session().stop()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument(
        "--sizes",
        nargs=2,
        type=int,
        default=[1_000_000, 8_000_000],
        help="messages of whole queries",
    )
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each side")
    parser.add_argument("--snapshot", type=int, default=5_000_000, help="messages of the snapshot")
    parser.add_argument("--keys", type=int, default=1_000_000, help="keys of the snapshot")
    parser.add_argument(
        "--partitions", type=int, default=PARTITIONS, help="Kafka partitions of the snapshot"
    )
    parser.add_argument("--tasks", type=int, default=1, help="'minPartitions' of the snapshot")
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument("--parts", nargs="+", default=_PARTS, choices=_PARTS)
    raw = Path("build/bench.json")
    parser.add_argument("--raw", type=Path, default=raw, help="a file for the cases, as JSON")
    return parser.parse_args()


def _about(arguments: argparse.Namespace) -> str:
    return (
        f"PySpark {pyspark.__version__}, {', '.join(Path(jar).stem for jar in JARS)}, "
        f"Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, {arguments.messages:,} messages of seven columns, "
        f"{PARTITIONS} partitions, medians of {arguments.runs} alternating runs after a warm-up; "
        f"{', '.join(f'{name}={value}' for name, value in ARROW.items())}; "
        f"'tuned': Spark's sink with {', '.join(f'{name}={value}' for name, value in TUNED.items())}"
    )


def _stages(bench: Bench) -> None:
    source = rows(bench.spark, bench.count, bench.count, 2).cache()
    noop(source)
    print(
        "\nwhere the time goes (messages per second of one core's CPU; the Arrow steps: per second)"
    )
    rates = {name: count / s for name, s, count in arrow(bench.spark, source, bench.count)}
    for format_ in FORMATS:
        topic, target = bench.filled(bench.count, bench.count, format_), bench.topic()
        given = bench.options(topic, format_)
        steps = chain(
            reading(given | {"read.mode": "changelog"}, _changelog(source)),
            writing(source, given | {"topic": target}),
        )
        rates |= {f"{format_}: {name}": count / s for name, s, count in steps}
        bench.drop(topic)
        bench.drop(target)
    for name, rate in rates.items():
        print(f"{name:<62}{rate:>12,.0f}")
    out, client = rates["Arrow out of the JVM"], rates["json: writing: client"]
    ceiling = (os.cpu_count() or 1) / (1 / out + 1 / client)
    print(f"{'writing, if encoding and the broker cost nothing':<62}{ceiling:>12,.0f}", flush=True)
    source.unpersist()


def _changelog(source: DataFrame) -> pyspark.sql.types.StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [StructField(field.name, field.dataType) for field in source.schema]
    return StructType([*fields, StructField("_change_type", StringType())])


def _tables(bench: Bench, arguments: argparse.Namespace) -> None:
    if "snapshot" in arguments.parts:
        _snapshot(bench, arguments)
    read = TableRead(arguments.snapshot, arguments.keys, arguments.partitions, arguments.tasks)
    if "full" in arguments.parts:
        run_table_first(bench, read)
    if "without-spark" in arguments.parts:
        run_without_spark(bench, read)


def _snapshot(bench: Bench, arguments: argparse.Namespace) -> None:
    """The table of many messages over fewer keys."""
    count, keys = arguments.snapshot, arguments.keys
    topic = bench.filled(count, keys, partitions=arguments.partitions)
    options = bench.options(topic) | {"minPartitions": str(arguments.tasks)}
    with Usage() as usage:
        begin = time.monotonic()
        table = bench.spark.read.format("upsert-kafka").schema(SCHEMA).options(**options).load()
        found = table.count()
        seconds = time.monotonic() - begin
    if found != keys:
        sys.exit(f"The snapshot has {found:,} rows instead of {keys:,}.")
    print(
        f"\nsnapshot of {count:,} messages over {keys:,} keys in {arguments.partitions} partitions, "
        f"minPartitions {arguments.tasks}: {seconds:.1f} s, "
        f"{count / seconds:,.0f} messages per second, peak {usage.peak_worker_bytes / 1e6:,.0f} MB a worker"
    )


if __name__ == "__main__":
    sys.exit(main())
