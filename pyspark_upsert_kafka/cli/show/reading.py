"""Reads a table for ``show``, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from pyspark_upsert_kafka.cli.show.key_place import KeyPlace
from pyspark_upsert_kafka.cli.show.one_key import OneKey
from pyspark_upsert_kafka.cli.show.planning import Plan
from pyspark_upsert_kafka.cli.show.progress import ReadProgress
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.source.batch import plan
from pyspark_upsert_kafka.source.rows import Rows
from pyspark_upsert_kafka.source.task import ChangeReader, last_rows

Changes = Iterator[tuple[RawBatch, Rows]]


@dataclass(frozen=True)
class KeyPartitions:
    """Where a key may be.

    Args:
        chosen: Its partitions, one of each topic; None = any.
        counts: How many partitions each topic had when they were chosen.
    """

    chosen: frozenset[TopicPartition] | None
    counts: Mapping[str, int]

    def may_hold(self, range_: Range) -> bool:
        """Whether the key may be in a range: a partition that is new may have it."""
        place = TopicPartition(range_.topic, range_.partition)
        is_new = range_.partition >= self.counts.get(range_.topic, 0)
        return self.chosen is None or is_new or place in self.chosen


def ranges_to_read(planned: Plan, key: OneKey | None) -> list[Range]:
    """What a topic holds, up to the end that the options say; of one key, only where that is.

    Raises:
        BrokerError: No broker answers, or there is no such topic.
    """
    if key is None:
        return _ranges(planned)[0]
    ranges, counts = _ranges(planned)
    places = _places(planned, key, ranges, counts)
    return [range_ for range_ in ranges if places.may_hold(range_)]


def key_partitions(planned: Plan, key: OneKey) -> KeyPartitions:
    """Where a key may be. Raises BrokerError."""
    return _places(planned, key, *_ranges(planned))


def _places(
    planned: Plan, key: OneKey, ranges: Sequence[Range], counts: Mapping[str, int]
) -> KeyPartitions:
    place = KeyPlace(key, planned.table, planned.options)
    return KeyPartitions(place.partitions(ranges, counts), counts)


def _ranges(planned: Plan) -> tuple[list[Range], Mapping[str, int]]:
    """What there is to read, and how many partitions each topic has."""
    options = planned.options
    client = load_client(options.table.client)
    with closing(client.cluster(options.table.properties, "driver")) as cluster:
        ranges = plan(cluster, options)
        topics = cluster.existing(sorted({range_.topic for range_ in ranges}))
    return ranges, {name: topic.partitions for name, topic in topics.items()}


def rows_of(
    planned: Plan, ranges: Sequence[Range], key: OneKey | None, *, prints: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of the ranges, one range after another: the table's, or its changes.

    Args:
        planned: What is read.
        ranges: From where to where.
        key: The only key that is wanted; None = all.
        prints: Whether rows are printed before all are read.

    Raises:
        UpsertKafkaError: As a batch read would raise it.
    """
    schema = arrow_schema(planned.table.schema)
    reader = ChangeReader(planned.table, planned.options)
    offsets = sum(range_.size for range_ in ranges)
    with closing(ReadProgress(offsets, prints=prints)) as progress:
        for range_ in ranges:
            changes = watched(reader.read(range_), range_, progress)
            found = changes if key is None else key.matching(changes)
            for rows in _shown(found, range_, planned):
                if len(rows):
                    yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def _shown(
    changes: Iterable[tuple[RawBatch, Rows]], range_: Range, planned: Plan
) -> Iterator[Rows]:
    if planned.options.mode == "snapshot":
        return last_rows(changes, range_, planned.table, planned.options)
    return (rows for _, rows in changes)


def watched(changes: Changes, range_: Range, progress: ReadProgress) -> Changes:
    """The changes, while the progress is told how far they are."""
    position = range_.begin
    for batch, rows in changes:
        yield batch, rows
        if len(batch):
            progress.advance(batch.offsets[-1] + 1 - position)
            position = batch.offsets[-1] + 1
    progress.advance(range_.end - position)
