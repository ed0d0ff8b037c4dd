"""Where a query starts and ends, and where it continues when data is lost (``failOnDataLoss``), in streams and batches alike.

The ranges of a table are those as of their ends; compaction may take from them before they are read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark_upsert_kafka.connector.planning.unseen_messages import removed_past
from pyspark_upsert_kafka.core.clock import Clock, now_ms, shown_time
from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.data_loss import (
    is_other_topic,
    lost_data,
    recovered,
    unconfirmed_losses,
)
from pyspark_upsert_kafka.core.positions.offsets import (
    LAST_OFFSET,
    Positions,
    Range,
    StreamOffset,
    TopicPartition,
    not_empty,
)
from pyspark_upsert_kafka.core.positions.planning import shared, shared_by_all
from pyspark_upsert_kafka.kafka.cluster import POLICY, Cluster
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks

logger = logging.getLogger("pyspark_upsert_kafka")

_LAG = "min.compaction.lag.ms"

CLOCKS_DIFFER_MS = 300_000
"""How much the clocks of a driver and its workers may differ: as much as Kerberos allows."""

_Configs = Mapping[str, Mapping[str, str]]
"""`POLICY` and `_LAG` of each topic, as far as brokers tell them."""


def start_offset(
    cluster: Cluster, options: ReadOptions, clock: Clock = time
) -> tuple[StreamOffset, ClusterView]:
    """Where a new query starts and, for a bounded one, where it stops; and the view of its topics.

    A partition that ``specific-offsets`` does not name starts at its earliest offset, as in Flink; in a
    bounded query, a partition without an end is not read. A warning is logged if messages of the
    past that is read are gone.

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
    stop = None if options.end.mode == "unbounded" else cluster.positions(options.end, view)
    removed = removed_past(start.positions, stop, view, options)
    if removed is not None:
        logger.warning("%s. %s.", removed.text, removed.advice)
    if stop is None:
        return start, view
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


def table_ranges(
    cluster: Cluster,
    ranges: Sequence[Range],
    topics: Sequence[str],
    options: ReadOptions,
    planned_ms: int,
) -> list[Range]:
    """The ranges of a batch read of the table, shared among tasks.

    If their ends are those of an earlier moment, a warning says that compaction may have removed rows.

    Args:
        cluster: Says how the topics are compacted.
        ranges: What is read.
        topics: All topics of the read.
        options: How it is read.
        planned_ms: When the ends were fixed, in ms since the epoch.
    """
    read = _last_ranges(cluster, ranges, topics, options, planned_ms)
    return _shared(read, options)


def _shared(ranges: list[Range], options: ReadOptions) -> list[Range]:
    if options.merges_partitions:
        return shared_by_all(ranges, options.min_partitions or 1)
    return shared(ranges, options.min_partitions)


def first_ranges(
    cluster: Cluster,
    ranges: Sequence[Range],
    stop: Positions | None,
    options: ReadOptions,
    planned_ms: int | None,
) -> list[Range]:
    """The ranges of the table with which a stream begins, shared among tasks.

    A partition that ends with this batch is read as by a batch: no later one shows what compaction has taken.

    Args:
        cluster: Says how the topics are compacted.
        ranges: What is read.
        stop: Where the stream ends; None = it has no end.
        options: How it is read.
        planned_ms: When the ends were fixed, in ms since the epoch; None = not known, since an earlier run did that.
    """
    found = [_followed(each, stop) for each in ranges]
    begun = [each for each in found if each.is_followed]
    ended = [each for each in found if not each.is_followed]
    read = _with_what_is_kept(cluster, begun, options, planned_ms)
    if ended:
        topics = sorted({each.topic for each in ended})
        read += _last_ranges(cluster, ended, topics, options, planned_ms)
    return _shared(read, options)


def _last_ranges(
    cluster: Cluster,
    ranges: Sequence[Range],
    topics: Sequence[str],
    options: ReadOptions,
    planned_ms: int | None,
) -> list[Range]:
    """The ranges of a table after which nothing is read of their partitions."""
    at_ms, begun_ms = options.end.timestamp_ms, planned_ms or now_ms()
    if options.end.mode == "latest-offset" or (at_ms is not None and at_ms >= begun_ms):
        return _with_what_is_kept(cluster, ranges, options, planned_ms)
    # An offset that is the latest now is not when it is read.
    _warn_of_compaction(cluster, topics, options)
    return list(ranges)


