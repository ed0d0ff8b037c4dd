"""Sends messages with librdkafka: producers kept from task to task, murmur2, idempotent, every delivery confirmed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import confluent_kafka as ck

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee, required_acks
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError, RetriableDeliveryError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.client_pool import Lease, PartitionLookups, Pool
from pyspark_upsert_kafka.kafka.cluster import max_message_bytes
from pyspark_upsert_kafka.kafka.failures import explained
from pyspark_upsert_kafka.kafka.librdkafka.cluster import pooled_cluster
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, classify
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.native import (
    BatchProducer,
    MessageBatch,
    TransactionalBatchProducer,
    is_on,
    takes,
)
from pyspark_upsert_kafka.kafka.outgoing_messages import (
    TOO_LARGE_HINT,
    Messages,
    Undelivered,
    larger_than_queue,
    list_of,
    raise_if_fatal,
)

logger = logging.getLogger("pyspark_upsert_kafka")


class DeliveryReports:
    """What a producer reports: messages that were not delivered, and errors of its own.

    Args:
        config: The producer's configuration.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.undelivered = Undelivered()
        self.errors = ReportedErrors(config)
        self._failure: BaseException | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a message was not delivered, or a report is lost that may have said so."""
        return self._failure is not None or bool(self.undelivered)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """The context in which the client reports. What is raised in it, such as by Ctrl-C, may have lost a report.

        So it is kept, and raised again: else a caller that has caught it would take a message for delivered that was not.
        """
        try:
            yield
        except ck.KafkaException:
            raise
        except BaseException as failure:
            self._failure = failure
            raise

    def raise_first(self) -> None:
        """Does nothing as long as every message was delivered.

        Raises:
            DeliveryError: The first message that was not, and how many were not.
        """
        if self._failure is not None:
            raise self._failure
        self.undelivered.raise_first()

    def on_delivery(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        """Takes note of a message that was not delivered: the client's callback."""
        if error is not None:
            self.add(message.topic(), message.partition(), message.key(), error)

    def add(
        self, topic: str, partition: int | None, key: bytes | None, error: ck.KafkaError
    ) -> None:
        """Takes note of a message that was not delivered."""
        late = error.code() == ck.KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - confluent-kafka's spelling
        raised = RetriableDeliveryError if late else DeliveryError
        undelivered = raised(topic, partition, key, self._reason(error))
        with_batch = error.code() == ck.KafkaError._INVALID_DIFFERENT_RECORD  # noqa: SLF001 - confluent-kafka's spelling
        self.undelivered.add(undelivered, error.code(), refused_with_batch=with_batch)

    def raise_refused(self, topic: str, key: bytes | None, error: ck.KafkaError) -> None:
        """Raises a DeliveryError for a message that the client did not take."""
        self.add(topic, None, key, error)
        self.raise_first()

    def raise_too_large(self, topic: str, key: bytes | None, size: int) -> None:
        """Raises a DeliveryError for a message that does not even fit into an empty queue, with its size in bytes."""
        self.undelivered.add(DeliveryError(topic, None, key, larger_than_queue(size)), None)
        self.raise_first()

    def _reason(self, error: ck.KafkaError) -> str:
        text = self.errors.shown(error.str())
        if error.code() == ck.KafkaError.MSG_SIZE_TOO_LARGE:
            return f"{text} {TOO_LARGE_HINT}"
        if error.code() == ck.KafkaError._MSG_TIMED_OUT:  # noqa: SLF001
            text = "no broker confirmed it within the time of 'properties.delivery.timeout.ms'"
        text, seen = explained(error.code(), text), self.errors.describe()
        return f"{text}.{seen}" if seen else text


_LOOKUP_S = 5.0
"""How long an answer about partitions is waited for."""

_CONFIG: dict[str, Any] = {
    # What the Java client does with a key, so that mixed writers agree where a key lives.
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    "delivery.timeout.ms": 120_000,  # the Java client's default
    # Few enough to stay in the processor's cache, and enough to fill a batch for many partitions.
    "queue.buffering.max.messages": 20_000,
    # A report for each delivered message would cost a Python call each; an error always comes.
    "delivery.report.only.error": True,
    "allow.auto.create.topics": False,
}

