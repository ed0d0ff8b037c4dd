"""Sends messages in a transaction with librdkafka."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import confluent_kafka as ck
from confluent_kafka import KafkaError

from pyspark_upsert_kafka.core.closing import closing, undone_on_failure
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DeliveryError,
    RetriableBrokerError,
    UpsertKafkaError,
)
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka.client_pool import Lease
from pyspark_upsert_kafka.kafka.cluster import max_message_bytes
from pyspark_upsert_kafka.kafka.failures import Failure, FailureKind
from pyspark_upsert_kafka.kafka.librdkafka.cluster import pooled_cluster
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, classify, kind_of
from pyspark_upsert_kafka.kafka.librdkafka.group_consumer import GroupConsumer
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config
from pyspark_upsert_kafka.kafka.librdkafka.sender import (
    LibrdkafkaSender,
    OpenProducer,
    connected,
    open_producer,
    transaction_config,
)
from pyspark_upsert_kafka.kafka.native import BatchProducer, takes
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages
from pyspark_upsert_kafka.kafka.retrying import CLOSE_TIMEOUT_S, Retrying, Timeouts

logger = logging.getLogger("pyspark_upsert_kafka")

T = TypeVar("T")

_LATE_S = 1.0
"""How much later than its timeout a call of the client may return, in seconds."""

_INVALID_STATE_CODE = 48
"""INVALID_TXN_STATE in Kafka's protocol: says nothing but that something failed before."""

_DROPPED = ("Local: Purged", "Local: Erroneous state")
"""What librdkafka says of messages that it has dropped, or did not take, since their transaction had failed."""

_FENCED_CODE = 90
"""PRODUCER_FENCED in Kafka's protocol, for which librdkafka has a code of its own too."""

_FENCED = frozenset({47, 52, 90})
"""Kafka's error codes INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and PRODUCER_FENCED."""

_IN_TRANSACTION = {
    49: "the broker has forgotten the transactional id, as it does after 'transactional.id.expiration.ms'",
    50: (
        "lower 'properties.transaction.timeout.ms', or raise the brokers' 'transaction.max.timeout.ms', which "
        "is the most that they allow"
    ),
    53: "the sink needs the rights to Write and Describe on every transactional id with its prefix",
    30: "the sink needs the right to Read on every consumer group with its prefix, for its receipts",
    29: "the sink needs the rights to Read, for its receipts, and to Write on its topics",
}
"""What to do about error codes of Kafka's protocol in a transaction."""


