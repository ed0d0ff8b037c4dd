"""Sends messages with librdkafka: murmur2, idempotent, every delivery confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.confirmation import confirmation
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.batch_errors import ONE_SPOILS_THE_BATCH, in_a_batch
from pyspark_upsert_kafka.kafka.client import Headers, Messages
from pyspark_upsert_kafka.kafka.cluster import AskedCluster
from pyspark_upsert_kafka.kafka.librdkafka.askers import pooled_asker
from pyspark_upsert_kafka.kafka.librdkafka.asking import ClientTrouble
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, opened
from pyspark_upsert_kafka.kafka.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.trouble import CHECK_SECURITY

_CONFIG = {
    # What the Java client does with a key, so that mixed writers agree where a key lives.
    "partitioner": "murmur2_random",
    "linger.ms": 5,
    "delivery.timeout.ms": 120_000,  # the Java client's default
    # Few enough to stay in the processor's cache, and enough to fill a batch for many partitions.
    "queue.buffering.max.messages": 50_000,
    "queue.buffering.max.kbytes": 64 * 1024,
    # A report for each delivered message would cost a Python call each; an error always comes.
    "delivery.report.only.error": True,
    "allow.auto.create.topics": False,
}

_BATCH_BYTES = 1_000_000


def sender_for(
    properties: Properties, topics: tuple[str, ...], *, acknowledged: bool
) -> LibrdkafkaSender:
    """A sender to these topics, which are checked to exist before the first message.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property.
    """

    def connect() -> _Connection:
        with pooled_asker(properties, "writer") as asker:
            AskedCluster(asker).topics(Topics(names=topics))
            limit = asker.max_message_bytes(topics)
        return _connected(_config(properties, limit, acknowledged=acknowledged))

    return LibrdkafkaSender(POOL.take((properties.resolved(), topics, acknowledged), connect))


class LibrdkafkaSender:
    """One producer; used by one task at a time.

    A batch is done when `flush` returns: librdkafka reports each message exactly once, here only when
    it failed, and its queue is empty only after the last report.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[_Connection]) -> None:
        self._lease = lease
        self._producer, self._failures = lease.client.producer, lease.client.failures
        self._handed_over = self._gone_through = 0
        self._producer.poll(0)  # trouble of before is no news
        self._failures.trouble.begin()

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while its queue is full."""
        produce = self._producer.produce
        for message in _arguments(messages):
            try:
                produce(*message)
            except BufferError:
                self._produce_when_there_is_room(message)
            except ck.KafkaException as error:
                raise self._failures.refused(message, error) from None
        self._handed_over += len(messages)
        self._producer.poll(0)
        self._note_progress()
        self._failures.raise_first()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while not self._failures.first and self._producer.flush(patience.REPORT_S):
            self._note_progress()
            self._failures.raise_fatal()
        self._failures.raise_first()

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it when anything is unsent."""
        if len(self._producer) or self._failures.first:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)
        del self._producer, self._lease  # librdkafka's threads end with the last reference

    def _note_progress(self) -> None:
        """What was handed over and waits no longer has got through; what failed is told elsewhere."""
        gone_through = self._handed_over - len(self._producer)
        if gone_through > self._gone_through:
            self._gone_through = gone_through
            self._failures.trouble.progress()

    def _produce_when_there_is_room(self, message: tuple[Any, ...]) -> None:
        while True:
            self._producer.poll(patience.REPORT_S)
            self._failures.raise_first()
            try:
                self._producer.produce(*message)
            except BufferError:
                self._failures.raise_fatal()
                continue
            except ck.KafkaException as error:
                raise self._failures.refused(message, error) from None
            self._failures.trouble.progress()
            return


@dataclass(frozen=True)
class _Connection:
    """A producer, and what it reports."""

    producer: ck.Producer
    failures: _Failures


def _connected(config: Mapping[str, Any]) -> _Connection:
    failures = _Failures()
    callbacks = {"on_delivery": failures.report, "error_cb": failures.trouble}
    return _Connection(opened(ck.Producer, {**config, **callbacks}), failures)


