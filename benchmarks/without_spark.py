"""`read_table`, in a process of its own, beside a batch of Spark's two workers: the same table, in turn."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import Bench
from data import SCHEMA
from stages import noop
from table_first import TableRead
from usage import Usage

_PROGRAM = """
import json, resource, sys
from pyspark_upsert_kafka import read_table

options, schema = json.loads(sys.argv[1])
count = sum(batch.num_rows for batch in read_table(options, schema=schema))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([count, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3]))
"""


@dataclass(frozen=True)
class _Run:
    """What a run took: seconds, seconds of CPU without the broker's, and the most memory of a Python process in MB."""

    seconds: float
    cpu: float
    peak_mb: float


def run_without_spark(bench: Bench, read: TableRead) -> None:
    """Measures both ways in turn, and prints them with the ratios of their runs.

    The time of `read_table` includes the start of its process and its imports; Spark's session runs already.
    """
    topic = bench.filled(read.messages, read.keys, partitions=read.partitions)
    options = bench.options(topic) | {"minPartitions": str(read.tasks)}
    ways: dict[str, Callable[[], _Run]] = {
        "read_table, a process": lambda: _alone(options, read.keys),
        "spark.read, into nothing": lambda: _by_spark(bench, options),
    }
    for job in ways.values():
        job()
    pairs = [tuple(job() for job in ways.values()) for _ in range(bench.runs)]
    print(
        f"\n{read.messages:,} messages over {read.keys:,} keys in {read.partitions} partitions, minPartitions {read.tasks}"
    )
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
    ratios = sorted(theirs.cpu / ours.cpu for ours, theirs in pairs)
    print(
        f"messages per core-second, read_table / spark.read: {statistics.median(ratios):.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )
    bench.drop(topic)


def _alone(options: dict[str, str], rows: int) -> _Run:
    arguments = [sys.executable, "-c", _PROGRAM, json.dumps([options, SCHEMA])]
    begin = time.monotonic()
    printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    seconds = time.monotonic() - begin
    count, cpu, peak_mb = json.loads(printed)
    if count != rows:
        sys.exit(f"read_table has {count:,} rows instead of {rows:,}.")
    return _Run(seconds, cpu, peak_mb)


def _by_spark(bench: Bench, options: dict[str, str]) -> _Run:
    with Usage() as usage:
        begin = time.monotonic()
        noop(bench.spark.read.format("upsert-kafka").schema(SCHEMA).options(**options).load())
        seconds = time.monotonic() - begin
    cpu = usage.seconds["worker"] + usage.seconds["JVM"]
    return _Run(seconds, cpu, usage.peak_worker_bytes / 1e6)
