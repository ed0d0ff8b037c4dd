"""What a producer of librdkafka reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.errors import DeliveryError, RetriableDeliveryError
from pyspark_upsert_kafka.kafka.connections.failures import explained
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.sending.undelivered import (
    TOO_LARGE_HINT,
    Undelivered,
    larger_than_queue,
)


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
