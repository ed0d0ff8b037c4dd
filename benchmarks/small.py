"""Costs that do not depend on the number of messages: a small micro-batch, the start of a query, a task for many partitions."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bench import Bench
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from sides import Case, read_ours, read_theirs, session
from usage import Usage

_CASE = Case("", reads=True, streams=True, mode="changelog", key=True)
_MESSAGES, _BATCHES, _WARM_UP = 40, 40, 10
_PARTITIONS, _MANY_MESSAGES = 1_000, 200_000

_SIDES: dict[str, dict[str, str] | None] = {
    "Spark's own source": None,
    "this": {},
    "this, scan.parallelism=1": {"scan.parallelism": "1"},
    "this, scan.parallelism=auto": {"scan.parallelism": "auto"},
}
"""Options of this source beside those of the topic; None = Spark's."""

_MANY_SIDES: dict[str, dict[str, str] | None] = {
    "this, scan.parallelism=4": {"scan.parallelism": "4"},
    "this": {},
    "Spark's own source": None,
}

_PLANS = "import pyspark.sql.worker.plan_data_source_read"
_OURS_PLANS = (
    "pyspark_upsert_kafka.connector.planning.stream_reader, pyspark_upsert_kafka.connector.format_catalog, "
    "pyspark_upsert_kafka.kafka.librdkafka, pyspark_upsert_kafka.formats.json"
)
_READS = "import pyspark.worker"
_OURS_READS = (
    f"{_OURS_PLANS}, pyspark_upsert_kafka.connector.reading.task_reading, pyspark_upsert_kafka.kafka.librdkafka.reader, "
    "pyspark_upsert_kafka.formats.json.column_paths"
)
_IMPORTS = {
    "Python itself": "pass",
    "planning: Spark's part": _PLANS,
    "planning: with ours": f"{_PLANS}, {_OURS_PLANS}",
    "a task: Spark's part": _READS,
    "a task: with pandas": f"{_READS}, pandas",
    "a task: with ours": f"{_READS}, pandas, {_OURS_READS}",
}
"""Modules that are imported when a query starts; pyarrow imports pandas wherever it is installed."""


def run_small(bench: Bench) -> None:
    """Measures small micro-batches and the start of a query, with Unix sockets and without."""
    count = _MESSAGES * _BATCHES
    topic = bench.filled(count, count, deletes=True)
    for sockets in (False, True):
        bench.spark.stop()
        bench = replace(bench, spark=session(unix_sockets=sockets))
        print(
            f"\nPython workers over {'Unix' if sockets else 'TCP'} sockets, medians of {bench.runs} alternating runs"
        )
        _small(bench, topic)
    bench.drop(topic)
    _show_imports()


def _small(bench: Bench, topic: str) -> None:
    limit = {"maxOffsetsPerTrigger": str(_MESSAGES)}
    for more in _SIDES.values():
        _batch_ms(bench, topic, more, limit)
    batches = _medians(bench, _SIDES, lambda more: _batch_ms(bench, topic, more, limit))
    starts = _medians(bench, _SIDES, lambda more: _start_ms(bench, topic, more))
    (theirs,) = batches["Spark's own source"]
    print(
        f"{'ms':<32}{f'batch of {_MESSAGES}':>14}{'ratio':>8}{'load':>8}{'start to end of first batch':>30}"
    )
    for side in _SIDES:
        (batch_ms,), (load_ms, first_ms) = batches[side], starts[side]
        print(
            f"{side:<32}{batch_ms:>14,.0f}{batch_ms / theirs:>8.2f}{load_ms:>8,.0f}{first_ms:>30,.0f}",
            flush=True,
        )


def run_partitions(bench: Bench) -> None:
    """Measures one micro-batch over a thousand partitions, once for each side: it takes minutes."""
    topic = bench.filled(_MANY_MESSAGES, _MANY_MESSAGES, partitions=_PARTITIONS)
    print(
        f"\none micro-batch of {_MANY_MESSAGES:,} messages over {_PARTITIONS:,} partitions, s; core-s"
    )
    for side, more in _MANY_SIDES.items():
        with Usage() as usage:
            (batch_ms,) = _batch_ms(bench, topic, more, {}, warm_up=0)
        used = " + ".join(f"{kind} {seconds:.1f}" for kind, seconds in usage.seconds.items())
        print(f"{side:<32}{batch_ms / 1000:>10.1f}   {used}", flush=True)
    bench.drop(topic)


def _medians(
    bench: Bench,
    sides: Mapping[str, dict[str, str] | None],
    job: Callable[[dict[str, str] | None], Sequence[float]],
) -> dict[str, list[float]]:
    """The medians of what a job gives for each side, in turn, after a warm-up."""
    seen: dict[str, list[Sequence[float]]] = {side: [] for side in sides}
    for _ in range(bench.runs + 1):
        for side, more in sides.items():
            seen[side].append(job(more))
    return {
        side: [statistics.median(run) for run in zip(*runs[1:], strict=True)]
        for side, runs in seen.items()
    }


def _batch_ms(
    bench: Bench,
    topic: str,
    more: dict[str, str] | None,
    limit: Mapping[str, str],
    warm_up: int = _WARM_UP,
) -> list[float]:
    """The median of a query's micro-batches."""
    query = _started(bench, _loaded(bench, topic, more, limit))
    query.awaitTermination()
    batches = [each["durationMs"]["triggerExecution"] for each in query.recentProgress]
    return [statistics.median(batches[warm_up:])]


def _start_ms(bench: Bench, topic: str, more: dict[str, str] | None) -> list[float]:
    """Loading a stream, and from its start to the end of its first batch."""
    begin = time.monotonic()
    frame = _loaded(bench, topic, more, {})
    loaded = time.monotonic()
    query = _started(bench, frame)
    while not query.recentProgress:
        time.sleep(0.005)
    done = time.monotonic()
    query.awaitTermination()
    return [(loaded - begin) * 1000, (done - loaded) * 1000]


def _loaded(
    bench: Bench, topic: str, more: dict[str, str] | None, limit: Mapping[str, str]
) -> DataFrame:
    reader = bench.spark.readStream.options(**limit)
    load = read_theirs if more is None else read_ours
    return load(_CASE, reader, bench.options(topic) | (more or {}))


def _started(bench: Bench, frame: DataFrame) -> StreamingQuery:
    checkpoint = str(bench.folder / uuid.uuid4().hex)
    writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def _show_imports() -> None:
    """What a new Python process takes until it has imported what it needs."""
    print("\na Python process that imports, and ends, ms")
    for what, code in _IMPORTS.items():
        print(f"{what:<32}{statistics.median(_process_ms(code) for _ in range(5)):>10,.0f}")


def _process_ms(code: str) -> float:
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
    return (time.monotonic() - begin) * 1000