def _followed(range_: Range, stop: Positions | None) -> Range:
    place = TopicPartition(range_.topic, range_.partition)
    return replace(range_, followed_to=LAST_OFFSET if stop is None else stop.get(place, 0))


def _with_what_is_kept(
    cluster: Cluster, ranges: Sequence[Range], options: ReadOptions, planned_ms: int | None
) -> list[Range]:
    """The ranges with until when compaction surely takes nothing from them that the table needs."""
    topics = sorted({range_.topic for range_ in ranges})
    configs = _topic_configs(cluster, topics, options)
    return [
        replace(each, kept_until_ms=kept_until_ms(configs, each.topic, planned_ms or 0))
        for each in ranges
    ]


def _warn_of_compaction(cluster: Cluster, topics: Sequence[str], options: ReadOptions) -> None:
    """Warns about a table as of an earlier moment, from which compaction may have removed rows."""
    configs = _topic_configs(cluster, topics, options)
    option = f"'scan.bounded.mode' = '{options.end.mode}'"
    warning = past_table_warning(configs, options.end.timestamp_ms, now_ms(), option)
    if warning is not None:
        logger.warning("%s", warning)


def _topic_configs(
    cluster: Cluster, topics: Sequence[str], options: ReadOptions
) -> _Configs | None:
    """What the topics say of compaction; None = the broker does not tell."""
    try:
        return cluster.topic_configs(topics, (POLICY, _LAG)) if topics else {}
    except BrokerError as error:
        logger.info("The topic configs of %s cannot be read: %s", options.table.topics, error)
        return None


def kept_until_ms(configs: _Configs | None, topic: str, planned_ms: int) -> int | None:
    """Until when a topic certainly keeps the message that was a key's newest one when a snapshot was planned; None = for ever.

    Args:
        configs: None = not known: then it may be compacted at any time.
        topic: The topic.
        planned_ms: When it was planned, in ms since the epoch, by the clock of the driver.

    Returns:
        By the clock of a worker, in ms since the epoch; 0 = for no time.

    >>> compacted = {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"}
    >>> kept_until_ms({"t": compacted}, "t", 1_000_000)
    4300000
    >>> kept_until_ms({"t": {**compacted, "min.compaction.lag.ms": "0"}}, "t", 1_000_000), kept_until_ms({"t": {}}, "t", 1)
    (0, 0)
    """
    if configs is None:
        return 0
    lag = _lags(configs).get(topic)
    if lag is None:
        return None
    return planned_ms + lag - CLOCKS_DIFFER_MS if lag > CLOCKS_DIFFER_MS else 0


def past_table_warning(
    configs: _Configs | None, at_ms: int | None, now_ms: int, option: str
) -> str | None:
    """The warning about a snapshot that ends in the past; None = there is none.

    Compaction may remove a message that was overwritten later as soon as it is older than
    ``min.compaction.lag.ms``: the table of an earlier moment lacks it then.

    Args:
        configs: None = not known.
        at_ms: The table's time, in ms since the epoch; None = not known, since the end is an offset.
        now_ms: The time now.
        option: The option that says where it ends, with its value, as errors show it.
    """
    if at_ms is not None and at_ms >= now_ms:
        return None
    moment = "an earlier time" if at_ms is None else shown_time(at_ms)
    table = f"The table as of {moment} ({option}) may lack rows"
    if configs is None:
        return (
            f"{table}: it is complete only if that time is not longer ago than {_LAG} of the topic, which cannot be "
            "read (the ACL operation DescribeConfigs on the topic is missing)."
        )
    lags = _lags(configs)
    short = sorted(topic for topic, lag in lags.items() if now_ms - (at_ms or 0) > lag)
    if not short:
        return None
    shown = ", ".join(f"{topic!r} ({lags[topic]} ms)" for topic in short)
    lost = (
        f"{table}: compaction keeps a message that was overwritten only for {_LAG} of topic {shown}"
    )
    if at_ms is None:
        return f"{lost}. The table is complete only if that time is not longer ago."
    return f"{lost}, and that time is longer ago. To read earlier tables in future, raise {_LAG}."


def _lags(configs: _Configs) -> dict[str, int]:
    """The lag of each topic that is compacted, or may be, in ms."""
    return {
        topic: int(each.get(_LAG, 0))
        for topic, each in configs.items()
        if "compact" in each.get(POLICY, "compact")
    }
