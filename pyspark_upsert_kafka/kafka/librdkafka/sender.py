"""Sends messages with librdkafka: murmur2, idempotent, every delivery confirmed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import confluent_kafka as ck

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.connections.pool import Lease
from pyspark_upsert_kafka.kafka.librdkafka.batch_producer import BatchProducer, MessageBatch
from pyspark_upsert_kafka.kafka.librdkafka.errors import classify
from pyspark_upsert_kafka.kafka.librdkafka.producer import POOL, OpenProducer
from pyspark_upsert_kafka.kafka.sending.messages import Messages, list_of
from pyspark_upsert_kafka.kafka.sending.undelivered import raise_if_fatal

T = TypeVar("T")

_WAIT_S = 0.1
"""How long a call of the client waits (seconds). From 0.2 s on confluent-kafka waits in several steps, and goes on with the
next step though an exception was raised in a callback, which may be lost then."""

_ROOM_S = 0.01
"""How long a full queue is waited for before it is tried again; the least that fills it well."""

_OF_KEY = -1
"""In the place of a partition: the key decides on it."""


def sender_of(lease: Lease[OpenProducer]) -> LibrdkafkaSender:
    """The sender that goes with a producer."""
    in_batches = isinstance(lease.client.producer, BatchProducer)
    return BatchSender(lease) if in_batches else LibrdkafkaSender(lease)


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
        """Hands over message by message."""
        produce = self._producer.produce
        for message in _arguments(messages):
            try:
                produce(*message)
            except BufferError:
                self._produce_when_there_is_room(message)
            except ck.KafkaException as error:
                self._raise_refused(message, error)

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
            except ck.KafkaException as error:
                self._raise_refused(message, error)
            else:
                self._reports.errors.note_progress()
                return

    def _wait_for_room(self, timeout_s: float) -> None:
        raise_if_fatal(self._reports.errors)
        self._wait(self._producer.poll, timeout_s)
        self._reports.raise_first()

    def _raise_refused(self, message: tuple[Any, ...], exception: ck.KafkaException) -> None:
        topic, _, key, *_ = message
        self._reports.raise_refused(topic, key, exception.args[0])


class BatchSender(LibrdkafkaSender):
    """The same with a `BatchProducer`, for messages without timestamps and headers, which go where their keys belong."""

    def _hand_over(self, messages: Messages) -> None:
        if (messages.timestamps, messages.headers, messages.partition) != (None, None, None):
            raise ValueError("The sender was opened for messages of keys and values alone.")
        for topic, of_topic in messages.by_topic():
            self._hand_over_batch(MessageBatch(topic, of_topic.keys, of_topic.values))

    def _hand_over_batch(self, batch: MessageBatch) -> None:
        begin = 0
        while begin < len(batch):
            was_empty, before = not len(self._producer), begin
            begin, error = self._producer.produce_batch(batch, before)
            if error is None:
                return
            if error.code() != ck.KafkaError._QUEUE_FULL:  # noqa: SLF001 - confluent-kafka's spelling
                self._reports.raise_refused(batch.topic, batch.key(begin), error)
            if begin > before:
                self._reports.errors.note_progress()
            elif was_empty:
                self._reports.raise_too_large(batch.topic, batch.key(begin), batch.size(begin))
            self._wait_for_room(_ROOM_S)


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
