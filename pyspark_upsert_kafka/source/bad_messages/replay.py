"""Dead letters, written back to where they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.options import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.kafka.clients import load_client, load_sending_client
from pyspark_upsert_kafka.kafka.interfaces import Cluster, ReadSettings
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.sending.messages import Messages, octets
from pyspark_upsert_kafka.source.bad_messages.error_handling import DETAILS
from pyspark_upsert_kafka.source.bad_messages.letters import (
    Letter,
    Letters,
    each_once,
    last_of_each_key,
    letter,
)


def letters_to_replay(options: ReadOptions, *, tables: bool) -> Letters:
    """What is to be written back of the dead letters that a topic holds now. All of them are held in memory.

    Args:
        options: Name the dead-letter topic and its brokers.
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
            letter(*message)
            for batch in _read(options, view, {})
            for message in zip(
                batch.keys, batch.values, batch.headers, batch.timestamps, strict=True
            )
        ]
        once = each_once(each for each in found if each is not None)
        existing = cluster.existing(sorted({each.at.topic for each in once}))
        there = [each for each in once if each.at.topic in existing]
        without_topic = tuple(each for each in once if each.at.topic not in existing)
        if not tables:
            return Letters(tuple(there), without_topic=without_topic)
        letters = replace(last_of_each_key(there), without_topic=without_topic)
        return letters.without_outdated(
            batch
            for topic in sorted({each.at.topic for each in letters.replayed})
            for batch in _since(cluster, options, topic, letters.replayed)
        )


def replay(letters: Sequence[Letter], options: ReadOptions) -> None:
    """Writes letters back as new messages, and returns when the brokers have confirmed all of them.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        DeliveryError: The broker refused one of them.
    """
    if not letters:
        return
    sender = load_sending_client(options.table.client, "writing dead letters back").sender(
        options.table.properties,
        sorted({each.at.topic for each in letters}),
        DeliveryGuarantee.AT_LEAST_ONCE,
    )
    with closing(sender):
        sender.send(
            Messages(
                [each.at.topic for each in letters],
                octets(each.key for each in letters),
                octets(each.value for each in letters),
                headers=[each.headers for each in letters],
            )
        )
        sender.flush()


def _since(
    cluster: Cluster, options: ReadOptions, topic: str, letters: Sequence[Letter]
) -> Iterator[RawBatch]:
    """The messages of a topic that may be newer than letters from there."""
    view = cluster.view(
        cluster.topics(Topics(names=(topic,))), read_committed=options.read_committed
    )
    from_there = [each for each in letters if each.at.topic == topic]
    # What was written back is newer than the letter, though not than an original from ahead of the clock.
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
