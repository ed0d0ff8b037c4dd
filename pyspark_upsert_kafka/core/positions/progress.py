"""What micro-batches of a query have read of our sources and written by our sinks, and the sums over them: from Spark's progress.

Spark reports a query's progress as JSON (``StreamingQueryProgress.json``), the same in a classic session and over Spark
Connect. Of a Python source it has three offsets, which are ours (``core/positions/offsets.py``), and the number of rows. The latest
offset is the only one that is in no checkpoint, so it also says what happens to bad messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_upsert_kafka.core.error_modes import BadMessages
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    StreamOffset,
    TopicPartition,
    stream_offset,
)

_STABLE = "stable"
"""The name in the latest offset of where readers of committed messages end, in partitions with open transactions."""

_BAD_MESSAGES = "bad_messages"
"""The name in the latest offset, and that of a metric which a query observes."""

_PYTHON_SINK = "datasources.v2.python."
"""What Spark's description of a sink has if that is one in Python: the name of a class of Spark."""

_MS = 1000


@dataclass(frozen=True)
class Written:
    """What was written to topics.

    Args:
        rows: Messages with a value.
        tombstones: Messages without one.
        size: The bytes of their keys and values.
    """

    rows: int = 0
    tombstones: int = 0
    size: int = 0

    @classmethod
    def sum(cls, parts: Iterable[Written]) -> Written:
        """All parts together.

        >>> Written.sum([Written(2, 1, 30), Written(1, 0, 7)])
        Written(rows=3, tombstones=1, size=37)
        """
        found = list(parts)
        return cls(
            sum(part.rows for part in found),
            sum(part.tombstones for part in found),
            sum(part.size for part in found),
        )

    def __str__(self) -> str:
        """In words.

        >>> str(Written(12_000, 3, 1_234_567))
        '12,000 rows, 3 tombstones, 1,234,567 bytes'
        """
        return f"{self.rows:,} rows, {self.tombstones:,} tombstones, {self.size:,} bytes"


@dataclass(frozen=True)
class SourceBatch:
    """What a micro-batch read of one source.

    Args:
        positions: Per partition, the next offset to read after this batch.
        lag: Per partition, how many offsets there were beyond that when the batch was planned (of a bounded stream: up
            to its end), those that wait for open transactions among them; None = not known: the partition is new or gone, the batch runs again after a restart, or Spark is
            older than 4.2.
        rows: How many rows Spark took from the source; what is read twice counts twice.
        rows_per_second: Rows by the whole duration of the batch, as Spark computes it; None = not known.
        bad_messages: How many messages could not be decoded; None = not known.
        waiting: Per partition, how much of the lag waits for open transactions; None = not known.
    """

    positions: Positions
    lag: Mapping[TopicPartition, int | None]
    rows: int
    rows_per_second: float | None
    bad_messages: int | None
    waiting: Mapping[TopicPartition, int | None] = field(default_factory=dict)

    @property
    def total_lag(self) -> int | None:
        """The lag of all partitions together; None = that of some partition is not known."""
        return _total(self.lag)

    @property
    def total_waiting(self) -> int | None:
        """How much of it waits for open transactions; None = of some partition it is not known."""
        return _total(self.waiting)

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


def _total(numbers: Mapping[TopicPartition, int | None]) -> int | None:
    known = [number for number in numbers.values() if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _line(source: SourceBatch) -> str:
    first, *others = source.topics or ["no topic"]
    more = f" and {len(others)} more" if others else ""
    speed = "" if source.rows_per_second is None else f", {source.rows_per_second:,.0f}/s"
    lag, bad = _number(source.total_lag), _number(source.bad_messages)
    waiting = source.total_waiting
    waits = f" ({waiting:,} in open transactions)" if waiting else ""
    return f"{first}{more} {source.rows:,} rows{speed}, lag {lag}{waits}, bad {bad}"


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def bad_messages(options: ReadOptions) -> BadMessages:
    """What happens to bad messages, with those that a format skips by ``ignore-parse-errors`` included."""
    formats = (options.table.key_format, options.table.value_format)
    skips = any(each and dict(each.options).get("ignore-parse-errors") for each in formats)
    return "skip" if skips else options.bad_messages_become


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
