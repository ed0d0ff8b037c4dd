"""The comparison itself: medians of alternating runs after a warm-up, ratios, memory, and where time goes."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from pathlib import Path

import pyspark
from confluent_kafka.admin import AdminClient, NewTopic
from data import SCHEMA, rows
from descriptors import descriptor_file
from memory import PeakWorkerMemory
from pyspark.sql import DataFrame, SparkSession
from sides import (
    CASES,
    JARS,
    MATRIX,
    Case,
    read_ours,
    read_theirs,
    session,
    sink_options,
    written_theirs,
)
from stages import arrow, noop, reading, writing

from pyspark_upsert_kafka import LocalKafka

PARTITIONS = 4


@dataclass(frozen=True)
class Result:
    """What a case gave: rows per second of both sides, the workers' peak memory in MB, the ratio."""

    case: str
    ours: float
    peak_mb: float
    theirs: float | None = None
    ratio: float | None = None
    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True)
class Bench:
    """Where the benchmark runs."""

    spark: SparkSession
    servers: str
    count: int
    runs: int
    folder: Path

    def topic(self) -> str:
        """A new topic."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 3})
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
        return name

    def drop(self, topic: str) -> None:
        """Deletes a topic, so that the disk does not fill."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 3})
        admin.delete_topics([topic])[topic].result()

    def options(self, topic: str, format_: str = "json") -> dict[str, str]:
        """This connector's options for a topic."""
        more = descriptor_file(self.folder) if format_ == "protobuf" else {}
        return sink_options(True, self.servers, topic, format_, **more)[1]

    def filled(self, count: int, keys: int, format_: str = "json") -> str:
        """A topic with ``count`` messages over ``keys`` keys."""
        topic = self.topic()
        source = rows(self.spark, count, keys, 2)
        options = self.options(topic, format_)
        source.write.format("upsert-kafka").options(**options).mode("append").save()
        return topic


def main() -> int:
    """Runs the cases and prints them."""
    arguments = _arguments()
    spark = session()
    with LocalKafka() as kafka, tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            spark, kafka.bootstrap_servers, arguments.messages, arguments.runs, Path(folder)
        )
        print(_about(arguments), flush=True)
        results: list[Result] = []
        if "cases" in arguments.parts:
            results += _cases(bench, CASES, arguments.only)
        if "formats" in arguments.parts:
            results += _cases(bench, MATRIX, arguments.only)
        if "stages" in arguments.parts:
            _stages(bench)
        if "snapshot" in arguments.parts:
            _snapshot(bench, arguments.snapshot)
        if results:
            out = Path("build")
            out.mkdir(exist_ok=True)
            (out / "bench.json").write_text(json.dumps([asdict(r) for r in results], indent=2))
    spark.stop()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each side")
    parser.add_argument("--snapshot", type=int, default=5_000_000, help="messages of the snapshot")
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument(
        "--parts", nargs="+", default=["cases", "formats", "stages", "snapshot"],
        choices=["cases", "formats", "stages", "snapshot"],
    )  # fmt: skip
    return parser.parse_args()


def _about(arguments: argparse.Namespace) -> str:
    return (
        f"PySpark {pyspark.__version__}, {', '.join(Path(jar).stem for jar in JARS)}, "
        f"Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, {arguments.messages:,} messages of seven columns, "
        f"{PARTITIONS} partitions, medians of {arguments.runs} alternating runs after a warm-up"
    )


def _cases(bench: Bench, cases: Sequence[Case], only: str) -> list[Result]:
    source = rows(bench.spark, bench.count, bench.count, PARTITIONS).cache()
    noop(source)
    files = str(bench.folder / uuid.uuid4().hex)
    source.write.parquet(files)
    print(
        f"\n{'rows per second':<62}{'ours':>12}{'Spark':>12}{'ratio':>8}{'(range)':>14}{'peak MB':>9}"
    )
    results = []
    for format_, of_format in groupby(cases, lambda case: case.format):
        topic = bench.filled(bench.count, bench.count, format_)
        for case in of_format:
            if only in case.name:
                results.append(_measure(bench, case, topic, source, files))
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
        f"{result.peak_mb:>9,.0f}", flush=True,
    )  # fmt: skip


