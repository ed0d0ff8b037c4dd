"""Sends messages with librdkafka: murmur2, idempotent, every delivery confirmed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import repeat
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.client import Messages
from pyspark_upsert_kafka.kafka.librdkafka.asking import Trouble
from pyspark_upsert_kafka.kafka.librdkafka.cluster import LibrdkafkaCluster
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, invalid_property

logger = logging.getLogger("pyspark_upsert_kafka")

_CONFIG = {
    # What the Java client does with a key, so that mixed writers agree where a key lives.
    "partitioner": "murmur2_random",
    "linger.ms": 20,
    "compression.type": "lz4",
    "delivery.timeout.ms": 120_000,  # the Java client's default
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 64 * 1024,
    # A report for each delivered message would cost a Python call each; an error always comes.
    "delivery.report.only.error": True,
    "allow.auto.create.topics": False,
}

_BATCH_BYTES = 1_000_000

_QUEUE_WAIT_S = 0.05

_idle: dict[tuple[Properties, tuple[str, ...], bool], list[LibrdkafkaSender]] = {}
"""Senders between micro-batches, each with nothing unsent."""


def sender_for(
    properties: Properties, topics: tuple[str, ...], *, acknowledged: bool
) -> LibrdkafkaSender:
    """A sender to these topics, which are checked to exist before the first message.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        OptionError: The client does not take a property.
    """
    idle = _idle.setdefault((properties, topics, acknowledged), [])
    if idle:
        return idle.pop()
    cluster = LibrdkafkaCluster(properties, "writer")
    cluster.topics(Topics(names=topics))
    return LibrdkafkaSender(
        properties, topics, cluster.max_message_bytes(topics), acknowledged=acknowledged
    )


class LibrdkafkaSender:
    """One producer; used by one task at a time.

    A batch is done when `flush` returns: librdkafka reports each message exactly once, here only when
    it failed, and its queue is empty only after the last report.
    """

    def __init__(
        self,
        properties: Properties,
        topics: tuple[str, ...],
        max_message_bytes: int | None,
        *,
        acknowledged: bool,
    ) -> None:
        self._key = (properties, topics, acknowledged)
        self._first_failure: DeliveryError | None = None
        self._failed = 0
        self._trouble = Trouble()
        config = client_config(
            properties,
            "writer",
            {
                **_CONFIG,
                "enable.idempotence": acknowledged,
                "acks": "all" if acknowledged else 0,
                # librdkafka never splits a batch that is too large for the topic, so one must not
                # become so: else innocent messages would be refused with a large one.
                "batch.size": min(_BATCH_BYTES, max_message_bytes or _BATCH_BYTES),
                "on_delivery": self._delivered,
                "error_cb": self._trouble,
            },
        )
        if max_message_bytes is not None and "message.max.bytes" not in config:
            config["message.max.bytes"] = max(max_message_bytes, 1_000_000)
        try:
            self._producer = ck.Producer(config)
        except ck.KafkaException as error:
            raise invalid_property(error) from None

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while its queue is full."""
        produce = self._producer.produce
        topics = repeat(messages.topics) if isinstance(messages.topics, str) else messages.topics
        for topic, key, value, extras in zip(
            topics, messages.keys, messages.values, _extras(messages), strict=False
        ):
            try:
                produce(topic, value, key, **extras)
            except BufferError:
                self._wait_and_produce(topic, key, value, extras)
            except ck.KafkaException as error:
                raise self._refused(topic, key, error.args[0]) from None
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while self._producer.flush(1.0) and self._first_failure is None:
            self._raise_hopeless()
        self._raise_failure()

    def close(self) -> None:
        """Gives the sender back for the next task, or throws it away when anything is unsent."""
        if len(self._producer) or self._first_failure is not None:
            self._producer.purge()
            self._producer.flush(1.0)
        else:
            _idle[self._key].append(self)

    def _wait_and_produce(
        self, topic: str, key: bytes, value: bytes | None, extras: dict[str, Any]
    ) -> None:
        while True:
            self._producer.poll(_QUEUE_WAIT_S)
            self._raise_failure()
            self._raise_hopeless()
            try:
                self._producer.produce(topic, value, key, **extras)
            except BufferError:
                continue
            except ck.KafkaException as error:
                raise self._refused(topic, key, error.args[0]) from None
            return

    def _delivered(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is None:
            return
        self._failed += 1
        if self._first_failure is None:
            self._first_failure = DeliveryError(
                message.topic(), message.partition(), message.key(), _reason(error, self._trouble)
            )

    def _refused(self, topic: str, key: bytes, error: ck.KafkaError) -> DeliveryError:
        self._first_failure = DeliveryError(topic, None, key, _reason(error, self._trouble))
        return self._first_failure

    def _raise_failure(self) -> None:
        if self._first_failure is not None:
            first = self._first_failure
            raise DeliveryError(first.topic, first.partition, first.key, first.reason, self._failed)

    def _raise_hopeless(self) -> None:
        error = self._trouble.hopeless
        if error is not None:
            raise BrokerError(f"Nothing can be written: {error.str()}.")


def _extras(messages: Messages) -> Iterable[dict[str, Any]]:
    """What each message has beside key and value, as arguments of ``produce``."""
    if messages.timestamps is None and messages.headers is None:
        return repeat({})
    timestamps = repeat(0) if messages.timestamps is None else messages.timestamps
    headers = repeat(None) if messages.headers is None else messages.headers
    return (
        {"timestamp": timestamp, "headers": list(each or ())}
        for timestamp, each in zip(timestamps, headers, strict=False)
    )


def _reason(error: ck.KafkaError, trouble: Trouble) -> str:
    text = error.str()
    if error.code() == ck.KafkaError.MSG_SIZE_TOO_LARGE:
        return f"{text} (see the topic's 'max.message.bytes' and 'properties.max.request.size')"
    return f"{text}{trouble.describe()}"
