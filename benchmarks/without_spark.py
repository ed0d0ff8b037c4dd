"""`read_table` and `read_changes`, each in a process of its own, beside a batch and a stream of Spark's two workers, in turn."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench import Bench
from data import SCHEMA
from stages import noop
from table_first import TableRead, stream_into_nothing
from usage import Usage

_PROGRAM = """
import json, resource, sys
from pyspark_upsert_kafka import read_changes, read_table

name, options, schema = json.loads(sys.argv[1])
if name == "read_table":
    batches = read_table(options, schema=schema)
else:
    batches = read_changes(options, schema=schema, start="earliest", stop_at_end=True)
count = sum(batch.num_rows for batch in batches)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([count, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3]))
"""


@dataclass(frozen=True)
class Run:
    """What a run took: seconds, seconds of CPU without the broker's, and the most memory of a Python process in MB."""

    seconds: float
    cpu: float
    peak_mb: float


def run_without_spark(bench: Bench, read: TableRead) -> None:
    """Measures the table and all changes both ways in turn, and prints them with the ratios of their runs.

    The time of `read_table` and `read_changes` includes the start of their process and its imports; Spark's session runs already.
    """
    topic = bench.filled(read.messages, read.keys, partitions=read.partitions)
    options = bench.options(topic)
    tasks = options | {"minPartitions": str(read.tasks)}
    print(
        f"\n{read.messages:,} messages over {read.keys:,} keys in {read.partitions} partitions, minPartitions {read.tasks}"
    )
    table = partial(alone, "read_table", tasks, read.keys)
    _compare(bench, read, "read_table", table, lambda: _batch(bench, tasks))
    stream = partial(stream_into_nothing, bench, options, "earliest-offset", read.messages)
    changes = partial(alone, "read_changes", options, read.messages)
    _compare(bench, read, "read_changes", changes, stream)
    bench.drop(topic)


def _compare(
    bench: Bench,
    read: TableRead,
    name: str,
    alone: Callable[[], Run],
    spark: Callable[[], object],
) -> None:
    theirs = "spark.read" if name == "read_table" else "spark.readStream"
    ways: dict[str, Callable[[], Run]] = {
        f"{name}, a process": alone,
        f"{theirs}, into nothing": lambda: by_spark(spark),
    }
    for job in ways.values():
        job()
    pairs = [tuple(job() for job in ways.values()) for _ in range(bench.runs)]
    for way, runs in zip(ways, zip(*pairs, strict=True), strict=True):
        seconds, cpu = (
            statistics.median(times)
            for times in zip(*((run.seconds, run.cpu) for run in runs), strict=True)
        )
        print(
            f"{way:<62}{seconds:>8.1f} s, {cpu:.1f} s of CPU, {read.messages / cpu:,.0f} messages per core-second, "
            f"peak {max(run.peak_mb for run in runs):,.0f} MB",
            flush=True,
        )
    ratios = sorted(other.cpu / ours.cpu for ours, other in pairs)
    print(
        f"messages per core-second, {name} / {theirs}: {statistics.median(ratios):.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def alone(name: str, options: dict[str, str], rows: int) -> Run:
    """A run of `read_table` or `read_changes` in a process of its own, which must give so many rows."""
    arguments = [sys.executable, "-c", _PROGRAM, json.dumps([name, options, SCHEMA])]
    begin = time.monotonic()
    printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    seconds = time.monotonic() - begin
    count, cpu, peak_mb = json.loads(printed)
    if count != rows:
        sys.exit(f"{name} has {count:,} rows instead of {rows:,}.")
    return Run(seconds, cpu, peak_mb)


def _batch(bench: Bench, options: dict[str, str]) -> None:
    noop(bench.spark.read.format("upsert-kafka").schema(SCHEMA).options(**options).load())


def by_spark(job: Callable[[], object]) -> Run:
    """A run of a query."""
    with Usage() as usage:
        begin = time.monotonic()
        job()
        seconds = time.monotonic() - begin
    cpu = usage.seconds["worker"] + usage.seconds["JVM"]
    return Run(seconds, cpu, usage.peak_worker_bytes / 1e6)