class LibrdkafkaTransactionalSender(LibrdkafkaSender):
    """A producer of its own for one transaction: librdkafka binds a producer to its transactional id.

    Args:
        opened: The producer.
        properties: As the user gave them.
        transactional_id: Its transactional id, and the group whose offset it commits.
    """

    def __init__(self, opened: OpenProducer, properties: Properties, transactional_id: str) -> None:
        super().__init__(Lease(opened, (), time.monotonic()))
        self._properties, self._id = properties, transactional_id
        self._group = TransactionGroup(properties, transactional_id)
        self._in_transaction = self._is_stuck = False

    def take_over(self) -> None:
        """Fences off whatever had the id before, and waits until its transaction is aborted or committed."""
        self._request("begin to write", self._producer.init_transactions)

    def committed(self, topic: str, group: str | None = None) -> GroupOffset | None:
        """What the group with the name of the id, or another one, has committed on a topic; None = nothing."""
        if group is None:
            return self._group.committed(topic)
        with closing(TransactionGroup(self._properties, group)) as asked:
            return asked.committed(topic)

    def committed_anywhere(self) -> GroupOffset | None:
        """What the group with the name of the id has committed on any topic; None = nothing."""
        return self._group.committed_anywhere()

    def groups(self, prefix: str) -> list[str]:
        """The consumer groups whose names begin so; none if brokers do not tell."""
        return groups(self._properties, prefix)

    def retention_s(self) -> float | None:
        """How long brokers keep what a group has committed, in seconds; None = they do not tell."""
        return retention_s(self._properties)

    def begin(self) -> None:
        """Begins the transaction."""
        with self._explained():
            self._producer.begin_transaction()
        self._in_transaction = True

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while its queue is full."""
        with self._explained():
            super().send(messages)

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        with self._explained():
            super().flush()

    def commit(self, offset: GroupOffset) -> None:
        """Commits the messages together with an offset of the group."""
        partition = ck.TopicPartition(
            offset.topic, offset.partition, offset.offset, offset.metadata
        )
        group = self._group_to_send()

        def send_offset(timeout: float) -> None:
            self._producer.send_offsets_to_transaction([partition], group, timeout)

        # librdkafka sends it again when an answer is lost, within the time of the call alone.
        self._request("add a receipt to a transaction", send_offset, in_one_call=True)
        self._request("commit a transaction", self._producer.commit_transaction)
        self._in_transaction = False

    def close(self) -> None:
        """Aborts the transaction, if one is open, and ends the producer; messages that are unsent are dropped.

        A commit that is stuck may still take effect, of all messages together with their receipt: the next attempt
        finds that out, or fences it off.
        """
        try:
            self._abort()
        except (ck.KafkaException, BrokerError) as error:
            is_raw = isinstance(error, ck.KafkaException)
            # The next attempt fences it off, or the broker ends it after its timeout.
            logger.warning(
                "A transaction was not aborted: %s", self._failure(error).text if is_raw else error
            )
        finally:
            self._producer.purge(blocking=not self._is_stuck)
            if not self._is_stuck:
                with suppress(ck.KafkaException):  # once more what was fatal, and is told already
                    self._producer.flush(0)
            del self._producer, self._lease  # librdkafka's threads end with the last reference
            self._group.close()

    def _group_to_send(self) -> object:
        """The group as the producer takes it."""
        return self._id if isinstance(self._producer, BatchProducer) else self._group.metadata()

    def _wait(self, call: Callable[[float], T], timeout_s: float) -> T:
        """Has the client report; what it raises then, `_explained` tells."""
        return self._taking_reports(call, timeout_s)

    def _abort(self) -> None:
        """Aborts the transaction, if one is open: with it goes what is not sent yet."""
        if self._in_transaction and not self._is_stuck:
            self._in_transaction = False
            self._in_time("abort a transaction", self._producer.abort_transaction, CLOSE_TIMEOUT_S)

    def _request(
        self, what: str, request: Callable[[float], object], *, in_one_call: bool = False
    ) -> None:
        """A request of the transaction, sent again while that may help.

        Args:
            what: What is requested, to complete "could not".
            request: Gets a timeout in seconds.
            in_one_call: Whether one call has the time of all attempts.

        Raises:
            BrokerError: It failed for good; after a commit it may be unknown whether it did.
        """
        properties = self._properties.resolved()
        times = Timeouts.from_properties(properties)

        def attempt(timeout: float) -> None:
            self._in_time(what, request, times.api_s if in_one_call else timeout)

        Retrying(
            properties["bootstrap.servers"], times, self._reports.errors, (ck.KafkaException,), self._failure
        ).call(what, attempt)  # fmt: skip

    def _in_time(self, what: str, request: Callable[[float], object], timeout_s: float) -> None:
        """Sends a request; librdkafka may wait far longer for its answer than it was told to (its issue 5456).

        Raises:
            BrokerError: It still waits: the request may yet take effect.
        """
        answer: Future[object] = Future()

        def send() -> None:
            try:
                answer.set_result(request(timeout_s))
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                answer.set_exception(error)

        threading.Thread(target=send, name=what, daemon=True).start()
        try:
            answer.result(timeout_s + _LATE_S)
        except FutureTimeoutError:
            self._is_stuck = True
            raise RetriableBrokerError(
                f"Could not {what} of transactional id {self._id!r}: no broker answered within {timeout_s:g} seconds, and "
                "it is not known whether the request has arrived. The next attempt finds that out."
            ) from None

    def _failure(self, exception: Exception) -> Failure:
        """What an error means for the next attempt, as librdkafka itself says."""
        error: ck.KafkaError = exception.args[0]
        if error.fatal():
            self._in_transaction = False  # nothing is left that this producer could abort
        kind, reason = kind_in_transaction(error), self._reason(error)
        if kind is FailureKind.FATAL and kind_of(error).is_retriable and not error.fatal():
            kind = FailureKind.ENDED
            reason = f"{reason}. The transaction has ended with it; what became of it, the next attempt finds out"
        return Failure(kind, reason)

    def _reason(self, error: ck.KafkaError) -> str:
        said = self._reports.errors.shown(error.str())
        return explained_in_transaction(self._id, _code(error), said)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """An error of the producer is raised as one that says what happened to the transaction."""
        try:
            yield
        except ck.KafkaException as exception:
            raise self._nothing_written(exception) from None
        except DeliveryError as undelivered:
            raise self._cause_of(undelivered) from None

    def _cause_of(self, undelivered: DeliveryError) -> UpsertKafkaError:
        """Aborts the transaction, and says why its messages were not delivered.

        The first sign that a producer is fenced off, or may not write, is a message that it has dropped. That no broker
        answers in time says nothing: the messages were not delivered because of it, and the next attempt fences it off.
        """
        failed = self._failed_with()
        try:
            self._abort()
        except ck.KafkaException as exception:
            error: ck.KafkaError = exception.args[0]
            if not error.retriable() and _code(error) != _INVALID_STATE_CODE:
                return self._nothing_written(exception)
        except BrokerError as stuck:
            logger.info("%s", stuck)
        if failed is None or not any(said in undelivered.reason for said in _DROPPED):
            return undelivered
        return DeliveryError(
            undelivered.topic,
            undelivered.partition,
            undelivered.key,
            self._reason(failed),
            undelivered.failed,
        )

    def _nothing_written(self, exception: ck.KafkaException) -> BrokerError:
        failure = self._failure(exception)
        raised = RetriableBrokerError if failure.kind is FailureKind.ENDED else BrokerError
        return raised(f"Nothing is written by {failure.text}.")

    def _failed_with(self) -> ck.KafkaError | None:
        """What the transaction failed with; None = it has not failed."""
        try:
            self._producer.begin_transaction()  # which it is in, or refuses with what it failed with
        except ck.KafkaException as exception:
            error: ck.KafkaError = exception.args[0]
            return None if error.code() == ck.KafkaError._STATE else error  # noqa: SLF001 - confluent-kafka's spelling
        return None


def _code(error: ck.KafkaError) -> int:
    fenced = error.code() == ck.KafkaError._FENCED  # noqa: SLF001 - librdkafka's own code
    return _FENCED_CODE if fenced else error.code()


class TransactionGroup:
    """The group's offsets on partition 0 of topics.

    It connects in the background as soon as it is made, while the transaction is opened.

    Args:
        properties: As the user gave them.
        name: The group, which has the name of the transactional id.
    """

    def __init__(self, properties: Properties, name: str) -> None:
        self._properties, self._name = properties, name
        # Without ``isolation.level`` it is read_committed, for offsets too.
        self._config = client_config(properties, "writer", {})
        self._config.pop("isolation.level", None)
        self._consumer = GroupConsumer(self._config, name)

    def committed(self, topic: str) -> GroupOffset | None:
        """What the group has committed on the topic; an open transaction that may change it is waited for."""
        return self._first([topic])

    def committed_anywhere(self) -> GroupOffset | None:
        """What the group has committed on any topic that may be seen."""
        return self._first(self._request("list topics", self._consumer.topics))

    def metadata(self) -> object:
        """What a transaction needs to know of the group; nobody is asked for it."""
        return self._consumer.metadata()

    def close(self) -> None:
        """Closes the connection."""
        self._consumer.close()

    def _first(self, topics: Sequence[str]) -> GroupOffset | None:
        wanted = [ck.TopicPartition(topic, 0) for topic in topics]

        def request(timeout: float) -> list[ck.TopicPartition]:
            found = self._consumer.committed(wanted, timeout)
            return [tp for tp in found if tp.offset >= 0]

        found = self._request(f"look up the offsets of group {self._name!r}", request)
        if not found:
            return None
        tp = found[0]
        return GroupOffset(tp.topic, tp.partition, tp.offset, tp.metadata or "")

    def _request(self, what: str, request: Any) -> Any:
        given = self._properties.resolved()
        return Retrying(
            given["bootstrap.servers"], Timeouts.from_properties(given), ReportedErrors(self._config),
            (ck.KafkaException,), classify,
        ).call(what, request)  # fmt: skip


def groups(properties: Properties, prefix: str) -> list[str]:
    """The consumer groups whose names begin so; none if brokers do not tell."""
    with pooled_cluster(properties, "writer") as cluster:
        try:
            return [name for name in cluster.groups() if name.startswith(prefix)]
        except BrokerError as error:
            _unknown(error)
            return []


def retention_s(properties: Properties) -> float | None:
    """How long brokers keep what a group has committed, in seconds; None if they do not tell."""
    with pooled_cluster(properties, "writer") as cluster:
        try:
            return cluster.offsets_retention_s()
        except BrokerError as error:
            _unknown(error)
            return None


def _unknown(error: BrokerError) -> None:
    """Writing needs no ACL for what is not told."""
    logger.info("Something that only a warning depends on is not known: %s", error)


def open_transaction(
    properties: Properties,
    topics: tuple[str, ...],
    transactional_id: str,
    *,
    with_metadata: bool,
) -> LibrdkafkaTransactionalSender:
    """A sender for these topics, which are checked to exist; fences off whatever had the id before.

    Args:
        properties: As the user gave them.
        topics: The topics.
        transactional_id: The id.
        with_metadata: Whether messages have timestamps or headers; without, they may be sent by the batch.

    Raises:
        BrokerError: No broker answers, a topic does not exist, or access is denied.
        OptionError: The client does not take a property, or one contradicts ``exactly-once``.
    """
    with pooled_cluster(properties, "writer") as cluster:
        limits = max_message_bytes(cluster, topics)
    config = transaction_config(properties, limits, transactional_id)
    in_batches = not with_metadata and takes(config)
    opened = connected(open_producer(config, topics, in_batches=in_batches), topics)
    sender = LibrdkafkaTransactionalSender(opened, properties, transactional_id)
    with undone_on_failure(sender.close):
        sender.take_over()
    return sender


def kind_in_transaction(error: KafkaError) -> FailureKind:
    """What an error of a call of a transaction means for the same call: librdkafka says itself whether it may be repeated.

    It does not say so of errors that it has no case for, such as that of a coordinator that left the cluster.
    """
    ends_transaction = error.fatal() or error.txn_requires_abort()
    if error.retriable() or (kind_of(error).is_retriable and not ends_transaction):
        return FailureKind.RETRIABLE
    return FailureKind.FATAL


def explained_in_transaction(transactional_id: str, code: int, text: str) -> str:
    """Why a transaction failed, and what to do; a sentence without its full stop.

    Args:
        transactional_id: The transactional id.
        code: The error's code in Kafka's protocol.
        text: The error in the client's words.

    >>> explained_in_transaction("sink-7d0c-0-3", 7, "Broker: Request timed out")
    "transactional id 'sink-7d0c-0-3': Broker: Request timed out"
    """
    about = f"transactional id {transactional_id!r}: {text.removesuffix('.')}"
    if code in _FENCED:
        return (
            f"{about}. It is fenced off, and writes nothing more: a newer attempt of the task, or a newer run of "
            "the query, writes under this id, or its transaction was open for longer than "
            "'properties.transaction.timeout.ms'"
        )
    remedy = _IN_TRANSACTION.get(code)
    return f"{about}. What helps: {remedy}" if remedy else about