def _end(connection: _Connection) -> None:
    """Drops what is unsent; librdkafka's threads end with the last reference."""
    connection.producer.purge()
    connection.producer.flush(0)


POOL: Pool[_Connection] = Pool(_end)


class _Failures:
    """What a producer reports: the first message that failed, how many did, and other trouble."""

    def __init__(self) -> None:
        self.first: DeliveryError | None = None
        self.trouble = ClientTrouble()
        self._count = 0
        self._cause: tuple[str, int | None, int] | None = None
        self._with_that_cause = 0

    def report(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        """Takes note of a message that was not delivered."""
        if error is not None:
            self._add(message.topic(), message.partition(), message.key(), error)

    def refused(self, message: tuple[Any, ...], exception: ck.KafkaException) -> DeliveryError:
        """The error for a message that the client did not even take."""
        topic, _, key, *_ = message
        self._add(topic, None, key, exception.args[0])
        return self._described()

    def raise_first(self) -> None:
        """Raises the first failure, if there is any."""
        if self.first is not None:
            raise self._described()

    def raise_fatal(self) -> None:
        """Raises what waiting does not mend, if there is such trouble."""
        fatal = self.trouble.fatal
        if fatal is not None:
            raise BrokerError(f"Nothing can be written: {fatal}.{CHECK_SECURITY}")

    def _add(
        self, topic: str, partition: int | None, key: bytes | None, error: ck.KafkaError
    ) -> None:
        self._count += 1
        cause = (topic, partition, error.code())
        if self.first is None:
            self.first = DeliveryError(topic, partition, key, _reason(error, self.trouble))
            self._cause = cause
        self._with_that_cause += cause == self._cause

    def _described(self) -> DeliveryError:
        first: Any = self.first
        reason = first.reason
        if self._cause is not None and self._cause[2] in ONE_SPOILS_THE_BATCH:
            reason = in_a_batch(reason, self._with_that_cause)
        return DeliveryError(first.topic, first.partition, first.key, reason, self._count)


def _config(
    properties: Properties, max_message_bytes: int | None, *, acknowledged: bool
) -> dict[str, Any]:
    """The producer's configuration.

    Raises:
        OptionError: The properties contradict the guarantee.
    """
    confirmed = confirmation(properties.resolved(), acknowledged=acknowledged)
    given = client_config(properties, "writer", {})
    limit = max_message_bytes or _BATCH_BYTES
    return {
        **_CONFIG,
        # librdkafka never splits a batch that is too large for the topic, so one must not become
        # so: else innocent messages would be refused with a large one.
        "batch.size": min(_BATCH_BYTES, limit),
        "message.max.bytes": max(_BATCH_BYTES, limit),
        # Without idempotence a second request in flight could overtake the first one's retry.
        **({} if confirmed.idempotent else {"max.in.flight.requests.per.connection": 1}),
        **given,
        "acks": confirmed.acks,
        "enable.idempotence": confirmed.idempotent,
    }


def _arguments(messages: Messages) -> Iterable[tuple[Any, ...]]:
    """The arguments of ``produce`` for each message, by position."""
    topics, count = messages.topics, len(messages)
    columns: list[Iterable[Any]] = [
        repeat(topics, count) if isinstance(topics, str) else topics,
        messages.values,
        messages.keys,
    ]
    if messages.timestamps is not None or messages.headers is not None:
        columns += [
            repeat(-1, count),  # the key decides on the partition
            repeat(None, count),  # no callback of its own,
            repeat(None, count),  # under neither of the two names
            repeat(0, count) if messages.timestamps is None else messages.timestamps,
            repeat(None, count) if messages.headers is None else map(_listed, messages.headers),
        ]
    return zip(*columns, strict=True)


def _listed(headers: Headers | None) -> list[tuple[str, bytes | None]] | None:
    return list(headers) if headers else None


def _reason(error: ck.KafkaError, trouble: ClientTrouble) -> str:
    text = error.str()
    if error.code() == ck.KafkaError.MSG_SIZE_TOO_LARGE:
        return f"{text} (see the topic's 'max.message.bytes' and 'properties.max.request.size')"
    return f"{text}{trouble.describe()}"
