"""Sends messages with librdkafka: murmur2, idempotent, every delivery confirmed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.librdkafka.producer import POOL, OpenProducer
from pyspark_upsert_kafka.kafka.messages import Messages
from pyspark_upsert_kafka.kafka.pool import Lease
from pyspark_upsert_kafka.kafka.undelivered import raise_if_fatal


class LibrdkafkaSender:
    """One producer; used by one task at a time.

    A batch is done when `flush` returns: librdkafka reports each message exactly once, here only when
    it failed, and its queue is empty only after the last report.

    Args:
        lease: The producer, with nothing unsent.
    """

    def __init__(self, lease: Lease[OpenProducer]) -> None:
        self._lease = lease
        self._producer, self._reports = lease.client.producer, lease.client.reports
        self._handed_over = self._completed = 0
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
            raise_if_fatal(self._reports.errors)
        self._reports.undelivered.raise_first()

    def close(self) -> None:
        """Gives the producer back for the next task, or ends it when anything is unsent."""
        if len(self._producer) or self._reports.undelivered:
            POOL.discard(self._lease)
        else:
            POOL.give_back(self._lease)
        del self._producer, self._lease  # librdkafka's threads end with the last reference

    def _note_progress(self) -> None:
        """Whatever no longer waits got an answer, be it an error: the broker can be reached."""
        completed = self._handed_over - len(self._producer)
        if completed > self._completed:
            self._completed = completed
            self._reports.errors.note_progress()

    def _produce_when_there_is_room(self, message: tuple[Any, ...]) -> None:
        while True:
            was_empty = not len(self._producer)
            try:
                self._producer.produce(*message)
            except BufferError:
                if was_empty:
                    self._reports.raise_too_large(message)
                raise_if_fatal(self._reports.errors)
            except ck.KafkaException as error:
                self._reports.raise_refused(message, error)
            else:
                self._reports.errors.note_progress()
                return
            self._producer.poll(timeouts.DELIVERY_CHECK_S)
            self._reports.undelivered.raise_first()


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
