"""Spark data source reader for streaming reads: with read limits since PySpark 4.2, without them before.

Only the checkpoint says where a query is: positions derive from ``start``, the broker and the options.
Attributes of the reader save requests to the broker, and are computed again after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import check_read_sides, format_options
from pyspark_upsert_kafka.connector.planning.batch_ends import BatchEnds
from pyspark_upsert_kafka.connector.planning.first_look import warn_of_no_rows
from pyspark_upsert_kafka.connector.planning.query_start import (
    accept_loss,
    ends_of,
    first_ranges,
    remaining_ranges,
)
from pyspark_upsert_kafka.connector.planning.topic_observer import Observer
from pyspark_upsert_kafka.connector.schema_inference import watching
from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, WallClock, now_ms
from pyspark_upsert_kafka.core.error_modes import modes_that
from pyspark_upsert_kafka.core.errors import CheckpointError, OptionError, warn_once
from pyspark_upsert_kafka.core.options.frozen_options import Limits, ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    INITIAL,
    Positions,
    Range,
    StreamOffset,
    ranges_between,
    stream_offset,
)
from pyspark_upsert_kafka.core.positions.planning import (
    advanced,
    backlog,
    split,
    spread,
    with_new_partitions,
)
from pyspark_upsert_kafka.core.positions.progress import bad_messages, latest_offset
from pyspark_upsert_kafka.core.table import Table, table_to_read

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

logger = logging.getLogger("pyspark_upsert_kafka")


class StreamReader(DataSourceStreamReader):
    """Plans micro-batches; `read_ranges` reads them in the tasks.

    Args:
        table: What is read.
        options: How it is read.
        clock: Says when the brokers are asked again; it is pickled with the reader.
    """

    def __init__(self, table: Table, options: ReadOptions, clock: WallClock = SYSTEM_CLOCK) -> None:
        check_read_sides(table, options)
        self._table = table
        self._options = options
        self._observer = Observer(options, clock)
        self._first: StreamOffset | None = None
        self._planned_ms: int | None = None
        self._target: Positions | None = None
        self._last_batch_at = float("-inf")
        self._resumed = False
        self._idle_at: dict[str, Any] | None = None
        self._waits = False
        self._ends = BatchEnds(self._observer, options)

    def initialOffset(self) -> dict[str, Any]:
        """The same offset for every query: the end of the first batch says where the query really starts."""
        return INITIAL

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each Kafka partition with anything new, unless options want more or fewer."""
        ranges = self.ranges(start, end)
        if ranges and ranges[0].share is None:
            ranges = split(ranges, self._options.min_partitions)
        return [InputPartition(each) for each in spread(ranges, self._options.max_partitions)]

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> list[Range]:
        """What is read between two offsets: all changes, or of the table with which the query begins all offsets and shares of the keys."""
        before, after = stream_offset(start), stream_offset(end)
        if after is None or after == before:
            return []
        options = self._options
        planned = ranges_between(before, after)
        view = self._observer.view(after, wanted=ends_of(planned, after.topic_ids))
        ranges = remaining_ranges(planned, after.topic_ids, view, options)
        if not after.is_table:
            return ranges
        _check_reads_table(options)
        cluster = self._observer.cluster
        return first_ranges(cluster, ranges, after.stop, options, self._planned_ms)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's ranges."""
        from pyspark_upsert_kafka.connector.reading.task_reading import read_ranges

        ranges, options = cast("tuple[Range, ...]", partition.value), self._options
        if ranges[0].share is not None:
            options = replace(options, mode="snapshot")
        return read_ranges(ranges, self._table, options)

    def commit(self, end: dict[str, Any]) -> None:
        """Commits the end of a finished batch to the consumer group, for Kafka's tools: the query never reads it."""
        offset = stream_offset(end)
        if offset is not None and offset.positions and "group.id" in self._options.table.properties:
            self._observer.cluster.commit(offset.positions)

    def stop(self) -> None:
        """Ends the connection; Spark does not call this."""
        self._observer.close()

    def discover_again(self) -> None:
        """Lets the next end be one with all new partitions: those that an earlier one had may not be read."""
        self._observer.forget_discovery()

    def next_offset(self, start: dict[str, Any], limits: Limits) -> dict[str, Any]:
        """The end of the next batch, or ``start`` itself when there is nothing new.

        Spark compares offsets as text: the same positions spelled differently would start a batch.
        """
        asked_at = self._observer.clock.monotonic()
        end = self._end(start, limits)
        # "Nothing new" is said of a view after the question, for ``processAllAvailable``; and as Spark asks again
        # at once, waiting for the next view costs nothing.
        while end is start and self._target is None and not self._observer.looked_since(asked_at):
            if not self._observer.wait_until_stale():
                return start
            end = self._end(start, limits)
        return end

    def _end(self, start: dict[str, Any], limits: Limits) -> dict[str, Any]:
        """What `next_offset` returns, taken from a view that may be a moment old."""
        if self._is_idle_at(start):
            return start
        warn_once(*self._options.warnings)
        before = stream_offset(start)
        if before is None:
            now, view = self._beginning()
            limits = Limits() if now.is_table else limits
        else:
            now, view = self._current(before)
        # A new begin of a partition must get into the checkpoint, even by a batch without rows.
        moved = before is None or bool(now.begins) or now.positions != before.positions
        if not moved and self._waits_for_more(now, view, limits):
            return self._idle(start, waits=True)
        end = self._ends.end(now, view, limits, self._target)
        if not moved and end.positions == now.positions:
            return self._idle(start)
        self._last_batch_at = self._observer.clock.monotonic()
        return end.to_json()

    def _is_idle_at(self, start: dict[str, Any]) -> bool:
        """Whether there was nothing new at this start and nothing has changed since."""
        if self._idle_at is None or start != self._idle_at:
            return False
        observer = self._observer
        if observer.is_fresh:
            return True
        return not (self._waits or observer.discovery_is_due) and observer.is_unchanged()

    def _idle(self, start: dict[str, Any], *, waits: bool = False) -> dict[str, Any]:
        """Remembers that there is nothing new at this start, or (``waits``) less than ``minOffsetsPerTrigger``."""
        self._idle_at, self._waits = start, waits
        return start

    def _beginning(self) -> tuple[StreamOffset, ClusterView]:
        """Where a new query starts; it stays the same until its first batch is planned."""
        if self._first is None:
            # With ``availableNow``, the end was fixed before.
            self._planned_ms = now_ms(self._observer.clock) if self._target is None else None
            self._first = replace(self._observer.begin(), is_table=self._options.table_first)
            view = self._observer.view(self._first)
            warn_of_no_rows(self._table, self._options, _all_of(view))
        view = self._observer.view(self._first)
        self._resume(self._first, view)
        return self._first, view

    def _current(self, before: StreamOffset) -> tuple[StreamOffset, ClusterView]:
        """The position of the query, after partitions that were lost or added since the last batch."""
        discovers = before.stop is None and self._observer.discovery_is_due
        view = self._observer.discover(before) if discovers else self._observer.view(before)
        if not self._resumed:
            _warn_of_changed_end(before, self._options)
        self._resume(before, view)
        now = accept_loss(replace(before, begins={}, is_table=False), view, self._options)
        if before.stop is None and (discovers or now.begins):
            now = with_new_partitions(now, view)
        return now, view

    def _waits_for_more(self, now: StreamOffset, view: ClusterView, limits: Limits) -> bool:
        if limits.min_offsets is None or self._target is not None:
            return False
        waited = self._observer.clock.monotonic() - self._last_batch_at
        return waited < limits.max_delay_s and (
            backlog(now.positions, advanced(now, view).positions) < limits.min_offsets
        )

    def freeze_target(self) -> None:
        """``availableNow``: this run reads up to the latest offsets of this moment."""
        self._target = self._observer.current().latest

    def _resume(self, start: StreamOffset, view: ClusterView) -> None:
        """Done once per run, at the start of a new query or at the checkpoint."""
        if not self._resumed and self._target is not None:
            # The view that fixed the end may have missed partitions that are known here.
            missed = {tp: at for tp, at in view.latest.items() if tp in start.positions}
            self._target = {**missed, **self._target}
        self._resumed = True


