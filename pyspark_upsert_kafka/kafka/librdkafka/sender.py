"""Sends messages with librdkafka: murmur2, idempotent, every delivery confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.client_errors import SECURITY_HINT
from pyspark_upsert_kafka.kafka.cluster import KafkaCluster
from pyspark_upsert_kafka.kafka.librdkafka.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.librdkafka.producer_config import producer_config
from pyspark_upsert_kafka.kafka.librdkafka.properties import open_client
from pyspark_upsert_kafka.kafka.messages import Messages
from pyspark_upsert_kafka.kafka.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.sizes import larger_than_queue, max_message_bytes
from pyspark_upsert_kafka.kafka.undelivered import Undelivered


def sender_for(
    properties: Properties, topics: tuple[str, ...], guarantee: DeliveryGuarantee
) -> LibrdkafkaSender:
    """A sender to these topics, which are checked to exist before the first message.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property.
    """

    def connect() -> _Connection:
        with pooled_admin(properties, "writer") as admin:
            KafkaCluster(admin).topics(Topics(names=topics))
            limits = max_message_bytes(admin, topics)
        return _connected(producer_config(properties, limits, guarantee))

    return LibrdkafkaSender(POOL.take((properties.resolved(), topics, guarantee), connect))


class LibrdkafkaSender:
    """One producer; used by one task at a time.

    A batch is done when `flush` returns: librdkafka reports each message exactly once, here only when
    it failed, and its queue is empty only after the last report.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[_Connection]) -> None:
        self._lease = lease
        self._producer, self._reports = lease.client.producer, lease.client.reports
        self._handed_over = self._gone_through = 0
        self._producer.poll(0)  # errors of before are passed on now, and cleared
        self._reports.errors.clear()

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while its queue is full."""
        produce = self._producer.produce
        for message in _arguments(messages):
            try:
                produce(*message)
            except BufferError:
                self._produce_when_there_is_room(message)
            except ck.KafkaException as error:
                self._reports.raise_refused(message, error)
        self._handed_over += len(messages)
        self._producer.poll(0)
        self._note_progress()
        self._reports.undelivered.raise_first()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while not self._reports.undelivered and self._producer.flush(timeouts.DELIVERY_CHECK_S):
            self._note_progress()
            self._reports.raise_fatal()
        self._reports.undelivered.raise_first()

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it when anything is unsent."""
        if len(self._producer) or self._reports.undelivered:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)
        del self._producer, self._lease  # librdkafka's threads end with the last reference

    def _note_progress(self) -> None:
        """What was handed over and waits no longer has got through; what failed is told elsewhere."""
        gone_through = self._handed_over - len(self._producer)
        if gone_through > self._gone_through:
            self._gone_through = gone_through
            self._reports.errors.note_progress()

    def _produce_when_there_is_room(self, message: tuple[Any, ...]) -> None:
        while True:
            was_empty = not len(self._producer)
            try:
                self._producer.produce(*message)
            except BufferError:
                if was_empty:
                    self._reports.raise_too_large(message)
                self._reports.raise_fatal()
            except ck.KafkaException as error:
                self._reports.raise_refused(message, error)
            else:
                self._reports.errors.note_progress()
                return
            self._producer.poll(timeouts.DELIVERY_CHECK_S)
            self._reports.undelivered.raise_first()


@dataclass(frozen=True)
class _Connection:
    """A producer, and what it reports."""

    producer: ck.Producer
    reports: _Reports


def _connected(config: Mapping[str, Any]) -> _Connection:
    reports = _Reports()
    callbacks = {"on_delivery": reports.report, "error_cb": reports.errors.on_error}
    return _Connection(open_client(ck.Producer, {**config, **callbacks}), reports)


def _end(connection: _Connection) -> None:
    """Drops what is unsent; librdkafka's threads end with the last reference."""
    connection.producer.purge()
    connection.producer.flush(0)


POOL: Pool[_Connection] = Pool(_end)


class _Reports:
    """What a producer reports: messages that were not delivered, and other trouble."""

    def __init__(self) -> None:
        self.undelivered = Undelivered()
        self.errors = ReportedErrors()

    def report(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        """Takes note of a message that was not delivered."""
        if error is not None:
            self._add(message.topic(), message.partition(), message.key(), error)

    def raise_refused(self, message: tuple[Any, ...], exception: ck.KafkaException) -> None:
        """Raises a DeliveryError for a message that the client did not even take."""
        topic, _, key, *_ = message
        self._add(topic, None, key, exception.args[0])
        self.undelivered.raise_first()

    def raise_too_large(self, message: tuple[Any, ...]) -> None:
        """Raises a DeliveryError for a message that does not even fit into an empty queue."""
        topic, value, key, *_ = message
        reason = larger_than_queue(len(key or b"") + len(value or b""))
        self.undelivered.add(DeliveryError(topic, None, key, reason), None)
        self.undelivered.raise_first()

    def raise_fatal(self) -> None:
        """Raises a BrokerError for what waiting does not mend, if there is such trouble."""
        fatal = self.errors.fatal_error
        if fatal is not None:
            raise BrokerError(f"Nothing can be written: {fatal}.{SECURITY_HINT}")

    def _add(
        self, topic: str, partition: int | None, key: bytes | None, error: ck.KafkaError
    ) -> None:
        reason = _reason(error, self.errors)
        self.undelivered.add(DeliveryError(topic, partition, key, reason), error.code())


def _arguments(messages: Messages) -> Iterable[tuple[Any, ...]]:
    """The arguments of ``produce`` for each message, by position."""
    topics = messages.topic_of_each()
    if messages.timestamps is None and messages.headers is None:
        return zip(topics, messages.values, messages.keys, strict=True)
    return (
        # The key decides on the partition, and no message has a callback of its own, under neither name.
        (topic, value, key, -1, None, None, timestamp, list(headers) if headers else None)
        for topic, key, value, timestamp, headers in messages.rows()
    )


def _reason(error: ck.KafkaError, errors: ReportedErrors) -> str:
    text = error.str()
    if error.code() == ck.KafkaError.MSG_SIZE_TOO_LARGE:
        return f"{text} (see the topic's 'max.message.bytes' and 'properties.max.request.size')"
    if error.code() == ck.KafkaError._MSG_TIMED_OUT:  # noqa: SLF001
        text = "no broker confirmed it within the time of 'properties.delivery.timeout.ms'"
    seen = errors.describe()
    return f"{text}.{seen}" if seen else text
