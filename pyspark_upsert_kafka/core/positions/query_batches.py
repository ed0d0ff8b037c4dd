"""What micro-batches of a query have read of our sources and written by our sinks, and the sums over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.written import Written


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
