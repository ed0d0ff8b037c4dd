"""The two forms in which Spark asks a stream reader: with limits since PySpark 4.2, without before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.offsets import INITIAL, StreamOffset, stream_offset
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.planning import advanced, with_new_partitions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.source.loss import accept_loss
from pyspark_upsert_kafka.source.stream import StreamReader

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit


def stream_reader(table: Table, options: ReadOptions) -> StreamReader:
    """The stream reader for the PySpark that is installed.

    Raises:
        OptionError: An option needs a newer one.
    """
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:
        return ReaderWithoutLimits(table, options)
    SupportsTriggerAvailableNow.register(ReaderWithLimits)
    return ReaderWithLimits(table, options)


class ReaderWithLimits(StreamReader):
    """PySpark 4.2 and newer: Spark says where the query is and how much it may read."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit as Spark knows it; Trigger.Once puts another in its place."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        most = self._options.limits.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch, or ``start`` itself when there is nothing new."""
        return self._next(start, getattr(limit, "max_rows", None))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What the broker has, for the query's progress: the lag is what lies between."""
        view = self._observer.last_view
        return (
            None if view is None else StreamOffset(view.latest, topic_ids=view.topic_ids).to_json()
        )

    def prepareForTriggerAvailableNow(self) -> None:
        """Fixes the end of this run."""
        self._freeze_target()


class ReaderWithoutLimits(StreamReader):
    """PySpark 4.0 and 4.1: Spark does not say where the query is when it asks how far it may go.

    So that is remembered from the batch planned last. After a restart there is none yet, and all that
    is there is offered; `partitions`, which is told the start, then sets it right.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        if options.limits or options.end.kind != "unbounded":
            raise OptionError(
                "'maxOffsetsPerTrigger', 'minOffsetsPerTrigger' and 'scan.bounded.mode' of a stream "
                "need PySpark 4.2 or newer: the Python data source API of 4.0 and 4.1 has no word for "
                "limits."
            )
        super().__init__(table, options)
        self._now: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Asked of a query that has finished no batch."""
        self._now = INITIAL
        return super().initialOffset()

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """How far the next batch may go."""
        if self._now is None:
            view = self._observer.everything()
            return StreamOffset(view.latest, topic_ids=view.topic_ids).to_json()
        self._now = self._next(self._now, None)
        return self._now

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each Kafka partition with anything new, or more with minPartitions."""
        before, after = stream_offset(start), stream_offset(end)
        if self._now is None and before is not None and after is not None:
            view = self._observer.view(after)
            known = accept_loss(replace(before, begins={}), view, self._options)
            after = advanced(with_new_partitions(known, view), view, target=after.positions)
        self._now = end
        return self._planned(before, after)
