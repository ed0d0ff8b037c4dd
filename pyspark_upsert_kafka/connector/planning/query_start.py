"""Where a query starts and ends, and where it continues when data is lost (``failOnDataLoss``), in streams and batches alike."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark_upsert_kafka.connector.planning.removed_past import removed_past
from pyspark_upsert_kafka.core.clock import Clock
from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.data_loss import (
    is_other_topic,
    lost_data,
    recovered,
    unconfirmed_losses,
)
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    Range,
    StreamOffset,
    TopicPartition,
    not_empty,
)
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.fetching.loss_checks import LossChecks

logger = logging.getLogger("pyspark_upsert_kafka")


def start_offset(
    cluster: Cluster, options: ReadOptions, clock: Clock = time
) -> tuple[StreamOffset, ClusterView]:
    """Where a new query starts and, for a bounded one, where it stops; and the view of its topics.

    A partition that ``specific-offsets`` does not name starts at its earliest offset, as in Flink; in a
    bounded query, a partition without an end is not read. A warning is logged if the table as of its end is not known any more.

    Args:
        cluster: Says what there is.
        options: How it is read.
        clock: For the pauses before something counts as lost.

    Raises:
        BrokerError: No broker answers, or a named topic does not exist.
        DataLossError: A wanted start is gone, and ``failOnDataLoss`` is true.
    """

    def current_view() -> ClusterView:
        topics = cluster.topics(options.table.topics)
        return cluster.view(topics, read_committed=options.read_committed)

    checks = LossChecks(clock)
    view = checks.until_certain(current_view(), partial(_missing_topics, options), current_view)
    wanted = _start(cluster, view, options)
    view = checks.until_certain(view, partial(unconfirmed_losses, wanted), current_view)
    start = checked_start(wanted, view, options)
    if options.end.mode == "unbounded":
        return start, view
    stop = cluster.positions(options.end, view)
    removed = removed_past(stop, view, options)
    if removed is not None:
        logger.warning("%s. %s.", removed.text, removed.advice)
    begins = {tp: at for tp, at in start.positions.items() if tp in stop}
    return replace(start, positions=begins, begins=begins, stop=stop), view


def _missing_topics(options: ReadOptions, view: ClusterView) -> set[str]:
    """Topics that existed when their names were looked up, and no longer when their offsets were."""
    return {name for name in options.table.topics.names if name not in view.topic_ids}


def _start(cluster: Cluster, view: ClusterView, options: ReadOptions) -> StreamOffset:
    earliest = {tp: bounds.earliest for tp, bounds in view.bounds.items()}
    named = cluster.positions(options.start, view)
    return StreamOffset({**earliest, **named}, topic_ids=view.topic_ids)


def accept_loss(offset: StreamOffset, view: ClusterView, options: ReadOptions) -> StreamOffset:
    """The offset itself when nothing of what it needs is lost; else where to continue.

    Raises:
        DataLossError: Something is lost, and ``failOnDataLoss`` is true.
    """
    lost = lost_data(offset, view)
    _raise_or_warn(lost, options)
    return recovered(offset, view) if lost else offset


def checked_start(wanted: StreamOffset, view: ClusterView, options: ReadOptions) -> StreamOffset:
    """Where a new query starts, after checking that the wanted offsets exist.

    Raises:
        DataLossError: They do not, and ``failOnDataLoss`` is true.
    """
    found = accept_loss(wanted, view, options)
    return replace(found, begins=found.positions)


def ends_of(ranges: Sequence[Range], topic_ids: Mapping[str, str]) -> StreamOffset:
    """The ends of planned ranges as an offset: what must exist for them to be read."""
    ends = {TopicPartition(r.topic, r.partition): r.end for r in ranges}
    return StreamOffset(ends, topic_ids=topic_ids)


def remaining_ranges(
    ranges: Sequence[Range], topic_ids: Mapping[str, str], view: ClusterView, options: ReadOptions
) -> list[Range]:
    """The ranges, or with ``failOnDataLoss`` = false what remains of them.

    A batch may have been planned long before it is read, by a run that crashed.

    Raises:
        DataLossError: Something is lost, and ``failOnDataLoss`` is true.
    """
    begins: Positions = {TopicPartition(r.topic, r.partition): r.begin for r in ranges}
    lost_ends = lost_data(ends_of(ranges, topic_ids), view)
    lost_begins = lost_data(StreamOffset(begins, topic_ids=topic_ids), view)
    _raise_or_warn({**lost_ends, **lost_begins}, options)
    return not_empty(_remaining(range_, topic_ids, view) for range_ in ranges)


def _raise_or_warn(lost: Mapping[TopicPartition, DataLossError], options: ReadOptions) -> None:
    for loss in lost.values():
        if options.fail_on_data_loss:
            raise loss
        logger.warning("%s", loss.warning())


def _remaining(range_: Range, topic_ids: Mapping[str, str], view: ClusterView) -> Range:
    bounds = view.bounds.get(TopicPartition(range_.topic, range_.partition))
    seen = view.topic_ids.get(range_.topic, "")
    if bounds is None or is_other_topic(topic_ids.get(range_.topic, ""), seen):
        return replace(range_, end=range_.begin)
    return replace(
        range_, begin=max(range_.begin, bounds.earliest), end=min(range_.end, bounds.high)
    )
