"""librdkafka's producers, kept from task to task, and what they report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import DeliveryError
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.librdkafka.producer_config import producer_config
from pyspark_upsert_kafka.kafka.librdkafka.properties import open_client
from pyspark_upsert_kafka.kafka.pool import Lease, Pool
from pyspark_upsert_kafka.kafka.sizes import TOO_LARGE_HINT, larger_than_queue, max_message_bytes
from pyspark_upsert_kafka.kafka.undelivered import Undelivered


class DeliveryReports:
    """What a producer reports: messages that were not delivered, and errors of its own."""

    def __init__(self) -> None:
        self.undelivered = Undelivered()
        self.errors = ReportedErrors()

    def on_delivery(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        """Takes note of a message that was not delivered: the client's callback."""
        if error is not None:
            self._add(message.topic(), message.partition(), message.key(), error)

    def raise_refused(self, message: tuple[Any, ...], exception: ck.KafkaException) -> None:
        """Raises a DeliveryError for a message (the arguments of ``produce``) that the client did not take."""
        topic, _, key, *_ = message
        self._add(topic, None, key, exception.args[0])
        self.undelivered.raise_first()

    def raise_too_large(self, message: tuple[Any, ...]) -> None:
        """Raises a DeliveryError for a message that does not even fit into an empty queue."""
        topic, value, key, *_ = message
        reason = larger_than_queue(len(key or b"") + len(value or b""))
        self.undelivered.add(DeliveryError(topic, None, key, reason), None)
        self.undelivered.raise_first()

    def _add(
        self, topic: str, partition: int | None, key: bytes | None, error: ck.KafkaError
    ) -> None:
        reason = self._reason(error)
        self.undelivered.add(DeliveryError(topic, partition, key, reason), error.code())

    def _reason(self, error: ck.KafkaError) -> str:
        text = error.str()
        if error.code() == ck.KafkaError.MSG_SIZE_TOO_LARGE:
            return f"{text} {TOO_LARGE_HINT}"
        if error.code() == ck.KafkaError._MSG_TIMED_OUT:  # noqa: SLF001
            text = "no broker confirmed it within the time of 'properties.delivery.timeout.ms'"
        seen = self.errors.describe()
        return f"{text}.{seen}" if seen else text


@dataclass(frozen=True)
class OpenProducer:
    """A producer, and where it reports to."""

    producer: ck.Producer
    reports: DeliveryReports


def pooled_producer(
    properties: Properties, topics: tuple[str, ...], guarantee: DeliveryGuarantee
) -> Lease[OpenProducer]:
    """A producer for these topics, which are checked to exist when it is opened.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property.
    """

    def connect() -> OpenProducer:
        with pooled_admin(properties, "writer") as admin:
            limits = max_message_bytes(admin, topics)
        return open_producer(producer_config(properties, limits, guarantee))

    return POOL.take((properties.resolved(), topics, guarantee), connect)


def open_producer(config: Mapping[str, Any]) -> OpenProducer:
    """A producer of its own with this configuration.

    Raises:
        OptionError: The client does not take a property.
    """
    reports = DeliveryReports()
    callbacks = {"on_delivery": reports.on_delivery, "error_cb": reports.errors.on_error}
    return OpenProducer(open_client(ck.Producer, {**config, **callbacks}), reports)


def _close(opened: OpenProducer) -> None:
    """Drops what is unsent; librdkafka's threads end with the last reference."""
    opened.producer.purge()
    opened.producer.flush(0)


POOL: Pool[OpenProducer] = Pool(_close)
