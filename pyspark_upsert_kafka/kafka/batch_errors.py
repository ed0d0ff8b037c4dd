"""What is known when a broker refuses a whole batch of messages for one of them."""

from __future__ import annotations

ONE_SPOILS_THE_BATCH = frozenset({2, 10, 18, 32, 87})
"""Kafka's error codes CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
INVALID_RECORD: for one message a broker refuses all that came in a batch with it."""


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
