"""A week of streams that copy a topic: what their processes, their checkpoints and their log hold by then.

A week with a trigger every six seconds has 100,000 triggers. An idle stream looks five times a second, so ten streams of one driver
share these triggers, without pauses. Nine of ten triggers find nothing new; the tenth runs a micro-batch, and half of these have no
rows, because their messages were aborted. The program `python -m scale.week SERVERS SOURCE FOLDER TRIGGERS SECONDS` is the
driver whose log is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from topics import PARTITIONS, new_topic

from pyspark_upsert_kafka import LocalKafka
from scale import backlog
from scale.samples import Sample
from scale.sessions import options_of, session
from scale.watch import processes

_STREAMS = 10
_IDLE = 9
"""Triggers of a stream that find nothing, before the next transaction."""
_SAMPLES = 40


def measure(*, triggers: int, seconds: float) -> dict:
    """Runs streams until there were so many triggers, or the time is over."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        given = [servers, new_topic(servers), folder, str(triggers), str(seconds)]
        with Path(folder, "log").open("wb") as log:
            program = [sys.executable, "-m", "scale.week", *given]
            code = subprocess.run(program, check=False, stderr=log).returncode
        if code:
            sys.exit(Path(folder, "log").read_text(encoding="utf-8", errors="replace"))
        return {"samples": json.loads(Path(folder, "samples.json").read_text(encoding="utf-8"))}


class _Triggers(StreamingQueryListener):
    """Counts triggers: those with a micro-batch, and those that found nothing."""

    def __init__(self) -> None:
        self.batches, self.idle = 0, 0

    @property
    def all(self) -> int:
        return self.batches + self.idle

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.batches += 1

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        self.idle += 1

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def streams(servers: str, source: str, folder: str, triggers: str, seconds: str) -> None:
    """The driver: runs the queries, and writes samples into the folder."""
    spark, begin = session(log_level="WARN"), time.monotonic()  # what Spark logs by default
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")  # tells each trigger
    seen = _Triggers()
    spark.streams.addListener(seen)
    queries = [_copy(spark, servers, source, folder, number) for number in range(_STREAMS)]
    changes = backlog.Transactions(servers, source, PARTITIONS)
    samples: list[Sample] = []
    every = max(1, int(triggers) // _SAMPLES)
    while seen.all < int(triggers) and time.monotonic() < begin + float(seconds):
        if ended := [query.exception() for query in queries if not query.isActive]:
            raise RuntimeError(f"a query ended: {ended[0]}")
        if seen.idle >= _IDLE * _STREAMS * changes.messages:
            changes.write(1)
        if seen.all >= every * (len(samples) + 1):
            samples.append(_sample(spark, Path(folder), seen, time.monotonic() - begin))
            shown = ", ".join(f"{name} {value:,.0f}" for name, value in samples[-1].items())
            print(f"scale: {shown}", flush=True)
        time.sleep(0.02)
    samples.append(_sample(spark, Path(folder), seen, time.monotonic() - begin))
    for query in queries:
        query.stop()
    spark.stop()
    Path(folder, "samples.json").write_text(json.dumps(samples), encoding="utf-8")


def _copy(
    spark: SparkSession, servers: str, source: str, folder: str, number: int
) -> StreamingQuery:
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, n BIGINT, _change_type STRING")
        .options(**options_of(servers, source))
        .option("scan.parallelism", "auto")
        .load()
    )
    writer = changes.writeStream.format("upsert-kafka")
    writer = writer.options(**options_of(servers, new_topic(servers)))
    query = writer.option("checkpointLocation", f"{folder}/checkpoints/{number}").start()
    query.processAllAvailable()  # one after another: Spark waits ten seconds for a Python process
    return query


def _sample(spark: SparkSession, folder: Path, seen: _Triggers, seconds: float) -> Sample:
    """What there is now; the driver's heap after a collection."""
    java = spark.sparkContext._jvm.java  # noqa: SLF001
    java.lang.System.gc()
    heap = java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    files = [file for file in (folder / "checkpoints").rglob("*") if file.is_file()]
    found: Sample = {
        "triggers": seen.all,
        "batches": seen.batches,
        "seconds": seconds,
        "driver's heap, MB": heap / 1e6,
        "checkpoints, files": len(files),
        "checkpoints, kB": sum(_size(file) for file in files) / 1e3,
        "driver's log, kB": (folder / "log").stat().st_size / 1e3,
    }
    for kind, what in (
        ("JVM", "driver's JVM"),
        ("planner", "planning processes"),
        ("worker", "workers"),
    ):
        held = [_held(process) for each, process in processes() if each == kind]
        memory, threads, open_files = (
            (max(column, default=0.0) for column in zip(*held, strict=True)) if held else (0.0,) * 3
        )
        found |= {
            f"{what}, MB": memory,
            f"{what}, threads": threads,
            f"{what}, open files": open_files,
        }
    return found


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # Spark deletes old ones meanwhile
        return 0


def _held(process: psutil.Process) -> tuple[float, float, float]:
    try:
        return process.memory_info().rss / 1e6, process.num_threads(), process.num_fds()
    except psutil.Error:  # it ended while it was looked at
        return 0.0, 0.0, 0.0


if __name__ == "__main__":
    streams(*sys.argv[1:])
