"""One message read byte by byte, each read being checked."""

from __future__ import annotations

from pyspark_upsert_kafka.formats.avro.errors import unreadable
from pyspark_upsert_kafka.formats.decoded_size import Budget, check_row

_TOO_LONG = "a number is longer than 64 bits"


class Datum:
    """The bytes of a message, and how far they have been read."""

    __slots__ = ("_added", "_budget", "at", "data", "depth", "empty")

    def __init__(self, data: bytes, at: int, budget: Budget) -> None:
        self.data, self.at = data, at
        self.depth = self.empty = 0
        self._budget, self._added = budget, 0.0

    @property
    def remaining(self) -> int:
        """How many bytes have not been read yet."""
        return len(self.data) - self.at

    def add(self, size: float) -> None:
        """Notes that its row takes so many bytes more. Raises UnreadableError or TooManyMessagesError."""
        self._added += size
        self._budget.take(size)
        check_row(self._added)

    def long(self, path: str) -> int:
        """A number of variable length in zigzag code."""
        value = shift = 0
        for byte in self.data[self.at : self.at + 10]:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        else:
            ended = self.remaining < 10
            raise unreadable(path, "the message ends within a number" if ended else _TOO_LONG)
        if value >> 64:
            raise unreadable(path, _TOO_LONG)
        self.at += shift // 7
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int, path: str, what: str) -> bytes:
        """The next bytes."""
        if not 0 <= size <= self.remaining:
            seen = (
                f"ends after {self.remaining} of {size} bytes" if size > 0 else f"has {size} bytes"
            )
            raise unreadable(path, f"the {what} {seen}")
        self.at += size
        return self.data[self.at - size : self.at]
