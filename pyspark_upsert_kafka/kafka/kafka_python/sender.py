"""Sends messages with kafka-python: murmur2, every delivery confirmed."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.delivery.murmur2 import partition_of
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError, RetriableDeliveryError
from pyspark_upsert_kafka.kafka.connections import timeouts
from pyspark_upsert_kafka.kafka.connections.client_errors import ClientErrors
from pyspark_upsert_kafka.kafka.connections.pool import Lease
from pyspark_upsert_kafka.kafka.kafka_python.errors import describe_error, errors_of
from pyspark_upsert_kafka.kafka.kafka_python.producer import POOL, OpenProducer, end_thread
from pyspark_upsert_kafka.kafka.sending.messages import Headers, Messages, Row
from pyspark_upsert_kafka.kafka.sending.undelivered import (
    TOO_LARGE_HINT,
    Undelivered,
    larger_than_queue,
    raise_if_fatal,
)


class KafkaPythonSender:
    """One producer; used by one task at a time.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[OpenProducer]) -> None:
        self._lease = lease
        self._producer, self._max_bytes = lease.client.producer, lease.client.max_bytes
        self._errors = errors_of(self._producer)
        self._errors.clear()
        self._unconfirmed = UnconfirmedMessages(lease.client.max_messages, self._max_bytes)
        self._undelivered = Undelivered()
        self._is_cancelled = False

    def send(self, messages: Messages) -> None:
        """Hands messages to the client, waiting while too many are unconfirmed."""
        for message in messages.rows():
            while self._unconfirmed.is_full:
                self._wait_for_oldest()
            self._hand_over(message, messages.partition)
        while self._unconfirmed and self._unconfirmed.oldest.future.is_done:
            self._wait_for_oldest()
        self._undelivered.raise_first()

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        while self._unconfirmed:
            self._wait_for_oldest()
        self._undelivered.raise_first()

    def cancel(self) -> None:
        """Ends, from another thread, what waits in `send` or `flush`; after it there is only `close`.

        The client looks up a topic's partitions without a way to end that, for `max_block_ms` at most.
        """
        self._is_cancelled = True
        end_thread(self._producer)

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it and drops what is unsent."""
        if self._unconfirmed or self._undelivered or self._is_cancelled:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)

    def _hand_over(self, message: Row, partition: int | None) -> None:
        if self._is_cancelled:
            raise BrokerError("Nothing more is written: the task has ended.")
        topic, key, value, timestamp, headers = message
        size = len(key or b"") + len(value or b"")
        try:
            if partition is None:
                partition = self._partition(topic, key)
            self._check_sendable(key, value, headers)
            future = self._producer.send(
                topic, value, key, list(headers or ()), partition, timestamp or None
            )
        except (kafka_errors.KafkaError, _UnsendableError) as error:
            self._add_undelivered(topic, partition, key, error)
            self._undelivered.raise_first()
        self._unconfirmed.add(UnconfirmedMessage(future, topic, partition, key, size))

    def _partition(self, topic: str, key: bytes | None) -> int | None:
        """Where the Java client puts the key; None = anywhere."""
        if key is None:
            return None
        return partition_of(key, len(self._producer.partitions_for(topic)))

    def _check_sendable(
        self, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> None:
        if key is None and value is None:
            raise _UnsendableError(
                "kafka-python sends no message that has neither key nor value; set 'kafka.client' to "
                "'librdkafka'"
            )
        for name, content in headers or ():
            if content is None:
                raise _UnsendableError(
                    f"kafka-python sends no header without a value, and {name!r} has none; set "
                    "'kafka.client' to 'librdkafka'"
                )
        size = len(key or b"") + len(value or b"")
        if size > self._max_bytes:
            raise _UnsendableError(larger_than_queue(size))

    def _wait_for_oldest(self) -> None:
        """Waits for the report of the oldest message; after the first failure nothing is waited for."""
        oldest, done = self._unconfirmed.oldest, 0
        while not oldest.future.is_done:
            self._undelivered.raise_first()
            self._raise_if_late(oldest)
            try:
                oldest.future.get(timeouts.DELIVERY_CHECK_S)
            except kafka_errors.KafkaError:
                before, done = done, self._unconfirmed.count_done()
                if done > before:
                    self._errors.note_progress()
                raise_if_fatal(self._errors)
        self._unconfirmed.remove_oldest()
        if oldest.future.exception is None:
            self._errors.note_progress()
        else:
            self._add_undelivered(
                oldest.topic, oldest.partition, oldest.key, oldest.future.exception
            )

    def _raise_if_late(self, message: UnconfirmedMessage) -> None:
        """Raises a DeliveryError for a message that has been unconfirmed for too long."""
        limit_s = self._lease.client.delivery_s
        if time.monotonic() - message.handed_over_at <= limit_s:
            return
        error = kafka_errors.KafkaTimeoutError(f"{limit_s:g} seconds have passed")
        self._add_undelivered(message.topic, message.partition, message.key, error)
        self._undelivered.raise_first()

    def _add_undelivered(
        self, topic: str, partition: int | None, key: bytes | None, error: Exception
    ) -> None:
        reason = _reason(error, self._errors)
        # kafka-python 3 says of each message what was wrong with it, and of its neighbours so.
        refused_with_batch = type(error) is kafka_errors.KafkaError and "part of a batch" in str(
            error
        )
        code = getattr(error, "errno", None)
        late = isinstance(error, kafka_errors.KafkaTimeoutError)
        failed = (RetriableDeliveryError if late else DeliveryError)(topic, partition, key, reason)
        self._undelivered.add(failed, code, refused_with_batch=refused_with_batch)


class _UnsendableError(Exception):
    """The client cannot send such a message."""


def _reason(error: Exception, errors: ClientErrors) -> str:
    if isinstance(error, _UnsendableError):
        return str(error)
    if isinstance(error, kafka_errors.MessageSizeTooLargeError):
        return f"the message is too large {TOO_LARGE_HINT}"
    text, seen = errors.shown(describe_error(error)), errors.describe()
    if isinstance(error, kafka_errors.KafkaTimeoutError):
        text = f"no broker confirmed it in time ({text})"
    return f"{text}.{seen}" if seen else text


class UnconfirmedMessage:
    """A message that was handed to the producer."""

    __slots__ = ("future", "handed_over_at", "key", "partition", "size", "topic")

    def __init__(
        self, future: Any, topic: str, partition: int | None, key: bytes | None, size: int
    ) -> None:
        self.handed_over_at = time.monotonic()
        self.future, self.topic, self.partition = future, topic, partition
        self.key, self.size = key, size


class UnconfirmedMessages:
    """The messages in the order in which they were handed over, bounded in number and in bytes.

    Args:
        max_messages: The number of messages with which it is full.
        max_bytes: The bytes of keys and values with which it is full.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._messages: deque[UnconfirmedMessage] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def is_full(self) -> bool:
        """Whether one must be confirmed before the next is handed over."""
        return len(self._messages) >= self._max_messages or self._bytes >= self._max_bytes

    @property
    def oldest(self) -> UnconfirmedMessage:
        """The one handed over first; there must be one."""
        return self._messages[0]

    def add(self, message: UnconfirmedMessage) -> None:
        """Takes a message that was handed over."""
        self._messages.append(message)
        self._bytes += message.size

    def remove_oldest(self) -> None:
        """Lets go of the one handed over first."""
        self._bytes -= self._messages.popleft().size

    def count_done(self) -> int:
        """How many have got an answer."""
        return sum(each.future.is_done for each in self._messages)