def _check_reads_table(options: ReadOptions) -> None:
    """Refuses options with which no query would have begun with the table, before it has ended its first batch."""
    if options.mode == "append" or options.shows_images or options.bad_messages_become == "column":
        raise CheckpointError(
            "The first batch of this checkpoint is the table ('scan.startup.mode' = 'full') and is not finished, and a table "
            f"cannot be read with 'read.mode' = 'append', without a primary key, or with 'error-handling.mode' = {modes_that('column')}. Start "
            "the query with the options with which it began, or with a new checkpoint."
        )


def _warn_of_changed_end(before: StreamOffset, options: ReadOptions) -> None:
    is_bounded, wants_end = before.stop is not None, options.end.mode != "unbounded"
    if wants_end and not is_bounded:
        logger.warning(
            "'scan.bounded.mode' = %r has no effect: the checkpoint is that of a stream without an end, and "
            "the end is fixed when a query first starts. To read up to an end, start with a new "
            "checkpoint.",
            options.end.mode,
        )
    if is_bounded and not wants_end:
        logger.warning(
            "The stream ends where it was planned to end when it first started: the checkpoint is that of a stream "
            "with 'scan.bounded.mode', which the options no longer have. To read past that end, start with a new "
            "checkpoint."
        )


_NO_LIMITS = Limits()
_ANY_NUMBER = 2**63 - 1


