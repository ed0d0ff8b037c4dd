"""What holds rows back, and messages of unusual kinds: rates and memory, each beside a job of the usual kind.

A number that falls out of line is seen within its group: core-µs a row where the rows are the same, core-ns a byte where they
are not, and the memory of a worker. The memory of the JVM is what it took beyond that of before the job.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench import Bench
from cases import cpu_text
from data import SCHEMA, rows
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType
from sides import sink_options
from stages import noop
from usage import KINDS, Usage

from pyspark_upsert_kafka import upsert_sink

_WIDE = 300
_LARGE, _SMALL = 1_000_000, 1_000
_ERROR = "_error STRUCT<stage: STRING, message: STRING, key: BINARY, value: BINARY>"
_NARROW = ("id", "clicks")

# A key column is NOT NULL in the Avro schema of a table; without a key, only this says so.
_KEYED = SCHEMA.replace("id BIGINT", "id BIGINT NOT NULL")


@dataclass(frozen=True)
class Job:
    """A job of a group; the first one of a group is what the others are compared with.

    Args:
        name: Shown in the table.
        rows: How many it reads or writes.
        run: Does it, once.
        bytes: Of the values of all rows.
    """

    name: str
    rows: int
    run: Callable[[], object]
    bytes: int


@dataclass
class _Seen:
    seconds: list[float] = field(default_factory=list)
    used: list[Usage] = field(default_factory=list)


def run_buffers(bench: Bench, only: str) -> None:
    """Measures the groups whose name holds a text, and prints each: ``bench.count`` rows in the first, a multiple or a part in others."""
    print(
        f"\n{'':<46}{'rows/s':>11}{'MB/s':>8}{'core-ns a byte':>16}{'worker MB':>11}{'JVM +MB':>9}"
        "   core-µs a row (worker + JVM + broker)"
    )
    for group, jobs in _groups(bench).items():
        if only in group:
            print(group, flush=True)
            for job, seen in _measured(list(jobs()), bench.runs):
                _show(job, seen)


def _groups(bench: Bench) -> dict[str, Callable[[], Iterator[Job]]]:
    return {
        "keyed buffer, a million keys": lambda: _keyed_buffer(bench),
        "sequence-by": lambda: _sequence_by(bench),
        "bad messages: json": lambda: _bad_messages(bench, "json"),
        "bad messages: avro": lambda: _bad_messages(bench, "avro"),
        "wide rows: json": lambda: _of_shapes(bench, "json", _wide_shapes(bench)),
        "wide rows: avro": lambda: _of_shapes(bench, "avro", _wide_shapes(bench)),
        "large values: json": lambda: _of_shapes(bench, "json", _large_shapes(bench)),
        "large values: avro": lambda: _of_shapes(bench, "avro", _large_shapes(bench)),
    }


def _measured(jobs: list[Job], runs: int) -> Iterator[tuple[Job, _Seen]]:
    """The jobs in turn, after a warm-up of each if there are several runs."""
    seen = [_Seen() for _ in jobs]
    for job in jobs if runs > 1 else ():
        job.run()
    for _ in range(runs):
        for job, each in zip(jobs, seen, strict=True):
            begin = time.monotonic()
            with Usage() as usage:
                job.run()
                each.seconds.append(time.monotonic() - begin)
            each.used.append(usage)
    yield from zip(jobs, seen, strict=True)


def _show(job: Job, seen: _Seen) -> None:
    seconds = statistics.median(seen.seconds)
    cpu = {kind: statistics.median(each.seconds[kind] for each in seen.used) for kind in KINDS}
    worker = max(each.peak_worker_bytes for each in seen.used) / 1e6
    jvm = max(each.jvm_growth_bytes for each in seen.used) / 1e6
    a_row = {kind: used / job.rows * 1e6 for kind, used in cpu.items()}
    print(
        f"  {job.name:<44}{job.rows / seconds:>11,.0f}{job.bytes / seconds / 1e6:>8,.0f}"
        f"{sum(cpu.values()) / job.bytes * 1e9:>16,.1f}{worker:>11,.0f}{jvm:>9,.0f}   {cpu_text(a_row)}", flush=True,
    )  # fmt: skip


def _keyed_buffer(bench: Bench) -> Iterator[Job]:
    """Two changes of each key in one task: rows of seven columns, of which the buffer holds what its bytes allow, and of two, which fit."""
    source = rows(bench.spark, bench.count, bench.count // 2, 1).persist()
    noop(source)
    buffer = {
        "sink.buffer-flush.max-rows": str(bench.count // 2),
        "sink.buffer-flush.interval": "1 h",
    }
    for columns, frame in (("7 columns", source), ("2 columns", source.select(*_NARROW))):
        size = _bytes_of(frame)
        yield Job(f"{columns}, no buffer", bench.count, _writing(bench, frame, {}), size)
        yield Job(f"{columns}, buffer", bench.count, _writing(bench, frame, buffer), size)


def _sequence_by(bench: Bench) -> Iterator[Job]:
    """Ten changes of each key, written by `upsert_sink` in one call."""
    count = 5 * bench.count
    files = str(bench.folder / uuid.uuid4().hex)
    rows(bench.spark, count, count // 10, 4).write.parquet(files)
    source = bench.spark.read.schema(SCHEMA).parquet(files)
    size = _bytes_of(source)
    for name, more in (
        ("upsert_sink, by key", {}),
        ("upsert_sink, sequence-by", {"sequence-by": "updated"}),
    ):
        given = {"sink.parallelism": "4", **more}
        yield Job(f"{name}, {count:,} rows", count, _upserting(bench, source, given), size)


def _bad_messages(bench: Bench, format_: str) -> Iterator[Job]:
    """Each message lacks its last byte, so none can be read."""
    count = bench.count // 4
    good = bench.filled(count, count, format_)
    source = {"kafka.bootstrap.servers": bench.servers, "startingOffsets": "earliest"}
    messages = bench.spark.read.format("kafka").options(**source, subscribe=good).load()
    cut = f.expr("substring(value, 1, length(value) - 1)").alias("value")
    bad = _filled_by_spark(bench, messages.select("key", cut))
    size = int(messages.select(f.sum(f.length("value"))).first()[0])
    log = {"error-handling.mode": "log", "error-handling.log.target": bench.topic()}
    for name, topic, more in (
        ("good messages", good, {}),
        ("good messages: log", good, log),
        ("bad: ignore", bad, {"error-handling.mode": "ignore"}),
        ("bad: column", bad, {"error-handling.mode": "column"}),
        ("bad: log", bad, log),
    ):
        given = {**bench.options(topic, format_), "read.mode": "append", **more}
        schema = f"{SCHEMA}, {_ERROR}" if "column" in given.values() else _KEYED
        yield Job(name, count, _reading(bench, given, schema), size)


def _of_shapes(bench: Bench, format_: str, shapes: dict[str, DataFrame]) -> Iterator[Job]:
    """Writing, reading, and the table of rows of several shapes, which have as many bytes together."""
    for name, frame in shapes.items():
        count, size = frame.count(), _bytes_of(frame)
        topic = bench.topic()
        _write(frame, bench.options(topic, format_))
        yield Job(f"{name}: write", count, _writing(bench, frame, {}, format_), size)
        for mode in ("append", "snapshot"):
            given = {**bench.options(topic, format_), "read.mode": mode}
            schema = StructType(
                [StructField(c.name, c.dataType, c.name != "id") for c in frame.schema]
            )
            yield Job(f"{name}: read, {mode}", count, _reading(bench, given, schema), size)


def _wide_shapes(bench: Bench) -> dict[str, DataFrame]:
    """Rows of seven columns, and of three hundred of the same types."""
    narrow = rows(bench.spark, bench.count // 2, bench.count // 2, 2)
    wide = rows(bench.spark, bench.count // 80, bench.count // 80, 2)
    given = narrow.columns
    more = [f.col(given[at % 7]).alias(f"{given[at % 7]}_{at}") for at in range(7, _WIDE)]
    return {"7 columns": narrow, f"{_WIDE} columns": wide.select("*", *more)}


def _large_shapes(bench: Bench) -> dict[str, DataFrame]:
    """A text of a kilobyte, and one of a megabyte."""
    number = bench.spark.range(0, bench.count // 4, 1, 2)
    few = bench.spark.range(0, max(1, bench.count * _SMALL // 4 // _LARGE), 1, 2)
    return {
        "1 KB": number.select("id", _text(_SMALL).alias("text")),
        "1 MB": few.select("id", _text(_LARGE).alias("text")),
    }


def _text(size: int) -> object:
    return f.substring(f.repeat(f.md5(f.col("id").cast("string")), size // 32 + 1), 1, size - 50)


def _bytes_of(frame: DataFrame) -> int:
    """The bytes of the rows as JSON, about: what formats are compared by."""
    of_row = f.octet_length(f.to_json(f.struct(*[f.col(f"`{name}`") for name in frame.columns])))
    return int(frame.select(f.sum(of_row)).first()[0])


def _writing(
    bench: Bench, frame: DataFrame, more: dict[str, str], format_: str = "json"
) -> Callable[[], None]:
    return _into_new_topic(bench, lambda topic: _write(frame, bench.options(topic, format_) | more))


def _upserting(bench: Bench, frame: DataFrame, more: dict[str, str]) -> Callable[[], None]:
    return _into_new_topic(bench, lambda topic: upsert_sink(bench.options(topic) | more)(frame, 0))


def _into_new_topic(bench: Bench, write: Callable[[str], object]) -> Callable[[], None]:
    def run() -> None:
        topic = bench.topic()
        write(topic)
        bench.drop(topic)

    return run


def _write(frame: DataFrame, options: dict[str, str]) -> None:
    frame.write.format("upsert-kafka").options(**options).mode("append").save()


def _filled_by_spark(bench: Bench, messages: DataFrame) -> str:
    topic = bench.topic()
    format_, options = sink_options(False, bench.servers, topic)
    messages.write.format(format_).options(**options).mode("append").save()
    return topic


def _reading(bench: Bench, given: dict[str, str], schema: StructType | str) -> Callable[[], None]:
    if given["read.mode"] == "append":
        given = {k: v for k, v in given.items() if not k.startswith(("key.", "primary-key"))}
    reader = bench.spark.read.format("upsert-kafka").schema(schema).options(**given)
    return lambda: noop(reader.load())
