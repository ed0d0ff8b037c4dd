"""Measures cases: medians of alternating runs after a warm-up, ratios, and the memory of the workers."""

from __future__ import annotations

import statistics
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from bench import Bench
from data import SCHEMA, rows
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter
from sides import TUNED, Case, read_ours, read_theirs, sink_options, written_theirs
from stages import noop
from topics import PARTITIONS
from usage import KINDS, Usage

from pyspark_upsert_kafka import normalize_changelog, upsert_sink


@dataclass(frozen=True)
class Result:
    """What a case gave: rows per second and CPU (core-µs a row) of both sides, the workers' peak memory, the ratio."""

    case: str
    ours: float
    ours_cpu: dict[str, float]
    peak_mb: float
    theirs: float | None = None
    theirs_cpu: dict[str, float] | None = None
    ratio: float | None = None
    lowest: float | None = None
    highest: float | None = None


def run_cases(bench: Bench, cases: Sequence[Case], only: str) -> list[Result]:
    """Measures the cases whose name holds a text, and prints each."""
    source = rows(bench.spark, bench.count, bench.count, PARTITIONS).cache()
    noop(source)
    files = str(bench.folder / uuid.uuid4().hex)
    source.write.parquet(files)
    print(
        f"\n{'rows per second':<62}{'ours':>12}{'Spark':>12}{'ratio':>8}{'(range)':>14}{'peak MB':>9}"
        "   core-µs a row (worker + JVM + broker)"
    )
    results = []
    wanted = [case for case in cases if only in case.name]
    for format_, of_topic in groupby(wanted, lambda case: case.format):
        topic = bench.filled(bench.count, bench.count, format_)
        for case in of_topic:
            results.append(measured(bench, case, _job(bench, case, topic, source, files)))
            _show(results[-1])
        bench.drop(topic)
    source.unpersist()
    return results


def _show(result: Result) -> None:
    theirs = "no peer" if result.theirs is None else f"{result.theirs:,.0f}"
    spread = f"({result.lowest:.2f}-{result.highest:.2f})" if result.ratio else ""
    ratio = f"{result.ratio:.2f}" if result.ratio else ""
    print(
        f"{result.case:<62}{result.ours:>12,.0f}{theirs:>12}{ratio:>8}{spread:>14}"
        f"{result.peak_mb:>9,.0f}   {cpu_text(result.ours_cpu)} / {cpu_text(result.theirs_cpu)}", flush=True,
    )  # fmt: skip


def cpu_text(parts: dict[str, float] | None) -> str:
    """What each kind of process used, and all of them."""
    if parts is None:
        return "-"
    return f"{sum(parts.values()):.2f} ({' + '.join(f'{part:.2f}' for part in parts.values())})"


Job = Callable[[bool], float]
"""Does a job once, ours or theirs, and gives its seconds."""


def _job(bench: Bench, case: Case, topic: str, source: DataFrame, files: str) -> Job:
    if case.exactly_once:
        return _writing_by_upsert_sink(bench, files)
    if case.normalized_keys:
        return _normalizing(bench, case.normalized_keys)
    return reading(bench, case, topic) if case.reads else _writing(bench, case, source, files)


def measured(bench: Bench, case: Case, job: Job, *, warm_up: bool = True) -> Result:
    """What a job gives on both sides, or on ours where there is no other, in turn."""
    sides = (True, False) if case.peer else (True,)
    seconds: dict[bool, list[float]] = {ours: [] for ours in sides}
    used: dict[bool, list[Usage]] = {ours: [] for ours in sides}
    for ours in sides if warm_up else ():
        job(ours)
    for _ in range(bench.runs):
        for ours in sides:
            with Usage() as usage:
                seconds[ours].append(job(ours))
            used[ours].append(usage)
    ours_s = statistics.median(seconds[True])
    peak_mb = max(usage.peak_worker_bytes for usage in used[True]) / 1e6
    result = Result(case.name, bench.count / ours_s, _cpu_of(used[True], bench.count), peak_mb)
    if not case.peer:
        return result
    ratios = [b / a for a, b in zip(seconds[True], seconds[False], strict=True)]
    theirs_s = statistics.median(seconds[False])
    return replace(
        result,
        theirs=bench.count / theirs_s,
        theirs_cpu=_cpu_of(used[False], bench.count),
        ratio=theirs_s / ours_s,
        lowest=min(ratios),
        highest=max(ratios),
    )