def stream_reader(
    schema: StructType, raw: Mapping[str, str], inferred_ms: int | None = None
) -> StreamReader:
    """The stream reader for the PySpark that is installed.

    Args:
        schema: The columns.
        raw: The options, by name.
        inferred_ms: When the columns were inferred, in ms since the epoch; None = they were given.

    Raises:
        OptionError: An option is wrong, or needs a newer PySpark.
        SchemaError: Columns, key or types do not fit, or were inferred long ago.
    """
    options = watching(read_options(raw, format_options, stream=True), schema, inferred_ms)
    table = table_to_read(schema, options)
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
        # Trigger.Once asks for all there is: any other limit is distinguished from it.
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
        self.freeze_target()


class ReaderWithoutLimits(StreamReader):
    """PySpark 4.0 and 4.1: Spark does not pass the start when it asks for the end of the next batch.

    But it plans each batch before it asks again, and a restarted query first plans the empty batch from
    the checkpoint's latest offset to itself.
    """

    def __init__(self, table: Table, options: ReadOptions, clock: WallClock = SYSTEM_CLOCK) -> None:
        if options.limits:
            raise OptionError(
                "'maxOffsetsPerTrigger', 'maxBytesPerTrigger', 'minOffsetsPerTrigger' and "
                "'scan.watermark.alignment.max-drift' need PySpark 4.2 or newer: the Python data source API of 4.0 and 4.1 does not support read limits."
            )
        super().__init__(table, options, clock)
        self._now = INITIAL

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        """The end of the next batch, or the last one's when there is nothing new."""
        return self.next_offset(self._now, _NO_LIMITS)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each Kafka partition with anything new, unless options want more or fewer."""
        self._now = end
        return super().partitions(start, end)


def _all_of(view: ClusterView) -> list[Range]:
    """All that the topics hold."""
    return [
        Range(*tp, each.earliest, each.latest, view.topic_ids[tp.topic])
        for tp, each in sorted(view.bounds.items())
    ]
