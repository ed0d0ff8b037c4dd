"""Dead letters, written back to where they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.options import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.kafka.clients import load_client, load_sending_client
from pyspark_upsert_kafka.kafka.interfaces import Cluster, ReadSettings
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.sending.messages import Messages, octets
from pyspark_upsert_kafka.source.bad_messages.error_handling import DETAILS
from pyspark_upsert_kafka.source.bad_messages.originals import (
    Original,
    ReplayChoice,
    each_once,
    last_of_each_key,
    original_of,
)


def what_to_replay(
    options: ReadOptions, may_write: Callable[[str], bool], *, tables: bool
) -> ReplayChoice:
    """What is to be written back of the dead letters that a topic holds now. All of them are held in memory.

    Args:
        options: Name the dead-letter topic and its brokers.
        may_write: Whether a topic that a letter names may be written. Anybody who may write dead letters can name any topic.
        tables: Whether they came from tables, in which the newest message of a key counts; else each counts.

    Raises:
        BrokerError: No broker answers, or the dead-letter topic does not exist.
    """
    client = load_client(options.table.client)
    with closing(client.cluster(options.table.properties, "driver")) as cluster:
        view = cluster.view(
            cluster.topics(options.table.topics), read_committed=options.read_committed
        )
        found = [
            original_of(*message)
            for batch in _read(options, view, {})
            for message in zip(
                batch.keys, batch.values, batch.headers, batch.timestamps, strict=True
            )
        ]
        all_ = each_once(each for each in found if each is not None)
        once = [each for each in all_ if may_write(each.at.topic)]
        not_named = tuple(each for each in all_ if not may_write(each.at.topic))
        existing = cluster.existing(sorted({each.at.topic for each in once}))
        there = [each for each in once if each.at.topic in existing]
        without_topic = tuple(each for each in once if each.at.topic not in existing)
        if not tables:
            return ReplayChoice(tuple(there), without_topic=without_topic, not_named=not_named)
        choice = replace(last_of_each_key(there), without_topic=without_topic, not_named=not_named)
        return choice.without_outdated(
            batch
            for topic in sorted({each.at.topic for each in choice.replayed})
            for batch in _since(cluster, options, topic, choice.replayed)
        )


def replay(originals: Sequence[Original], options: ReadOptions) -> None:
    """Writes messages back as new messages, and returns when the brokers have confirmed all of them.

    One that still lies in its partition is written there, behind the older messages of its key, whatever its producer chose
    partitions by. Another goes to the partition of its key.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        DeliveryError: The broker refused one of them.
    """
    if not originals:
        return
    sender = load_sending_client(options.table.client, "writing dead letters back").sender(
        options.table.properties,
        sorted({each.at.topic for each in originals}),
        DeliveryGuarantee.AT_LEAST_ONCE,
    )
    with closing(sender):
        for partition, found in groupby(originals, _partition):
            of_partition = list(found)
            sender.send(
                Messages(
                    [each.at.topic for each in of_partition],
                    octets(each.key for each in of_partition),
                    octets(each.value for each in of_partition),
                    headers=[each.headers for each in of_partition],
                    partition=partition,
                )
            )
        sender.flush()


def _partition(original: Original) -> int | None:
    return original.at.partition if original.is_there else None


def _since(
    cluster: Cluster, options: ReadOptions, topic: str, originals: Sequence[Original]
) -> Iterator[RawBatch]:
    """The messages of a topic that may be newer than originals from there."""
    view = cluster.view(
        cluster.topics(Topics(names=(topic,))), read_committed=options.read_committed
    )
    from_there = [each for each in originals if each.at.topic == topic]
    # A copy that was written back is newer than the dead letter, but not than an original whose timestamp is in the future.
    first = min(min(each.timestamp, each.sent) for each in from_there)
    begins = cluster.positions(Position("timestamp", timestamp_ms=max(0, first)), view)
    for each in from_there:  # timestamps need not rise with offsets
        begins[each.at] = min(begins.get(each.at, each.offset), each.offset)
    return _read(options, view, begins)


def _read(
    options: ReadOptions, view: ClusterView, begins: Mapping[TopicPartition, int]
) -> Iterator[RawBatch]:
    """The messages of the view's partitions, from these offsets on where they are given."""
    ranges = not_empty(
        Range(*tp, max(bounds.earliest, begins.get(tp, 0)), bounds.latest)
        for tp, bounds in sorted(view.bounds.items())
    )
    # What retention takes meanwhile is gone.
    settings = replace(ReadSettings.of(options, DETAILS), fail_on_data_loss=False)
    reader = load_client(options.table.client).reader(settings)
    for range_ in ranges:
        yield from reader.read(range_)