_TRANSACTION_TIMEOUT_MS = 900_000
"""As long as brokers allow unless told otherwise (``transaction.max.timeout.ms``)."""

_BATCH_BYTES = 1_000_000
_MOST_MESSAGE_BYTES = 1_000_000_000
"""librdkafka's own bound; topics without any say 2,147,483,647."""

_QUEUE_KBYTES = 64 * 1024


@dataclass(frozen=True)
class OpenProducer:
    """A producer.

    Args:
        producer: The producer.
        reports: Where it reports to.
        lookups: When it looked up partitions.
        open_another: Opens one like it.
    """

    producer: ck.Producer | BatchProducer
    reports: DeliveryReports
    lookups: PartitionLookups
    open_another: Callable[[], OpenProducer] = field(repr=False)  # holds secrets


def pooled_producer(
    properties: Properties,
    topics: tuple[str, ...],
    guarantee: DeliveryGuarantee,
    *,
    with_metadata: bool,
) -> Lease[OpenProducer]:
    """A producer for these topics, which are checked to exist when it is opened.

    Args:
        properties: As the user gave them.
        topics: The topics.
        guarantee: What the sink promises.
        with_metadata: Whether messages have timestamps or headers; without, it may be a `BatchProducer`.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property.
    """

    def connect() -> OpenProducer:
        with pooled_cluster(properties, "writer") as cluster:
            limits = max_message_bytes(cluster, topics)
        config = producer_config(properties, limits, guarantee)
        return connected(
            open_producer(config, topics, in_batches=not with_metadata and takes(config)), topics
        )

    settings = (properties.resolved(), topics, guarantee, with_metadata, is_on())
    lease = POOL.take(settings, connect)
    if not lease.client.lookups.is_due or knows_partitions(lease.client, topics):
        return lease
    POOL.discard(lease)
    # This one knows none: it asks when it sends, for as long as messages may wait.
    return replace(lease, client=lease.client.open_another())


def connected(opened: OpenProducer, topics: Sequence[str]) -> OpenProducer:
    """A new producer that can send at once, if brokers answer.

    librdkafka asks for the id of an idempotent producer, and for the coordinator of a transaction, when metadata arrive over
    a connection that it keeps, or else after half a second, and again after another. The first metadata may arrive from a
    bootstrap server, whose connection it drops because of them. The second never do.
    """
    for _ in range(2):
        if not knows_partitions(opened, topics):
            break
    return opened


def knows_partitions(opened: OpenProducer, topics: Sequence[str]) -> bool:
    """Has a producer look up how many partitions its topics have now; false = no broker has answered."""
    try:
        if isinstance(opened.producer, BatchProducer):
            opened.producer.refresh(topics, _LOOKUP_S)
        else:
            for topic in topics:
                opened.producer.list_topics(topic, timeout=_LOOKUP_S)
    except ck.KafkaException as error:
        logger.info("The partitions of %s are not known: %s", ", ".join(topics), error)
        return False
    opened.lookups.note()
    return True


def open_producer(
    config: Mapping[str, Any], topics: Sequence[str], *, in_batches: bool = False
) -> OpenProducer:
    """A producer of its own with this configuration.

    Args:
        config: librdkafka's configuration.
        topics: What it will write to.
        in_batches: Whether it is a `BatchProducer`.

    Raises:
        OptionError: The client does not take a property.
    """
    reports, lookups = DeliveryReports(config), PartitionLookups(len(topics))
    another = partial(open_producer, config, topics, in_batches=in_batches)
    if in_batches:
        kind = TransactionalBatchProducer if "transactional.id" in config else BatchProducer
        opening = partial(kind, reports=reports)
        return OpenProducer(open_client(opening, dict(config)), reports, lookups, another)
    callbacks = {"on_delivery": reports.on_delivery, **reports.errors.callbacks()}
    producer = open_client(ck.Producer, {**config, **callbacks})
    return OpenProducer(producer, reports, lookups, another)


