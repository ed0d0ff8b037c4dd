"""The two interfaces of a stream reader: with read limits since PySpark 4.2, without them before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options import Limits, ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import INITIAL
from pyspark_upsert_kafka.core.positions.progress import bad_messages, latest_offset
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.source.planning.stream import StreamReader

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

_NO_LIMITS = Limits()
_ANY_NUMBER = 2**63 - 1


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
    """PySpark 4.2 and newer: Spark passes the start of a batch and a limit."""

    _reported: tuple[ClusterView, dict[str, Any]] | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the options, if any; Trigger.Once replaces it by ReadAllAvailable."""
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadMaxBytes,
            ReadMaxRows,
            ReadMinRows,
        )

        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        # Trigger.Once asks for all there is: any other limit is told apart from it.
        return ReadMaxRows(_ANY_NUMBER) if limits else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch, or ``start`` itself when there is nothing new."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        unlimited = isinstance(limit, ReadAllAvailable)
        return self.next_offset(start, _NO_LIMITS if unlimited else self._options.limits)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The brokers' high watermarks, which the query's progress shows beside its own, for `ProgressListener`."""
        view = self._observer.last_view
        if view is None:
            return None
        if self._reported is None or self._reported[0] is not view:
            self._reported = view, latest_offset(view, bad_messages(self._options))
        return self._reported[1]

    def prepareForTriggerAvailableNow(self) -> None:
        """Fixes the end of this run."""
        self._freeze_target()


class ReaderWithoutLimits(StreamReader):
    """PySpark 4.0 and 4.1: Spark does not pass the start when it asks for the end of the next batch.

    But it plans each batch before it asks again, and a restarted query first plans the empty batch from
    the checkpoint's latest offset to itself.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        if options.limits:
            raise OptionError(
                "'maxOffsetsPerTrigger', 'maxBytesPerTrigger', 'minOffsetsPerTrigger' and "
                "'scan.watermark.alignment.max-drift' need PySpark 4.2 or newer: the Python data source API of 4.0 and 4.1 does not support read limits."
            )
        super().__init__(table, options)
        self._now = INITIAL

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """The end of the next batch, or the last one's when there is nothing new."""
        return self.next_offset(self._now, _NO_LIMITS)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each Kafka partition with anything new, unless options want more or fewer."""
        self._now = end
        return super().partitions(start, end)
