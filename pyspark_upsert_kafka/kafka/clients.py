"""The interface between the connector and a Kafka client: a cluster, a reader of ranges, senders.

A client's folder (`librdkafka`, `kafka_python`) has an object `CLIENT`. A client that only reads is a `ReadingClient`:
it implements the requests of a `Cluster`, and `Fetcher` (of which `PooledReader` makes a `RangeReader`); ``tests/unit/kafka/memory_client.py`` is the smallest one. One that also writes is a `Client`, and has a
`Sender` too. It is added to the option `kafka.client`, whose value is the folder's name, and to ``tests/kafka/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.loss_checks import LOSS_CHECKS, LossChecks

if TYPE_CHECKING:  # who commits a write needs neither, nor Arrow
    from pyspark_upsert_kafka.kafka.outgoing_messages import Messages
    from pyspark_upsert_kafka.kafka.raw_batch import RawBatch


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
        details: What batches have of messages beside key, value and offset. A client fetches headers for any of `IN_HEADERS`, and
            `PooledReader` takes the ids of schemas out of them.
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

    @property
    def packages(self) -> Sequence[str]:
        """The packages that bring it, of which one is installed."""

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


def load_client(name: str) -> ReadingClient:
    """The client for a value of ``kafka.client``, whose folder has the same name."""
    folder = f"pyspark_upsert_kafka.kafka.{name.replace('-', '_')}"
    return cast("ReadingClient", import_module(folder).CLIENT)


def load_sending_client(name: str, use: str) -> Client:
    """The client for a value of ``kafka.client``, for something that is sent.

    Args:
        name: The value.
        use: What sends, to complete "cannot be used for".

    Raises:
        OptionError: The client only reads.
    """
    client = load_client(name)
    if not isinstance(client, Client):
        raise OptionError(
            f"'kafka.client' = '{name}' only reads, and cannot be used for {use}: set it to 'librdkafka'."
        )
    return client


def client_version(name: str) -> str:
    """The client that a value of ``kafka.client`` means, with the version of its package."""
    for package in load_client(name).packages:
        try:
            return f"{name} ({package} {version(package)})"
        except PackageNotFoundError:
            continue
    return name