def _close(opened: OpenProducer) -> None:
    """Drops what is unsent; librdkafka's threads end with the last reference."""
    opened.producer.purge()
    # confluent-kafka raises a fatal error from whichever call comes next; whoever sent learns it from a call of their own.
    with suppress(ck.KafkaException):
        opened.producer.flush(0)


POOL: Pool[OpenProducer] = Pool(_close)


def producer_config(
    properties: Properties, limits: Sequence[int], guarantee: DeliveryGuarantee
) -> dict[str, Any]:
    """The producer's configuration.

    Args:
        properties: As the user gave them.
        limits: The largest message that each topic takes, where that is known.
        guarantee: What the sink promises.

    Raises:
        OptionError: The properties contradict the guarantee.
    """
    required = required_acks(properties.resolved(), guarantee)
    given = client_config(properties, "writer", {})
    wanted = min(max([_BATCH_BYTES, *limits]), _MOST_MESSAGE_BYTES)
    largest = given.get("message.max.bytes", wanted)
    return {
        **_CONFIG,
        # librdkafka never splits a batch that is too large for the topic, so one must not become
        # so: else messages that are small enough would be refused with a large one.
        "batch.size": max(1, min([_BATCH_BYTES, *limits])),
        "message.max.bytes": largest,
        "queue.buffering.max.kbytes": _queue_kbytes(str(largest)),
        # Without idempotence a second request in flight could overtake the first one's retry.
        **({} if required.idempotent else {"max.in.flight.requests.per.connection": 1}),
        **given,
        "acks": required.acks,
        "enable.idempotence": required.idempotent,
    }


def transaction_config(
    properties: Properties, limits: Sequence[int], transactional_id: str
) -> dict[str, Any]:
    """The configuration of a producer that writes in transactions.

    Raises:
        OptionError: The properties contradict ``exactly-once``.
    """
    config = producer_config(properties, limits, DeliveryGuarantee.EXACTLY_ONCE)
    timeout_ms = str(config.setdefault("transaction.timeout.ms", _TRANSACTION_TIMEOUT_MS))
    # librdkafka takes no other timeout that is longer than the transaction's.
    for name in ("delivery.timeout.ms", "socket.timeout.ms"):
        if timeout_ms.isdigit() and name not in properties:
            config[name] = min(config[name], int(timeout_ms))
    return {**config, "transactional.id": transactional_id}


