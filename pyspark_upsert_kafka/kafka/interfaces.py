"""The interface between the connector and a Kafka client: a cluster, a reader of ranges, senders.

A client's folder (`librdkafka`, `kafka_python`) implements `AdminRequests` (of which `KafkaCluster` makes a
`Cluster`), `Fetcher` (with which `RangeFetch` reads ranges) and `Sender`, and names them in its `CLIENT`. It is
added to `clients.py`, to the option `kafka.client`, and to the clients of ``tests/kafka/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Protocol, TypeVar

from pyspark_upsert_kafka.core.cluster_view import ClusterView, TopicInfo
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.markers import GroupOffset
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.core.options import Position, Topics
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.messages import Headers, Messages

T = TypeVar("T")

BAD_HEADERS = (
    "the key of a header is not UTF-8, so the client can read none of the message's headers"
)
"""Why headers cannot be read."""


@dataclass(frozen=True)
class RawBatch:
    """Messages of one partition in offset order, as parallel columns.

    Args:
        topic: The topic.
        partition: The partition.
        keys: Message keys.
        values: Message values; None = a tombstone.
        offsets: Offsets, rising.
        timestamp_types: 0 = no timestamp, 1 = CreateTime, 2 = LogAppendTime.
        timestamps: Timestamps in ms since the epoch.
        headers: Headers in their order; no headers = an empty sequence.
        leader_epochs: Leader epochs; None = not known.
        bad_headers: Why the headers of a message cannot be read, by its index; it then shows none.
    """

    topic: str
    partition: int
    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    timestamp_types: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    leader_epochs: list[int | None] = field(default_factory=list)
    bad_headers: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, begin: int, end: int) -> RawBatch:
        """Some of the messages, in their order."""
        return RawBatch(
            self.topic,
            self.partition,
            self.keys[begin:end],
            self.values[begin:end],
            self.offsets[begin:end],
            self.timestamp_types[begin:end],
            self.timestamps[begin:end],
            self.headers[begin:end],
            self.leader_epochs[begin:end],
            {at - begin: why for at, why in self.bad_headers.items() if begin <= at < end},
        )

    def where(self, mask: Sequence[bool]) -> RawBatch:
        """The messages for which the mask is true, in their order."""
        places = {at: place for place, at in enumerate(compress(range(len(self)), mask))}

        def kept(column: list[T]) -> list[T]:
            return list(compress(column, mask))

        return RawBatch(
            self.topic,
            self.partition,
            kept(self.keys),
            kept(self.values),
            kept(self.offsets),
            kept(self.timestamp_types),
            kept(self.timestamps),
            kept(self.headers),
            kept(self.leader_epochs),
            {places[at]: why for at, why in self.bad_headers.items() if at in places},
        )


class Cluster(Protocol):
    """Admin requests to the brokers. Retriable errors are retried; what remains is a BrokerError."""

    def topics(self, wanted: Topics) -> dict[str, TopicInfo]:
        """The wanted topics, by name.

        Raises:
            BrokerError: No broker answers, a named topic does not exist, or access is denied.
        """

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """The same for those of the names that exist; a missing one is no error."""

    def view(self, topics: Mapping[str, TopicInfo], *, committed: bool) -> ClusterView:
        """The bounds of every partition of these topics, without those deleted meanwhile.

        Args:
            topics: As `topics` or `existing` gave them.
            committed: Whether ``latest`` is before the first open transaction.
        """

    def latest(self, view: ClusterView, *, committed: bool) -> dict[TopicPartition, int]:
        """The latest offset of each partition of a view as it is now: the cheapest request there is.

        Nothing at all when a partition is gone: then a whole view is needed.
        """

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """Where a position is in each partition of the view (``specific-offsets``: of those named).

        Whether an offset that is named or committed is still there is for the caller to see.

        Raises:
            OptionError: A named partition does not exist, or nothing is committed.
            BrokerError: No broker answers, or access is denied.
        """

    def settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings of topics, by topic and name.

        Raises:
            BrokerError: No broker answers, or the ACLs do not allow it.
        """

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group of the properties, without waiting; a failure is one warning."""

    def close(self) -> None:
        """Ends the connection."""


class RangeReader(Protocol):
    """Reads ranges, each up to its end by position: gaps are normal."""

    def read(self, range_: Range, *, is_last: bool = True) -> Iterator[RawBatch]:
        """The messages of a range, in batches.

        Args:
            range_: What to read.
            is_last: Whether the topic's id is compared after the last message. When more ranges of the topic follow at
                once, it is enough after the last of them.

        Raises:
            DataLossError: Offsets are gone, and ``fail_on_data_loss``; else that is a warning.
            BrokerError: The broker refuses, or stays away.
        """


class Sender(Protocol):
    """Sends messages: one key, one partition (the Java client's murmur2), one order."""

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while its queue is full.

        Raises:
            DeliveryError: This or an earlier message was refused.
        """

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far.

        Raises:
            DeliveryError: The first message that was refused.
        """

    def close(self) -> None:
        """Gives the sender back for the next task, or throws it away when anything is unsent."""


class TransactionalSender(Sender, Protocol):
    """Sends messages in one transaction of a transactional id.

    Once it is open, whatever had the id before is fenced off: its open transaction is aborted, and it can write
    nothing more.
    """

    def committed(self, topic: str) -> GroupOffset | None:
        """What the consumer group with the name of the id has committed on partition 0 of a topic; None = nothing.

        Raises:
            BrokerError: No broker answers, or access is denied.
        """

    def committed_anywhere(self) -> GroupOffset | None:
        """The same on any topic: for a group that has committed nothing where it was expected.

        Raises:
            BrokerError: No broker answers, or access is denied.
        """

    def begin(self) -> None:
        """Begins the transaction.

        Raises:
            BrokerError: Another sender with the same id was opened meanwhile.
        """

    def commit(self, offset: GroupOffset) -> None:
        """Commits the messages together with an offset of the group.

        Raises:
            BrokerError: Nothing is committed, or it is not known whether it is; or another sender with
                the same id was opened meanwhile.
        """

    def close(self) -> None:
        """Aborts the transaction, if one is open, and ends the client."""


class Client(Protocol):
    """A Kafka client: makes the roles."""

    def cluster(self, properties: Properties, role: str) -> Cluster:
        """Opens a connection for admin requests."""

    def reader(
        self,
        properties: Properties,
        *,
        committed: bool,
        fail_on_data_loss: bool,
        details: frozenset[Detail] = ALL_DETAILS,
    ) -> RangeReader:
        """A reader of ranges.

        Args:
            properties: The client's properties.
            committed: Whether messages of open and aborted transactions stay unseen.
            fail_on_data_loss: Whether lost offsets are an error; else they are one warning.
            details: What batches have of messages beside key, value and offset.
        """

    def sender(
        self,
        properties: Properties,
        topics: Sequence[str],
        guarantee: DeliveryGuarantee,
        *,
        with_metadata: bool = True,
    ) -> Sender:
        """Opens a sender after checking that the topics exist.

        Args:
            properties: The client's properties.
            topics: The topics that it will send to.
            guarantee: What the sink promises.
            with_metadata: Whether messages may have timestamps or headers; without, sending may cost less.
        """

    def transactional_sender(
        self, properties: Properties, topics: Sequence[str], transactional_id: str
    ) -> TransactionalSender:
        """The same for a transaction; fences off whatever had the transactional id before.

        Raises:
            BrokerError: No broker answers, a topic does not exist, or access is denied.
            OptionError: The client has no transactions, or a property is wrong.
        """