def _measure(bench: Bench, case: Case, topic: str, source: DataFrame, files: str) -> Result:
    job = _reading(bench, case, topic) if case.reads else _writing(bench, case, source, files)
    sides = (True, False) if case.peer else (True,)
    seconds: dict[bool, list[float]] = {ours: [] for ours in sides}
    for ours in sides:
        job(ours)
    with PeakWorkerMemory() as memory:
        for _ in range(bench.runs):
            for ours in sides:
                seconds[ours].append(job(ours))
    ours_s = statistics.median(seconds[True])
    result = Result(case.name, bench.count / ours_s, memory.peak / 1e6)
    if not case.peer:
        return result
    ratios = [b / a for a, b in zip(seconds[True], seconds[False], strict=True)]
    theirs_s = statistics.median(seconds[False])
    return replace(
        result,
        theirs=bench.count / theirs_s,
        ratio=theirs_s / ours_s,
        lowest=min(ratios),
        highest=max(ratios),
    )


def _reading(bench: Bench, case: Case, topic: str) -> Callable[[bool], float]:
    options = bench.options(topic, case.format)

    def job(ours: bool) -> float:
        load = read_ours if ours else read_theirs
        if case.streams:
            return _streamed(bench, load(case, bench.spark.readStream, options), "noop", {})
        frame = load(case, bench.spark.read, options)
        begin = time.monotonic()
        noop(frame)
        return time.monotonic() - begin

    return job


def _writing(bench: Bench, case: Case, source: DataFrame, files: str) -> Callable[[bool], float]:
    def job(ours: bool) -> float:
        topic = bench.topic()
        format_, options = sink_options(ours, bench.servers, topic)
        if ours:
            options = bench.options(topic, case.format)
        frame = bench.spark.readStream.schema(SCHEMA).parquet(files) if case.streams else source
        frame = frame if ours else written_theirs(case, frame)
        if case.streams:
            seconds = _streamed(bench, frame, format_, options)
        else:
            begin = time.monotonic()
            frame.write.format(format_).options(**options).mode("append").save()
            seconds = time.monotonic() - begin
        bench.drop(topic)
        return seconds

    return job


def _streamed(bench: Bench, frame: DataFrame, format_: str, options: dict[str, str]) -> float:
    """Seconds of a stream's batches, from its progress: starting a query costs both sides the same."""
    query = (
        frame.writeStream.format(format_)
        .options(**options)
        .option("checkpointLocation", str(bench.folder / uuid.uuid4().hex))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    progress = query.recentProgress
    read = sum(batch["numInputRows"] for batch in progress)
    if read != bench.count:
        sys.exit(f"The stream read {read:,} rows instead of {bench.count:,}.")
    return sum(batch["durationMs"]["triggerExecution"] for batch in progress) / 1000


def _stages(bench: Bench) -> None:
    topic, target = bench.filled(bench.count, bench.count), bench.topic()
    common = bench.options(topic)
    source = rows(bench.spark, bench.count, bench.count, 2).cache()
    noop(source)
    print(
        "\nwhere the time goes (messages per second of one core's CPU; the Arrow steps: per second)"
    )
    steps = chain(
        reading(common | {"read.mode": "changelog"}, _changelog(source)),
        writing(source, common | {"topic": target}),
        arrow(bench.spark, source, bench.count),
    )
    for name, seconds, count in steps:
        print(f"{name:<62}{count / seconds:>12,.0f}", flush=True)
    source.unpersist()


def _changelog(source: DataFrame) -> pyspark.sql.types.StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    fields = [StructField(field.name, field.dataType) for field in source.schema]
    return StructType([*fields, StructField("_change_type", StringType())])


def _snapshot(bench: Bench, count: int) -> None:
    """The table of many messages over a fifth as many keys."""
    keys = count // 5
    topic = bench.filled(count, keys)
    options = bench.options(topic)
    with PeakWorkerMemory() as memory:
        begin = time.monotonic()
        table = bench.spark.read.format("upsert-kafka").schema(SCHEMA).options(**options).load()
        found = table.count()
        seconds = time.monotonic() - begin
    if found != keys:
        sys.exit(f"The snapshot has {found:,} rows instead of {keys:,}.")
    print(
        f"\nsnapshot of {count:,} messages over {keys:,} keys: {seconds:.1f} s, "
        f"{count / seconds:,.0f} messages per second, peak {memory.peak / 1e6:,.0f} MB a worker"
    )


if __name__ == "__main__":
    sys.exit(main())
