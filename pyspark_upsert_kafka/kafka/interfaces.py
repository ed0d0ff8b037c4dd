"""The interface between the connector and a Kafka client: a cluster, a reader of ranges, senders.

A client's folder (`librdkafka`, `kafka_python`) has an object `CLIENT`. A client that only reads is a `ReadingClient`:
it implements `AdminRequests` (of which `KafkaCluster` makes a `Cluster`) and `Fetcher` (of which `PooledReader` makes a
`RangeReader`); ``tests/unit/kafka/memory_client.py`` is the smallest one. One that also writes is a `Client`, and has a
`Sender` too. It is added to `clients.py`, to the option `kafka.client`, and to ``tests/kafka/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.delivery.receipts import GroupOffset
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.options.values import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.kafka.reading.rechecking import LOSS_CHECKS, LossChecks

if TYPE_CHECKING:  # who commits a write needs neither, nor Arrow
    from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
    from pyspark_upsert_kafka.kafka.sending.messages import Messages


class Cluster(Protocol):
    """Admin requests to the brokers. Retriable errors are retried; what remains is a BrokerError."""

    def topics(self, wanted: Topics) -> dict[str, TopicInfo]:
        """The wanted topics, by name.

        Raises:
            BrokerError: No broker answers, a named topic does not exist, or access is denied.
        """

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name; a missing one is no error."""

    def view(self, topics: Mapping[str, TopicInfo], *, read_committed: bool) -> ClusterView:
        """The bounds of every partition of these topics, without those deleted meanwhile.

        Args:
            topics: As `topics` or `existing` gave them.
            read_committed: Whether ``latest`` is before the first open transaction.
        """

    def latest(self, view: ClusterView, *, read_committed: bool) -> dict[TopicPartition, int]:
        """The latest offset of each partition of a view as it is now: the cheapest request there is.

        Empty when a partition is gone: then a new view is needed.
        """

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """Where a position is in each partition of the view (``specific-offsets``: of those named).

        The caller checks whether an offset that was named or committed is still there.

        Raises:
            OptionError: A named partition does not exist, or nothing is committed.
            BrokerError: No broker answers, or access is denied.
        """

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Configs of topics, by topic and name, without those that brokers do not tell.

        Raises:
            BrokerError: No broker answers, or the ACLs do not allow it.
        """

    def brokers(self) -> list[str]:
        """The addresses of all brokers.

        Raises:
            BrokerError: No broker answers.
        """

    def operations(self, topics: Sequence[str]) -> dict[str, frozenset[str]] | None:
        """What the user may do with topics that exist, by topic: names of ACL operations, such as ``READ``; None = not told.

        Raises:
            BrokerError: No broker answers, or the user may not even see a topic.
        """

    def group_operations(self) -> frozenset[str] | None:
        """What the user may do with the group of the properties, as `operations` has it; empty = not even see it.

        Raises:
            BrokerError: No broker answers.
        """

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group of the properties, without waiting; a warning is logged of the first failure."""

    def wait_out(self, outage_s: float) -> None:
        """Has requests wait for so long (seconds) for brokers that are all away; a warning is logged every 30 seconds."""

    def close(self) -> None:
        """Ends the connection."""


class RangeReader(Protocol):
    """Reads ranges, each up to its end by position: gaps are normal."""

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of a range, in batches.

        Raises:
            DataLossError: Offsets are gone, and ``fail_on_data_loss``; else that is a warning.
            BrokerError: The broker refuses, or stays away.
        """

    def end(self, range_: Range) -> int:
        """The offset up to which a range's partition can be read now; the range's own end, where a lost topic is no error.

        Raises:
            BrokerError: No broker answers, or access is denied.
            DataLossError: The topic is gone, or is another, and ``fail_on_data_loss`` is true.
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

    def cancel(self) -> None:
        """Ends, from another thread, what waits in `send` or `flush`, with an error; after it there is only `close`."""

    def close(self) -> None:
        """Gives the sender back for the next task, or throws it away when anything is unsent.

        Nothing more of it is sent; what is on its way to a broker already may arrive.
        """


class TransactionalSender(Sender, Protocol):
    """Sends messages in one transaction of a transactional id.

    Once it is open, whatever had the id before is fenced off: its open transaction is aborted, and it can write
    nothing more.
    """

    def committed(self, topic: str, group: str | None = None) -> GroupOffset | None:
        """What a consumer group has committed on partition 0 of a topic; None = nothing.

        Args:
            topic: The topic.
            group: The group; None = the one with the name of the id.

        Raises:
            BrokerError: No broker answers, or access is denied.
        """

    def committed_anywhere(self) -> GroupOffset | None:
        """The same on any topic, for a group that has committed nothing where it was expected; raises as `committed`."""

    def groups(self, prefix: str) -> Sequence[str]:
        """The consumer groups whose names begin so, as far as they may be seen: none if brokers do not tell."""

    def retention_s(self) -> float | None:
        """How long brokers keep what a group has committed, in seconds; None = they do not tell."""

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


@dataclass(frozen=True)
class ReadSettings:
    """How a client reads.

    Args:
        properties: The client's properties.
        read_committed: Whether messages of open and aborted transactions stay unseen.
        fail_on_data_loss: Whether lost offsets are an error; else a warning is logged.
        details: What batches have of messages beside key, value and offset.
        outage_s: How long brokers that are all away are waited for, in seconds; 0 = no longer than for any answer.
        checks: When it is checked whether data is lost.
    """

    properties: Properties
    read_committed: bool
    fail_on_data_loss: bool
    details: frozenset[Detail] = ALL_DETAILS
    outage_s: float = 0.0
    checks: LossChecks = LOSS_CHECKS

    @classmethod
    def of(cls, options: ReadOptions, details: frozenset[Detail]) -> ReadSettings:
        """What a table's options say, and what is needed of messages beside key, value and offset."""
        return cls(
            options.table.properties, options.read_committed, options.fail_on_data_loss, details, options.outage_timeout_s
        )  # fmt: skip


class ReadingClient(Protocol):
    """A Kafka client that reads, and may do no more."""

    def cluster(self, properties: Properties, role: str) -> Cluster:
        """Opens a connection for admin requests.

        Args:
            properties: The client's properties.
            role: ``reader``, ``writer`` or ``driver``: part of the client id.
        """

    def reader(self, settings: ReadSettings) -> RangeReader:
        """A reader of ranges.

        Raises:
            OptionError: The client cannot read with these settings.
        """


@runtime_checkable
class Client(ReadingClient, Protocol):
    """A Kafka client that reads and writes."""

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
        self,
        properties: Properties,
        topics: Sequence[str],
        transactional_id: str,
        *,
        with_metadata: bool = True,
    ) -> TransactionalSender:
        """The same for a transaction; fences off whatever had the transactional id before.

        Args:
            properties: The client's properties.
            topics: The topics that it will send to.
            transactional_id: The id.
            with_metadata: As `sender` has it.

        Raises:
            BrokerError: No broker answers, a topic does not exist, or access is denied.
            OptionError: The client has no transactions, or a property is wrong.
        """
