"""The ranges of a table as of their ends, and what compaction may take from them before they are read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.compaction import (
    LAG,
    POLICY,
    TopicConfigs,
    kept_until_ms,
    past_table_warning,
)
from pyspark_upsert_kafka.core.positions.offsets import (
    LAST_OFFSET,
    Positions,
    Range,
    TopicPartition,
)
from pyspark_upsert_kafka.core.positions.planning import shared, shared_by_all
from pyspark_upsert_kafka.kafka.cluster import Cluster

logger = logging.getLogger("pyspark_upsert_kafka")


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
) -> TopicConfigs | None:
    """What the topics say of compaction; None = the broker does not tell."""
    try:
        return cluster.topic_configs(topics, (POLICY, LAG)) if topics else {}
    except BrokerError as error:
        logger.info("The topic configs of %s cannot be read: %s", options.table.topics, error)
        return None
