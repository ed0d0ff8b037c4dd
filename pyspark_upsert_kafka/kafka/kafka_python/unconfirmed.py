"""The messages that were handed to kafka-python's producer and are not yet confirmed."""

from __future__ import annotations

from collections import deque
from typing import Any


class UnconfirmedMessage:
    """A message that was handed to the producer."""

    __slots__ = ("future", "key", "partition", "size", "topic")

    def __init__(
        self, future: Any, topic: str, partition: int | None, key: bytes | None, size: int
    ) -> None:
        self.future, self.topic, self.partition = future, topic, partition
        self.key, self.size = key, size


class UnconfirmedMessages:
    """The messages in the order in which they were handed over, bounded in number and in bytes.

    Args:
        max_messages: With so many it is full.
        max_bytes: With so many bytes of keys and values it is full.
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
