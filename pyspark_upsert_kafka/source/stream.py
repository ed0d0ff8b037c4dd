"""Spark's face of a streaming read.

Nothing but the checkpoint says where a query is: positions derive from ``start``, the broker and the
options. What is kept on the instance saves questions to the broker, and is made anew after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from pyspark_upsert_kafka.core.offsets import (
    INITIAL,
    Positions,
    Range,
    StreamOffset,
    ranges_between,
    stream_offset,
)
from pyspark_upsert_kafka.core.options import Limits, ReadOptions
from pyspark_upsert_kafka.core.planning import (
    ClusterView,
    advanced,
    backlog,
    split,
    with_new_partitions,
)
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.client import Cluster
from pyspark_upsert_kafka.source.loss import accept_loss, starting, still_there
from pyspark_upsert_kafka.source.observer import Observer
from pyspark_upsert_kafka.source.rows import RowDecoder
from pyspark_upsert_kafka.source.task import read_range

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader):
    """Plans micro-batches; `read_range` reads them in the tasks."""

    def __init__(self, table: Table, options: ReadOptions) -> None:
        # Refuses, while planning, types that a format cannot read.
        RowDecoder(table, options, "UTC")
        self._table = table
        self._options = options
        self._observer = Observer(options)
        self._first: StreamOffset | None = None
        self._target: Positions | None = None
        self._last_batch_at = float("-inf")

    def initialOffset(self) -> dict[str, Any]:
        """The same for every query: where it really starts stands in its first batch's end."""
        return INITIAL

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each Kafka partition with anything new, or more with minPartitions."""
        before, after = stream_offset(start), stream_offset(end)
        if after is None or after == before:
            return []
        planned = ranges_between(before, after)
        view = self._observer.view(after)
        ranges = still_there(planned, after.topic_ids, view, self._options)
        return [InputPartition(range_) for range_ in split(ranges, self._options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range."""
        return read_range(cast("Range", partition.value), self._table, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Tells Kafka's own tools how far finished batches are; the checkpoint alone decides."""
        offset = stream_offset(end)
        if offset is not None and offset.positions and "group.id" in self._options.table.properties:
            self._observer.cluster.commit(offset.positions)

    def _next(self, start: dict[str, Any], limits: Limits) -> dict[str, Any]:
        """The end of the next batch, or ``start`` itself when there is nothing new.

        Spark compares offsets by their text: the same positions in other words would be a batch.
        """
        warn_once(*self._options.warnings)
        before = stream_offset(start)
        if before is None:
            now, view = self._beginning()
        else:
            now, view = self._current(before)
        # Where reading begins anew must get into the checkpoint, even by a batch without rows.
        moved = before is None or bool(now.begins) or now.positions != before.positions
        if not moved and self._waits_for_more(now, view, limits):
            return start
        end = advanced(now, view, max_offsets=limits.max_offsets, target=self._target)
        if not moved and end.positions == now.positions:
            return start
        self._last_batch_at = time.monotonic()
        return end.to_json()

    def _beginning(self) -> tuple[StreamOffset, ClusterView]:
        """Where a new query starts: the same place until its first batch is planned."""
        if self._first is None:
            view = self._observer.first_view()
            self._first = _first(self._observer.cluster, view, self._options)
        return self._first, self._observer.view(self._first)

    def _current(self, before: StreamOffset) -> tuple[StreamOffset, ClusterView]:
        """Where reading is: partitions that are lost or new since the last batch included."""
        discovers = before.stop is None and self._observer.discovery_is_due
        view = self._observer.discover(before) if discovers else self._observer.view(before)
        now = accept_loss(replace(before, begins={}), view, self._options)
        if before.stop is None and (discovers or now.begins):
            now = with_new_partitions(now, view)
        return now, view

    def _waits_for_more(self, now: StreamOffset, view: ClusterView, limits: Limits) -> bool:
        if limits.min_offsets is None or self._target is not None:
            return False
        waited = time.monotonic() - self._last_batch_at
        return waited < limits.max_delay_s and (
            backlog(now.positions, advanced(now, view).positions) < limits.min_offsets
        )

    def _freeze_target(self) -> None:
        """``availableNow``: what is there at this moment is all that this run reads."""
        self._target = self._observer.everything().latest


def _first(cluster: Cluster, view: ClusterView, options: ReadOptions) -> StreamOffset:
    """Where a new query starts and, for a bounded one, where it stops.

    A partition that ``specific-offsets`` does not name starts at its earliest offset, as in Flink.
    """
    earliest = {tp: bounds.earliest for tp, bounds in view.bounds.items()}
    named = cluster.positions(options.start, view)
    start = starting({**earliest, **named}, view, options)
    if options.end.kind == "unbounded":
        return start
    stop = cluster.positions(options.end, view)
    begins = {tp: at for tp, at in start.positions.items() if tp in stop}
    return replace(start, positions=begins, begins=begins, stop=stop)
