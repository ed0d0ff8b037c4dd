"""Where reading stands: in one message, for the row path, and in each message of a batch, for the vectorised path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyspark_upsert_kafka.formats.avro.avro_types import unreadable
from pyspark_upsert_kafka.formats.binary_values import Numbers, unzigzag
from pyspark_upsert_kafka.formats.decoded_size import Budget, check_row

if TYPE_CHECKING:
    from pyspark_upsert_kafka.formats.binary_values import MessageBuffer

_TOO_LONG = "a number is longer than 64 bits"


class Cursor:
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
        """Notes that its row takes more bytes. Raises UnreadableError or TooManyMessagesError."""
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


@dataclass(slots=True)
class Cursors:
    """A cursor into each message of a batch; every read moves all of them at once.

    A message that a read finds wrong falls back to the row path: it is marked, its cursor goes to its end, and
    from there on it reads as zeros, which are never used.

    Args:
        buffer: All messages' bytes.
        at: The next byte of each message, in ascending order.
        end: The byte behind each message.
        rows: Which messages these are.
        fallback: The mask, over all messages, of those that fall back to the row path.
        budget: What all messages may be decoded to.
    """

    buffer: MessageBuffer
    at: Numbers
    end: Numbers
    rows: Numbers
    fallback: Numbers
    budget: Budget

    @staticmethod
    def of(messages: Sequence[bytes], prefix_length: int) -> Cursors:
        """A cursor into each message, behind the prefix."""
        from pyspark_upsert_kafka.formats.binary_values import MessageBuffer

        buffer, count = MessageBuffer.of(messages), len(messages)
        begin, end = buffer.bounds[:-1], buffer.bounds[1:]
        nothing = np.zeros(count, bool)
        seen = Cursors(buffer, begin.copy(), end, np.arange(count), nothing, Budget(count))
        seen.leave(begin == end)
        seen.move(prefix_length)
        return seen

    def select(self, chosen: Numbers) -> Cursors:
        """A copy for the messages at these places."""
        some = self.at[chosen], self.end[chosen], self.rows[chosen]
        return Cursors(self.buffer, *some, self.fallback, self.budget)

    def leave(self, wrong: Numbers) -> None:
        """Leaves the messages under the mask to the row path."""
        if wrong.any():
            self.fallback[self.rows[wrong]] = True
            self.at[wrong] = self.end[wrong]

    def move(self, sizes: Numbers | int) -> None:
        """Moves on by a number of bytes; a message that has fewer is left to the row path."""
        self.at += sizes
        self.leave(self.at > self.end)

    def bytes(self) -> Numbers:
        """The next byte."""
        seen = self.buffer.data[self.at]
        self.move(1)
        return seen

    def next_words(self, size: int) -> Numbers:
        """The next eight bytes as a number; the cursors move on by ``size`` bytes."""
        seen = self.buffer.words[self.at]
        self.move(size)
        return seen

    def longs(self) -> Numbers:
        """Numbers of variable length in zigzag code."""
        codes, sizes = self.buffer.varints(self.at)
        self.at += sizes
        beyond = self.at > self.end
        if beyond.any():
            self.leave(beyond)
            codes[beyond] = 0
        return unzigzag(codes)