def _cpu_of(used: Sequence[Usage], count: int) -> dict[str, float]:
    """The median of what each kind of process used, in core-µs a row."""
    return {
        kind: statistics.median(usage.seconds[kind] for usage in used) / count * 1e6
        for kind in KINDS
    }


def reading(bench: Bench, case: Case, topic: str) -> Job:
    """Reads a topic into nothing."""
    options = bench.options(topic, case.format)

    def job(ours: bool) -> float:
        load = read_ours if ours else read_theirs
        begin = time.monotonic()
        if case.streams:
            seconds = streamed(bench, load(case, bench.spark.readStream, options), "noop", {})
            return time.monotonic() - begin if case.metadata else seconds
        frame = load(case, bench.spark.read, options)
        begin = begin if case.metadata else time.monotonic()
        noop(frame)
        return time.monotonic() - begin

    return job


def _normalizing(bench: Bench, keys: int) -> Job:
    """Micro-batches of 250,000 changes; the first ones fill the state, and its start is counted too."""
    topic = bench.filled(bench.count, keys)

    def job(ours: bool) -> float:  # noqa: ARG001 - there is no other side
        reader = bench.spark.readStream.format("upsert-kafka").options(**bench.options(topic))
        changes = reader.schema(f"{SCHEMA}, _partition INT, _offset BIGINT, _change_type STRING")
        limited = changes.option("maxOffsetsPerTrigger", 250_000).load()
        return streamed(bench, normalize_changelog(limited, ["id"]), "noop", {})

    return job


def _writing_by_upsert_sink(bench: Bench, files: str) -> Job:
    """Micro-batches of a file each, in as many tasks as the topic has partitions."""

    def job(exactly_once: bool) -> float:
        topic = bench.topic()
        given = {**bench.options(topic), "sink.parallelism": str(PARTITIONS)}
        if exactly_once:
            given |= {
                "sink.delivery-guarantee": "exactly-once",
                "sink.transactional-id-prefix": topic,
            }
        stream = bench.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        writer = stream.parquet(files).writeStream.foreachBatch(upsert_sink(given))
        seconds = _run(bench, writer)
        bench.drop(topic)
        return seconds

    return job


def _writing(bench: Bench, case: Case, source: DataFrame, files: str) -> Job:
    def job(ours: bool) -> float:
        topic = bench.topic()
        format_, options = sink_options(ours, bench.servers, topic)
        if ours:
            options = bench.options(topic, case.format)
        elif case.tuned:
            options |= {f"kafka.{name}": value for name, value in TUNED.items()}
        frame = bench.spark.readStream.schema(SCHEMA).parquet(files) if case.streams else source
        frame = frame if ours else written_theirs(case, frame)
        if case.streams:
            seconds = streamed(bench, frame, format_, options)
        else:
            begin = time.monotonic()
            frame.write.format(format_).options(**options).mode("append").save()
            seconds = time.monotonic() - begin
        bench.drop(topic)
        return seconds

    return job


def streamed(bench: Bench, frame: DataFrame, format_: str, options: dict[str, str]) -> float:
    """Seconds of a stream's batches, from its progress, without the query's start."""
    return _run(bench, frame.writeStream.format(format_).options(**options))


def _run(bench: Bench, writer: DataStreamWriter) -> float:
    checkpoint = str(bench.folder / uuid.uuid4().hex)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.recentProgress
    read = sum(batch["numInputRows"] for batch in progress)
    if read != bench.count:
        sys.exit(f"The stream read {read:,} rows instead of {bench.count:,}.")
    return sum(batch["durationMs"]["triggerExecution"] for batch in progress) / 1000
