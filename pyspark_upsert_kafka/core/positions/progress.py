"""What Spark's progress of a streaming query says about our sources.

Spark reports a query's progress as JSON (``StreamingQueryProgress.json``), the same in a classic session and over Spark
Connect. Of a Python source it has three offsets, which are ours (``core/positions/offsets.py``), and the number of rows. The latest
offset is the only one that is in no checkpoint, so it also says what happens to bad messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    StreamOffset,
    TopicPartition,
    stream_offset,
)
from pyspark_upsert_kafka.core.positions.query_batches import QueryBatch, SourceBatch
from pyspark_upsert_kafka.core.written import Written

BadMessages = Literal["fail", "column", "skip"]
"""What happens to a bad message: the query fails, it is a row with ``_error``, or it is left out."""

_STABLE = "stable"
"""The name in the latest offset of where readers of committed messages end, in partitions with open transactions."""

_BAD_MESSAGES = "bad_messages"
"""The name in the latest offset, and that of a metric which a query observes."""

_PYTHON_SINK = "datasources.v2.python."
"""What Spark's description of a sink has if that is one in Python: the name of a class of Spark."""

_MS = 1000


def bad_messages(options: ReadOptions) -> BadMessages:
    """What happens to bad messages, with those that a format skips by ``ignore-parse-errors`` included.

    A mode of ``error-handling.mode`` that is not named here counts as ``skip``.
    """
    formats = (options.table.key_format, options.table.value_format)
    skips = any(each and dict(each.options).get("ignore-parse-errors") for each in formats)
    mode = options.error_mode
    return mode if mode in ("fail", "column") and not skips else "skip"


def latest_offset(view: ClusterView, bad: BadMessages) -> dict[str, Any]:
    """What a source reports as its latest offset: the high watermarks, and what of them waits for open transactions."""
    latest = StreamOffset(view.high, topic_ids=view.topic_ids)
    stable: dict[str, dict[str, int]] = {}
    for tp, bounds in view.bounds.items():
        if bounds.hidden:
            stable.setdefault(tp.topic, {})[str(tp.partition)] = bounds.latest
    return {**latest.to_json(), _BAD_MESSAGES: bad, _STABLE: stable}


def query_batch(progress: Mapping[str, Any], written: Written | None = None) -> QueryBatch:
    """What a query's progress says.

    Args:
        progress: As Spark's JSON.
        written: What our sinks have written in the batch; None = not known.

    Raises:
        CheckpointError: The offsets are of a later version of this package (on a Spark Connect server).
    """
    ours = [source for source in progress["sources"] if _is_ours(source["endOffset"])]
    # One count can be that of one source only.
    unsure = [source for source in ours if _reported_bad(source) != "fail"]
    observed = _observed(progress) if len(unsure) == 1 else None
    return QueryBatch(
        query_id=progress["id"],
        name=progress.get("name") or progress["id"],
        number=progress["batchId"],
        seconds=progress["batchDuration"] / _MS,
        sources=tuple(_source_batch(source, observed) for source in ours),
        written=written,
        has_python_sink=_PYTHON_SINK in progress.get("sink", {}).get("description", ""),
    )


def _is_ours(offset: object) -> bool:
    """Whether an offset has the form of `StreamOffset.to_json`."""
    if not isinstance(offset, dict) or "version" not in offset:
        return False
    topics = offset.get("topics")
    return isinstance(topics, dict) and all(
        isinstance(block, dict) and {"id", "positions"} <= block.keys() for block in topics.values()
    )


def _source_batch(source: Mapping[str, Any], observed: int | None) -> SourceBatch:
    end = stream_offset(source["endOffset"]) or StreamOffset({})
    latest = stream_offset(source["latestOffset"])
    lag = _lag(end, {} if latest is None else latest.positions)
    return SourceBatch(
        positions=end.positions,
        lag=lag,
        waiting=_waiting(end, lag, (source["latestOffset"] or {}).get(_STABLE)),
        rows=source["numInputRows"],
        rows_per_second=source.get("processedRowsPerSecond"),
        bad_messages=0 if _reported_bad(source) == "fail" else observed,
    )


def _lag(end: StreamOffset, latest: Positions) -> dict[TopicPartition, int | None]:
    if end.stop is not None:  # it reads no new partition, and nothing past its end
        latest = {tp: min(latest[tp], at) for tp, at in end.stop.items() if tp in latest}
    return {
        tp: max(0, latest[tp] - end.positions[tp]) if tp in latest and tp in end.positions else None
        for tp in sorted({*end.positions, *latest})
    }


def _waiting(
    end: StreamOffset,
    lag: Mapping[TopicPartition, int | None],
    stable: Mapping[str, Mapping[str, int]] | None,
) -> dict[TopicPartition, int | None]:
    """How much of the lag waits for open transactions.

    Args:
        end: The end of the batch.
        lag: The lag of each partition.
        stable: Up to where partitions with open transactions can be read; None = not known.
    """
    waiting: dict[TopicPartition, int | None] = {}
    for tp, behind in lag.items():
        at = None if stable is None else stable.get(tp.topic, {}).get(str(tp.partition))
        if stable is None or behind is None:
            waiting[tp] = None
        elif at is None:
            waiting[tp] = 0
        else:
            readable = max(0, at - end.positions[tp])
            waiting[tp] = max(0, behind - readable)
    return waiting


def _reported_bad(source: Mapping[str, Any]) -> BadMessages | None:
    """What the source says of bad messages; None = Spark does not report it: before 4.2, and of a batch that runs again."""
    reported: BadMessages | None = (source["latestOffset"] or {}).get(_BAD_MESSAGES)
    return reported


def _observed(progress: Mapping[str, Any]) -> int | None:
    """The metric ``bad_messages`` that the query observes; None = it observes none, or it is no whole number."""
    metrics = progress.get("observedMetrics", {}).values()
    counts = [count for each in metrics if each and (count := each.get(_BAD_MESSAGES)) is not None]
    return sum(counts) if counts and all(type(count) is int for count in counts) else None