def _queue_kbytes(largest: str) -> int:
    """A queue that the largest message fits into; what is no number librdkafka refuses itself."""
    return max(_QUEUE_KBYTES, int(largest) // 1024 + 1) if largest.isdigit() else _QUEUE_KBYTES


T = TypeVar("T")

_WAIT_S = 0.1
"""How long a call of the client waits (seconds). From 0.2 s on confluent-kafka waits in several steps, and goes on with the
next step though an exception was raised in a callback, which may be lost then."""

_TIMES = 100
"""How often a report that must come is waited for."""

_ROOM_S = 0.01
"""How long a full queue is waited for before it is tried again; the least that fills it well."""

_OF_KEY = -1
"""In the place of a partition: the key decides on it."""


class LibrdkafkaSender:
    """One producer; used by one task at a time.

    A batch is done when `flush` returns: librdkafka reports each message exactly once, here only when
    it failed, and its queue is empty only after the last report.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[OpenProducer]) -> None:
        self._lease = lease
        self._producer: Any = lease.client.producer
        self._reports = lease.client.reports
        self._handed_over = self._completed = 0
        self._is_cancelled = False
        self._wait(self._producer.poll, 0)  # errors of before are passed on now, and cleared
        self._reports.errors.clear()

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while its queue is full."""
        self._hand_over(messages)
        self._handed_over += len(messages)
        self._wait(self._producer.poll, 0)
        self._note_progress()
        self._reports.raise_first()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while not self._reports.has_failed and self._wait(self._producer.flush, _WAIT_S):
            self._note_progress()
            raise_if_fatal(self._reports.errors)
        self._reports.raise_first()

    def cancel(self) -> None:
        """Ends, from another thread, what waits in `send` or `flush`; after it there is only `close`."""
        self._is_cancelled = True

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it and drops what is unsent."""
        if len(self._producer) or self._reports.has_failed or self._is_cancelled:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)
        del self._producer, self._lease  # librdkafka's threads end with the last reference

    def _hand_over(self, messages: Messages) -> None:
        if isinstance(self._producer, BatchProducer):
            if (messages.timestamps, messages.headers, messages.partition) != (None, None, None):
                raise ValueError("The sender was opened for messages of keys and values alone.")
            for topic, of_topic in messages.by_topic():
                self._hand_over_batch(MessageBatch(topic, of_topic.keys, of_topic.values))
            return
        produce = self._producer.produce
        for message in _arguments(messages):
            try:
                produce(*message)
            except BufferError:
                self._produce_when_there_is_room(message)
            except ck.KafkaException as refused:
                topic, _, key, *_ = message
                self._raise_refused(topic, key, refused.args[0])

    def _hand_over_batch(self, batch: MessageBatch) -> None:
        begin = 0
        while begin < len(batch):
            was_empty, before = not len(self._producer), begin
            begin, error = self._producer.produce_batch(batch, before)
            if error is None:
                return
            if error.code() != ck.KafkaError._QUEUE_FULL:  # noqa: SLF001 - confluent-kafka's spelling
                self._raise_refused(batch.topic, batch.key(begin), error)
            if begin > before:
                self._reports.errors.note_progress()
            elif was_empty:
                self._reports.raise_too_large(batch.topic, batch.key(begin), batch.size(begin))
            self._wait_for_room(_ROOM_S)

    def _wait(self, call: Callable[[float], T], timeout_s: float) -> T:
        """Has the client report, for so long at most."""
        try:
            return self._taking_reports(call, timeout_s)
        except ck.KafkaException as fatal:
            raise BrokerError(f"Nothing can be written: {classify(fatal).text}.") from fatal

    def _taking_reports(self, call: Callable[[float], T], timeout_s: float) -> T:
        if self._is_cancelled:
            raise BrokerError("Nothing more is written: the task has ended.")
        with self._reports.taken():
            return call(timeout_s)

    def _note_progress(self) -> None:
        """A message that no longer waits got an answer, be it an error: the broker can be reached."""
        completed = self._handed_over - len(self._producer)
        if completed > self._completed:
            self._completed = completed
            self._reports.errors.note_progress()

    def _produce_when_there_is_room(self, message: tuple[Any, ...]) -> None:
        topic, value, key, *_ = message
        while True:
            was_empty = not len(self._producer)
            try:
                self._producer.produce(*message)
            except BufferError:
                if was_empty:
                    self._reports.raise_too_large(topic, key, len(key or b"") + len(value or b""))
                self._wait_for_room(_WAIT_S)
            except ck.KafkaException as refused:
                self._raise_refused(topic, key, refused.args[0])
            else:
                self._reports.errors.note_progress()
                return

    def _wait_for_room(self, timeout_s: float) -> None:
        raise_if_fatal(self._reports.errors)
        self._wait(self._producer.poll, timeout_s)
        self._reports.raise_first()

    def _raise_refused(self, topic: str, key: bytes | None, error: ck.KafkaError) -> None:
        """Raises the error of a message that the client did not take, or the fatal error because of which it takes none."""
        if error.code() == ck.KafkaError._FATAL:  # noqa: SLF001 - confluent-kafka's spelling
            # confluent-kafka raises why from a later call, since librdkafka refuses messages a moment before it reports that.
            for _ in range(_TIMES):
                self._wait(self._producer.poll, _WAIT_S)
        self._reports.raise_refused(topic, key, error)


def _arguments(messages: Messages) -> Iterable[tuple[Any, ...]]:
    """The arguments of ``produce`` for each message, by position."""
    topics = messages.topic_of_each()
    if (messages.timestamps, messages.headers, messages.partition) == (None, None, None):
        return zip(topics, list_of(messages.values), list_of(messages.keys), strict=True)
    partition = _OF_KEY if messages.partition is None else messages.partition
    return (
        # No message has a callback of its own, under neither name.
        (topic, value, key, partition, None, None, timestamp, list(headers) if headers else None)
        for topic, key, value, timestamp, headers in messages.rows()
    )
