"""A stream that begins with the table (``scan.startup.mode`` = ``full``) beside a batch read of the table, and a stream of all changes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from bench import Bench
from cases import streamed
from data import SCHEMA
from stages import noop
from usage import Usage


@dataclass(frozen=True)
class TableRead:
    """What is measured: many messages over fewer keys.

    Args:
        messages: How many messages.
        keys: How many keys.
        partitions: How many Kafka partitions.
        tasks: The value of ``minPartitions``.
    """

    messages: int
    keys: int
    partitions: int
    tasks: int


def run_table_first(bench: Bench, read: TableRead) -> None:
    """Measures the three ways in turn, into nothing, and prints each."""
    topic = bench.filled(read.messages, read.keys, partitions=read.partitions)
    options = bench.options(topic) | {"minPartitions": str(read.tasks)}
    ways: dict[str, Callable[[], float]] = {
        "batch snapshot": lambda: _batch(bench, options),
        "first batch of 'full'": lambda: stream_into_nothing(bench, options, "full", read.keys),
        "stream of all changes": lambda: stream_into_nothing(
            bench, options, "earliest-offset", read.messages
        ),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    used: dict[str, list[Usage]] = {way: [] for way in ways}
    for job in ways.values():
        job()
    for _ in range(bench.runs):
        for way, job in ways.items():
            with Usage() as usage:
                seconds[way].append(job())
            used[way].append(usage)
    print(
        f"\n{read.messages:,} messages over {read.keys:,} keys in {read.partitions} partitions, "
        f"minPartitions {read.tasks}, into nothing"
    )
    for way in ways:
        median = statistics.median(seconds[way])
        cpu = statistics.median(sum(each.seconds.values()) for each in used[way])
        peak_mb = max(each.peak_worker_bytes for each in used[way]) / 1e6
        print(
            f"{way:<62}{median:>8.1f} s ({min(seconds[way]):.1f}-{max(seconds[way]):.1f}), "
            f"{cpu:.1f} s of CPU, peak {peak_mb:,.0f} MB a worker",
            flush=True,
        )
    bench.drop(topic)


def _batch(bench: Bench, options: dict[str, str]) -> float:
    begin = time.monotonic()
    noop(bench.spark.read.format("upsert-kafka").schema(SCHEMA).options(**options).load())
    return time.monotonic() - begin


def stream_into_nothing(bench: Bench, options: dict[str, str], start: str, rows: int) -> float:
    """Seconds of a stream's batches; ``rows`` is how many there must be."""
    reader = bench.spark.readStream.format("upsert-kafka").options(**options)
    changes = reader.schema(f"{SCHEMA}, _change_type STRING").option("scan.startup.mode", start)
    return streamed(replace(bench, count=rows), changes.load(), "noop", {})
