"""Many micro-batches of a stream that copies a topic: what its processes, its checkpoint and its log hold by then.

A week of one micro-batch in six seconds is 100,000. They run as fast as they can, through Spark; half of them have no rows,
because their messages were aborted. The program `python -m scale.week SERVERS SOURCE;TARGET FOLDER BATCHES SECONDS` is the
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
from topics import PARTITIONS, new_topic

from pyspark_upsert_kafka import LocalKafka
from scale import backlog
from scale.samples import Sample
from scale.sessions import options_of, session
from scale.watch import processes

_OFFSETS_OF_A_BATCH = 10
"""Of each partition."""
_SAMPLES = 40


def measure(*, batches: int, seconds: float) -> dict:
    """Runs micro-batches until there were so many, or the time is over."""
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        servers = kafka.bootstrap_servers
        source, target = new_topic(servers), new_topic(servers)
        backlog.write(servers, source, PARTITIONS, (batches + 100) * _OFFSETS_OF_A_BATCH)
        given = [servers, f"{source};{target}", folder, str(batches), str(seconds)]
        with Path(folder, "log").open("wb") as log:
            program = [sys.executable, "-m", "scale.week", *given]
            subprocess.run(program, check=True, stderr=log)
        return {"samples": json.loads(Path(folder, "samples.json").read_text(encoding="utf-8"))}


def stream(servers: str, topics: str, folder: str, batches: str, seconds: str) -> None:
    """The driver: runs the query, and writes samples into the folder."""
    spark, begin = session(log_level="WARN"), time.monotonic()  # what Spark logs by default
    query = _copy(spark, servers, topics.split(";"), folder)
    samples: list[Sample] = []
    every = max(1, int(batches) // _SAMPLES)
    while (done := _done(query)) < int(batches) and time.monotonic() < begin + float(seconds):
        if not query.isActive:
            raise RuntimeError(f"the query ended: {query.exception()}")
        if done >= every * (len(samples) + 1):
            samples.append(_sample(spark, Path(folder), done, time.monotonic() - begin))
            shown = ", ".join(f"{name} {value:,.0f}" for name, value in samples[-1].items())
            print(f"scale: {shown}", flush=True)
        time.sleep(0.2)
    samples.append(_sample(spark, Path(folder), _done(query), time.monotonic() - begin))
    query.stop()
    spark.stop()
    Path(folder, "samples.json").write_text(json.dumps(samples), encoding="utf-8")


def _copy(spark: SparkSession, servers: str, topics: list[str], folder: str) -> StreamingQuery:
    source, target = topics
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, n BIGINT, _change_type STRING")
        .options(**options_of(servers, source))
        .option("maxOffsetsPerTrigger", _OFFSETS_OF_A_BATCH * PARTITIONS)
        .option("scan.parallelism", "auto")
        .load()
    )
    writer = changes.writeStream.format("upsert-kafka").options(**options_of(servers, target))
    return writer.option("checkpointLocation", f"{folder}/checkpoint").start()


def _done(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return progress["batchId"] + 1 if progress else 0


def _sample(spark: SparkSession, folder: Path, batches: int, seconds: float) -> Sample:
    """What there is now; the driver's heap after a collection."""
    java = spark.sparkContext._jvm.java  # noqa: SLF001
    java.lang.System.gc()
    heap = java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    files = [file for file in (folder / "checkpoint").rglob("*") if file.is_file()]
    found: Sample = {
        "batches": batches,
        "seconds": seconds,
        "driver's heap, MB": heap / 1e6,
        "checkpoint, files": len(files),
        "checkpoint, kB": sum(_size(file) for file in files) / 1e3,
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
    stream(*sys.argv[1:])
