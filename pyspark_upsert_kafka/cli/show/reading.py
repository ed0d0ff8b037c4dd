"""Reads a table for ``show``, in this process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pyspark_upsert_kafka.cli.show.one_key import OneKey, SoughtKey
from pyspark_upsert_kafka.cli.show.progress import ReadProgress
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.source.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.source.planning.key_place import KeyPlace
from pyspark_upsert_kafka.source.planning.open_transactions import Hidden
from pyspark_upsert_kafka.source.reading.task import ChangeReader, Changes, read_with
from pyspark_upsert_kafka.without_spark.request import Request

logger = logging.getLogger("pyspark_upsert_kafka")

_AS_SHOWN: frozenset[Detail] = frozenset()
_TIMESTAMPS = frozenset({Detail.TIMESTAMP})


@dataclass(frozen=True)
class Reading:
    """What is read.

    Args:
        ranges: The ranges; of one key, only those of the partition where it should be.
        elsewhere: The other ranges, which are read if these have no message of the key.
    """

    ranges: list[Range]
    elsewhere: list[Range] = field(default_factory=list)


def ranges_to_read(request: Request, key: OneKey | None) -> Reading:
    """The ranges to read, up to the end that the options name.

    Raises:
        BrokerError: No broker answers, or there is no such topic.
    """
    ranges, counts = _ranges(request)
    # What writes messages of a CDC format need not send those of one row to the partition of its key.
    options = request.options
    if key is None or options.table.is_cdc or options.merges_partitions:
        return Reading(ranges)
    chosen = KeyPlace(key.values, request.table, request.options).partitions(ranges, counts)
    if chosen is None:
        return Reading(ranges)
    is_chosen = [TopicPartition(range_.topic, range_.partition) in chosen for range_ in ranges]
    return Reading(
        [range_ for range_, yes in zip(ranges, is_chosen, strict=True) if yes],
        [range_ for range_, yes in zip(ranges, is_chosen, strict=True) if not yes],
    )


def _ranges(request: Request) -> tuple[list[Range], Mapping[str, int]]:
    """All ranges, and how many partitions each topic has."""
    with request.open_cluster() as cluster:
        ranges = ranges_of_batch(cluster, request.options, tell=_tell)
        topics = cluster.existing(sorted({range_.topic for range_ in ranges}))
    return ranges, {name: topic.partitions for name, topic in topics.items()}


def _tell(found: list[Hidden]) -> None:
    """Says what open transactions hide: of each one, since somebody looks at the topic."""
    for each in found:
        sys.stderr.write(f"{each}. {each.advice}.\n")


def rows_of(
    request: Request, reading: Reading, key: SoughtKey | None, *, prints: bool
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of the ranges, one range after another: the table's, or its changes.

    A key that is not in its partition is looked for in all others: partitions may have been added, or another writer may
    have put it elsewhere.

    Args:
        request: How it is read.
        reading: What is read.
        key: The only key that is wanted; None = all.
        prints: Whether rows are printed before all are read.

    Raises:
        UpsertKafkaError: As a batch read would raise it.
    """
    if key is None:
        yield from _rows(request, reading.ranges, iter, _AS_SHOWN, prints=prints)
        return
    found = _rows(request, reading.ranges, key.matching, _TIMESTAMPS, prints=prints)
    yield from key.shown(found)
    if not key.is_seen and reading.elsewhere:
        logger.warning(
            "Every partition is read: the key is not in the one where this connector would write it."
        )
        found = _rows(request, reading.elsewhere, key.matching, _TIMESTAMPS, prints=prints)
        yield from key.shown(found)


def _rows(
    request: Request,
    ranges: Sequence[Range],
    chosen: Callable[[Changes], Changes],
    details: frozenset[Detail],
    *,
    prints: bool,
) -> Iterator[pa.RecordBatch]:
    reader = ChangeReader(request.table, request.options, details=details)
    offsets = sum(range_.size for range_ in ranges)
    with closing(ReadProgress(offsets, prints=prints)) as progress:
        yield from read_with(
            reader, ranges, lambda changes, range_: chosen(watched(changes, range_, progress))
        )


def watched(changes: Changes, range_: Range, progress: ReadProgress) -> Changes:
    """The changes; the progress advances as they are read."""
    position = range_.begin
    for batch, rows in changes:
        yield batch, rows
        if len(batch):
            # What lies past the planned end is not among the offsets that the progress counts to.
            reached = min(batch.offsets[-1] + 1, range_.end)
            progress.advance(reached - position)
            position = reached
    progress.advance(range_.end - position)
