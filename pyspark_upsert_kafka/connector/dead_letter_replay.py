"""Dead letters, written back to where they came from: the messages that they were before, and which of them are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from pyspark_upsert_kafka.connector.bad_messages import ADDED, DETAILS, PREFIX
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.options.parsers import topic_name
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client, load_sending_client
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages, octets
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

_NO_TIMESTAMP = -1
_MOST_PARTITION, _MOST_OFFSET = 2**31 - 1, 2**63 - 1

_Identity = tuple[TopicPartition, int, int, bytes | None, bytes | None]
"""Partition, offset, timestamp, key and value of a message."""


@dataclass(frozen=True)
class Original:
    """A message as it was before it became a dead letter.

    Args:
        at: Its topic and partition.
        offset: Its offset.
        timestamp: Its timestamp in ms since the epoch.
        key: Its key.
        value: Its value.
        headers: Its headers.
        sent: When it became a dead letter, in ms since the epoch.
        is_there: Whether it still lies there, as far as was looked; no part of what it was.
    """

    at: TopicPartition
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sent: int = 0
    is_there: bool = field(default=False, compare=False)

    @property
    def identity(self) -> _Identity:
        """What no other message has, not even one of a topic that was created again under the name."""
        return self.at, self.offset, self.timestamp, self.key, self.value

    def is_before(self, other: Original) -> bool:
        """Whether another original of the key came later."""
        if other.at != self.at:
            if self.is_copied(other.value, other.headers):
                # The copy has the time at which it was written, and the original may be from ahead of the clock.
                return (other.sent, other.timestamp) > (self.sent, self.timestamp)
            return other.timestamp > self.timestamp
        if other.sent > self.sent and other.timestamp > self.timestamp:
            return True  # with a smaller offset: the topic was created again between them
        if other.sent < self.sent and other.timestamp < self.timestamp:
            return False
        return other.offset > self.offset

    def is_copied(self, value: bytes | None, headers: Headers) -> bool:
        """Whether another message of the key may be this one, written back."""
        return value == self.value and list(headers) == list(self.headers)


def original_of(
    key: bytes | None, value: bytes | None, headers: Headers, sent: int = 0
) -> Original | None:
    """The message that a dead letter was; None = this is no dead letter, or none that the connector wrote.

    >>> added = [("topic", b"t"), ("partition", b"0"), ("offset", b"7"), ("timestamp", b"1000"),
    ...          ("stage", b"value"), ("message", b"no JSON")]
    >>> headers = [("trace", b"1"), *((f"__error.{name}", value) for name, value in added)]
    >>> original_of(b"k", b"{", headers).headers
    [('trace', b'1')]
    """
    original, added = headers[: -len(ADDED)], headers[-len(ADDED) :]
    if [name for name, _ in added] != [PREFIX + name for name in ADDED]:
        return None
    topic, partition, offset, timestamp, *_ = (value or b"" for _, value in added)
    try:
        at = TopicPartition(topic_name(topic.decode()), _number(partition, 0, _MOST_PARTITION))
        place = _number(offset, 0, _MOST_OFFSET), _number(timestamp, _NO_TIMESTAMP, _MOST_OFFSET)
    except ValueError:
        return None
    return Original(at, *place, key, value, original, sent)


def _number(text: bytes, least: int, most: int) -> int:
    """Raises ValueError when it is no number in these bounds, both included."""
    if not re.fullmatch(rb"-?[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise ValueError
    return int(text)


@dataclass(frozen=True)
class ReplayChoice:
    """Which messages are written back, and which are not.

    Args:
        replayed: These are written back, in offset order of each partition.
        outdated: Their keys have a newer message, so writing them back would undo it.
        keyless: They have no key, so they are no rows of a table.
        without_topic: Their topics do not exist.
        not_named: Their topics may not be written.
    """

    replayed: tuple[Original, ...] = ()
    outdated: tuple[Original, ...] = ()
    keyless: tuple[Original, ...] = ()
    without_topic: tuple[Original, ...] = ()
    not_named: tuple[Original, ...] = ()

    def without_outdated(self, batches: Iterable[RawBatch]) -> ReplayChoice:
        """The choice without originals that newer messages in the topics have replaced. A message may be an original itself."""
        originals = {each.identity for each in (*self.replayed, *self.outdated)}
        waiting = {(each.at.topic, each.key): _Waiting(each) for each in self.replayed}
        places = {(each.original.at, each.original.offset): each for each in waiting.values()}
        for batch in batches:
            at = TopicPartition(batch.topic, batch.partition)
            columns = batch.offsets, batch.timestamps, batch.keys, batch.values, batch.headers
            for *place, key, value, headers in zip(*columns, strict=True):
                is_original = (at, *place, key, value) in originals
                found = places.get((at, place[0]))
                if found is not None:
                    found.is_there, found.is_replaced = is_original, not is_original
                of_key = waiting.get((at.topic, key))
                if of_key is not None and not is_original:
                    of_key.meet(at, place[0], place[1], value, headers)
        return replace(
            self,
            replayed=tuple(
                replace(each.original, is_there=each.is_there)
                for each in waiting.values()
                if not each.is_outdated
            ),
            outdated=(
                *self.outdated,
                *(each.original for each in waiting.values() if each.is_outdated),
            ),
        )


@dataclass
class _Waiting:
    """What the messages of its topic say of an original: whether one of its key is newer, by offset and by time.

    Offsets count as long as the topic is the one that the original came from. The topic was created again when another
    message has the original's offset. When no message has it, compaction may have removed the original, and both orders
    count.
    """

    original: Original
    is_there: bool = False
    is_replaced: bool = False
    by_place: bool = False
    by_time: bool = False

    @property
    def is_outdated(self) -> bool:
        """Whether writing it back would undo a newer message, as far as can be told."""
        if self.is_there:
            return self.by_place
        return self.by_time or (self.by_place and not self.is_replaced)

    def meet(
        self, at: TopicPartition, offset: int, timestamp: int, value: bytes | None, headers: Headers
    ) -> None:
        """Takes another message of the key into account."""
        original, is_copy = self.original, self.original.is_copied(value, headers)
        if at == original.at:
            self.by_place |= offset > original.offset
            self.by_time |= timestamp >= original.timestamp or is_copy
        else:  # between partitions only timestamps can tell
            is_newer = timestamp > original.timestamp or is_copy
            self.by_place |= is_newer
            self.by_time |= is_newer or timestamp == original.timestamp


def each_once(originals: Iterable[Original]) -> list[Original]:
    """Each message once, however many dead letters it became, in offset order of its partition."""
    once = {each.identity: each for each in originals}
    return sorted(once.values(), key=lambda each: (each.at, each.offset, each.timestamp))


def last_of_each_key(originals: Sequence[Original]) -> ReplayChoice:
    """The last original of each key of a table: the others, and those without a key, are not written back."""
    last: dict[tuple[str, bytes], Original] = {}
    outdated = []
    for each in originals:
        if each.key is None:
            continue
        key = each.at.topic, each.key
        before = last.get(key)
        is_newer = before is None or before.is_before(each)
        last[key] = each if is_newer else last[key]
        if before is not None:
            outdated.append(before if is_newer else each)
    return ReplayChoice(
        tuple(each_once(last.values())),
        tuple(outdated),
        tuple(each for each in originals if each.key is None),
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
