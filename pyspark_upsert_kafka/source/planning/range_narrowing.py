"""What the filters of a query leave of the ranges of a batch read."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.core.options.values import Position, ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.conditions import (
    Condition,
    can_hold,
    first_and_last_offset,
    only_values,
    since_ms,
)
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.kafka.interfaces import Cluster

logger = logging.getLogger("pyspark_upsert_kafka")


@dataclass(frozen=True)
class Narrowing:
    """The ranges that can hold a row for which all conditions are true.

    In a snapshot the message that a row shows is the last one of its key, whatever a filter says of it. So there only what is
    the same for all messages of a key counts: topic, partition, and the key itself.

    Args:
        table: The table.
        options: How it is read.
        conditions: The conditions.
    """

    table: Table
    options: ReadOptions
    conditions: tuple[Condition, ...]

    def of(self, ranges: Sequence[Range], cluster: Cluster, view: ClusterView) -> list[Range]:
        """The ranges, without what cannot hold such a row.

        Args:
            ranges: All that would be read.
            cluster: Says where messages get later than a time.
            view: What the cluster has.

        Raises:
            BrokerError: No broker answers.
        """
        left = [range_ for range_ in ranges if self._can_hold(range_)]
        if self.options.mode != "snapshot":
            left = self._since(self._between_offsets(left), cluster, view)
        left = self._of_keys(not_empty(left), view)
        _log(ranges, left)
        return left

    def _on(self, metadata_key: str) -> Iterator[Condition]:
        """The conditions on the columns that show this metadata."""
        names = {column.name for column in self.table.metadata if column.key == metadata_key}
        return (each for each in self.conditions if each.column in names)

    def _can_hold(self, range_: Range) -> bool:
        return can_hold(range_.topic, self._on("topic")) and can_hold(
            range_.partition, self._on("partition")
        )

    def _between_offsets(self, ranges: Sequence[Range]) -> list[Range]:
        first, last = first_and_last_offset(self._on("offset"))
        return [
            replace(each, begin=max(each.begin, first), end=min(each.end, last + 1))
            for each in ranges
        ]

    def _since(self, ranges: list[Range], cluster: Cluster, view: ClusterView) -> list[Range]:
        """Without what lies before the first message that is late enough, in whatever order the times are."""
        time_ms = since_ms(self._on("timestamp"))
        if time_ms is None or not ranges:
            return ranges
        asked = {tp: view.bounds[tp] for tp in map(_place, ranges)}
        begins = cluster.positions(
            Position("timestamp", timestamp_ms=time_ms), ClusterView(view.topic_ids, asked)
        )
        return [replace(each, begin=max(each.begin, begins[_place(each)])) for each in ranges]

    def _of_keys(self, ranges: list[Range], view: ClusterView) -> list[Range]:
        """Only the partitions of the keys, if the conditions name them and the user says where keys lie."""
        if self.options.key_partitioner is None or not ranges:
            return ranges
        values = [
            only_values(each for each in self.conditions if each.column == field.name)
            for field in self.table.key
        ]
        from pyspark_upsert_kafka.source.planning.key_place import KeyPlace, keys_of

        keys = keys_of(self.table, values)
        if keys is None:
            return ranges
        place = KeyPlace(keys, self.table, self.options)
        counts = Counter(tp.topic for tp in view.bounds)
        chosen = place.partitions(ranges, counts)
        if chosen is None:
            return ranges
        unseen = [each for each in _lowest(ranges) if _place(each) not in chosen]
        if not all(place.is_ours(each, counts) for each in unseen):
            return ranges
        return [each for each in ranges if _place(each) in chosen]


def _lowest(ranges: Sequence[Range]) -> list[Range]:
    """The range of the lowest partition of each topic: where partitions were added, it holds keys that belong to others now."""
    by_partition = sorted(ranges, key=lambda each: each.partition, reverse=True)
    return [*{each.topic: each for each in by_partition}.values()]


def _place(range_: Range) -> TopicPartition:
    return TopicPartition(range_.topic, range_.partition)


def _log(before: Sequence[Range], after: Sequence[Range]) -> None:
    """Logged as a warning: in the process that plans, nobody sees less, and the next query over this DataFrame is concerned."""
    partitions, all_partitions = ({_place(each) for each in ranges} for ranges in (after, before))
    offsets, all_offsets = (sum(each.size for each in ranges) for ranges in (after, before))
    if offsets < all_offsets:
        logger.warning(
            "The filters of this query leave %d of %d Kafka partitions and %d of %d offsets to be read. Spark keeps this for "
            "later queries over the same load(), whatever their filters: use another load() for another filter.",
            len(partitions), len(all_partitions), offsets, all_offsets,
        )  # fmt: skip
