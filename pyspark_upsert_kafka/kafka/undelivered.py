"""The messages of a task that were not delivered, whichever client sends them."""

from __future__ import annotations

from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.kafka.connections.failures import SECURITY_HINT, ClientErrors

_ONE_SPOILS_THE_BATCH = frozenset({2, 10, 18, 32, 87})
"""Kafka's error codes CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
INVALID_RECORD: for one message a broker refuses all that came in a batch with it."""

TOO_LARGE_HINT = "(see the topic's 'max.message.bytes' and 'properties.max.request.size')"
"""Where to look when a message is too large: to append to a sentence."""


class Undelivered:
    """Counts the messages that were not delivered; the first of them is the error that the task has.

    A message that failed only because another one of its batch was refused does not count as the first: the other one does.
    """

    def __init__(self) -> None:
        self._first: DeliveryError | None = None
        self._first_refused_with_batch = False
        self._first_cause: tuple[str, int | None, int | None] | None = None
        self._count = self._with_first_cause = 0

    def __bool__(self) -> bool:
        return self._first is not None

    def add(
        self, error: DeliveryError, code: int | None, *, refused_with_batch: bool = False
    ) -> None:
        """Takes note of a message that was not delivered.

        Args:
            error: What went wrong with it.
            code: The error's code in Kafka's protocol; None = it has none.
            refused_with_batch: Whether nothing is wrong with it, but with another message of its batch.
        """
        cause = (error.topic, error.partition, code)
        if self._first is None or (self._first_refused_with_batch and not refused_with_batch):
            self._first, self._first_cause = error, cause
            self._first_refused_with_batch = refused_with_batch
        self._count += 1
        self._with_first_cause += cause == self._first_cause

    def raise_first(self) -> None:
        """Does nothing as long as every message was delivered.

        Raises:
            DeliveryError: The first message that was not, and how many were not.
        """
        first = self._first
        if first is None:
            return
        reason = first.reason
        if self._first_cause is not None and self._first_cause[2] in _ONE_SPOILS_THE_BATCH:
            reason = in_a_batch(reason, self._with_first_cause)
        # The client's own error, if one is being handled, says nothing more.
        raise type(first)(first.topic, first.partition, first.key, reason, self._count) from None


def in_a_batch(reason: str, count: int) -> str:
    """The reason why a message was refused, together with others of its batch.

    >>> in_a_batch("Invalid timestamp", 1)
    'Invalid timestamp'
    >>> in_a_batch("Invalid timestamp", 3)
    'Invalid timestamp, for at least one of the 3 messages of the batch that begins with this key'
    """
    if count == 1:
        return reason
    return (
        f"{reason}, for at least one of the {count} messages of the batch that begins with this key"
    )


def raise_if_fatal(errors: ClientErrors) -> None:
    """Does nothing as long as brokers may confirm messages yet.

    Raises:
        BrokerError: The client is refused, for so long that it will stay so, or has no token to log in with.
    """
    if (lost := errors.lost_login) is not None:
        raise type(lost)(f"Nothing can be written. {lost}") from None
    fatal = errors.fatal_error
    if fatal is not None:
        raise BrokerError(f"Nothing can be written: {fatal}.{SECURITY_HINT}") from None


def larger_than_queue(size: int) -> str:
    """Why a message is refused that would not fit even into an empty queue."""
    return (
        f"a message of {size} bytes does not fit into the client's queue: raise "
        "'properties.buffer.memory' (bytes) or 'properties.queue.buffering.max.kbytes'"
    )
