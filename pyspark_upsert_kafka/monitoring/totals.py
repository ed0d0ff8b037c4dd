"""What a running query has read since a listener knows it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_upsert_kafka.core.positions.progress import QueryBatch, SourceBatch


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
    """The newest micro-batch of a query, and for each of its sources what all of them have read together."""

    newest: QueryBatch
    sources: tuple[SourceTotals, ...]

    @classmethod
    def first(cls, batch: QueryBatch) -> QueryTotals:
        """After one micro-batch."""
        return cls(batch, tuple(SourceTotals().plus(source) for source in batch.sources))

    def followed_by(self, batch: QueryBatch) -> QueryTotals:
        """After one more; they begin anew when the query was started again with more or fewer sources."""
        if len(batch.sources) != len(self.sources):
            return QueryTotals.first(batch)
        both = zip(self.sources, batch.sources, strict=True)
        return QueryTotals(batch, tuple(totals.plus(source) for totals, source in both))
