"""What Spark's progress of a streaming query says about our sources, and what our sinks have told beside it.

Spark reports a query's progress as JSON (``StreamingQueryProgress.json``), the same in a classic session and over Spark
Connect. Of a Python source it has three offsets, which are ours (``core/positions/offsets.py``), and the number of rows. The latest
offset is the only one that is in no checkpoint, so it also says what happens to bad messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    StreamOffset,
    TopicPartition,
    stream_offset,
)
from pyspark_upsert_kafka.core.written import Written

BadMessages = Literal["fail", "column", "skip"]
"""What happens to a bad message: the query fails, it is a row with ``_error``, or it is left out."""

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


def latest_offset(latest: StreamOffset, bad: BadMessages) -> dict[str, Any]:
    """What a source reports as its latest offset."""
    return {**latest.to_json(), _BAD_MESSAGES: bad}


@dataclass(frozen=True)
class SourceBatch:
    """What a micro-batch read of one source.

    Args:
        positions: Per partition, the next offset to read after this batch.
        lag: Per partition, how many offsets there were beyond that when the batch was planned (of a bounded stream: up
            to its end); None = not known: the partition is new or gone, the batch runs again after a restart, or Spark is
            older than 4.2.
        rows: How many rows Spark took from the source; what is read twice counts twice.
        rows_per_second: Rows by the whole duration of the batch, as Spark computes it; None = not known.
        bad_messages: How many messages could not be decoded; None = not known.
    """

    positions: Positions
    lag: Mapping[TopicPartition, int | None]
    rows: int
    rows_per_second: float | None
    bad_messages: int | None

    @property
    def total_lag(self) -> int | None:
        """The lag of all partitions together; None = that of some partition is not known."""
        known = [lag for lag in self.lag.values() if lag is not None]
        return sum(known) if len(known) == len(self.lag) else None

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({tp.topic for tp in self.lag})


@dataclass(frozen=True)
class QueryBatch:
    """What a micro-batch of a query read of our sources, and wrote by our sinks.

    Args:
        query_id: The query's id, which a restart keeps.
        name: The query's name; without one its id.
        number: The number of the batch.
        seconds: How long it took.
        sources: Our sources, in the order of the query; others are left out.
        written: What our sinks have written; None = not known, or the query has another sink.
        has_python_sink: Whether it writes to a Python sink, as ours is.
    """

    query_id: str
    name: str
    number: int
    seconds: float
    sources: tuple[SourceBatch, ...]
    written: Written | None = None
    has_python_sink: bool = False

    def __str__(self) -> str:
        """One line for a person."""
        parts = [*map(_line, self.sources)]
        if self.written is not None or self.has_python_sink or not self.sources:
            parts.append(f"wrote {self.written or 'unknown'}")
        return f"{self.name}, batch {self.number} ({self.seconds:.1f} s): {'; '.join(parts)}"


@dataclass(frozen=True)
class SourceTotals:
    """Rows and bad messages of one source.

    Args:
        rows: The rows of all batches.
        bad_messages: The bad messages of the batches of which they are known; None = of no batch yet. A batch that runs
            again after a kill is not known: Spark reports no latest offset of it.
    """

    rows: int = 0
    bad_messages: int | None = None

    def plus(self, batch: SourceBatch) -> SourceTotals:
        """With one more batch.

        >>> batch = SourceBatch({}, {}, rows=3, rows_per_second=1.0, bad_messages=None)
        >>> SourceTotals(rows=2, bad_messages=1).plus(batch)
        SourceTotals(rows=5, bad_messages=1)
        """
        known = [bad for bad in (self.bad_messages, batch.bad_messages) if bad is not None]
        return SourceTotals(self.rows + batch.rows, sum(known) if known else None)


@dataclass(frozen=True)
class QueryTotals:
    """The newest micro-batch of a query, and what all of them together have read and written.

    Args:
        newest: The newest micro-batch.
        sources: What all have read, for each source.
        written: What those have written of which that is known; None = it is known of none yet.
    """

    newest: QueryBatch
    sources: tuple[SourceTotals, ...]
    written: Written | None = None

    @classmethod
    def first(cls, batch: QueryBatch) -> QueryTotals:
        """After one micro-batch."""
        sources = tuple(SourceTotals().plus(source) for source in batch.sources)
        return cls(batch, sources, batch.written)

    def followed_by(self, batch: QueryBatch) -> QueryTotals:
        """After one more; they begin anew when the query was started again with more or fewer sources."""
        if len(batch.sources) != len(self.sources):
            return QueryTotals.first(batch)
        both = zip(self.sources, batch.sources, strict=True)
        known = [each for each in (self.written, batch.written) if each is not None]
        return QueryTotals(
            batch,
            tuple(totals.plus(source) for totals, source in both),
            Written.sum(known) if known else None,
        )


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
    return SourceBatch(
        positions=end.positions,
        lag=_lag(end, {} if latest is None else latest.positions),
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


def _reported_bad(source: Mapping[str, Any]) -> BadMessages | None:
    """What the source says of bad messages; None = Spark does not report it: before 4.2, and of a batch that runs again."""
    reported: BadMessages | None = (source["latestOffset"] or {}).get(_BAD_MESSAGES)
    return reported


def _observed(progress: Mapping[str, Any]) -> int | None:
    """The metric ``bad_messages`` that the query observes; None = it observes none, or it is no whole number."""
    metrics = progress.get("observedMetrics", {}).values()
    counts = [count for each in metrics if each and (count := each.get(_BAD_MESSAGES)) is not None]
    return sum(counts) if counts and all(type(count) is int for count in counts) else None


def _line(source: SourceBatch) -> str:
    first, *others = source.topics or ["no topic"]
    more = f" and {len(others)} more" if others else ""
    speed = "" if source.rows_per_second is None else f", {source.rows_per_second:,.0f}/s"
    lag, bad = _number(source.total_lag), _number(source.bad_messages)
    return f"{first}{more} {source.rows:,} rows{speed}, lag {lag}, bad {bad}"


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
