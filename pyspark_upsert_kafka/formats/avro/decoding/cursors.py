"""A cursor into each message of a batch; every read moves all cursors at once.

A message that a read finds wrong is deferred to the row path: it is marked, its cursor goes to its end, and
from there on it reads as zeros, which are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspark_upsert_kafka.formats.binary.message_buffer import MessageBuffer
from pyspark_upsert_kafka.formats.binary.numbers import Numbers, unzigzag
from pyspark_upsert_kafka.formats.decoded_size import Budget


@dataclass(slots=True)
class Cursors:
    """Where some messages are read on.

    Args:
        buffer: All messages' bytes.
        at: The next byte of each message, in ascending order.
        end: The byte behind each message.
        rows: Which messages these are.
        deferred: The mask, over all messages, of those deferred to the row path.
        budget: What all messages may be decoded to.
    """

    buffer: MessageBuffer
    at: Numbers
    end: Numbers
    rows: Numbers
    deferred: Numbers
    budget: Budget

    def select(self, chosen: Numbers) -> Cursors:
        """A copy for the messages at these places."""
        some = self.at[chosen], self.end[chosen], self.rows[chosen]
        return Cursors(self.buffer, *some, self.deferred, self.budget)

    def defer(self, wrong: Numbers) -> None:
        """Defers the messages under the mask to the row path."""
        if wrong.any():
            self.deferred[self.rows[wrong]] = True
            self.at[wrong] = self.end[wrong]

    def move(self, sizes: Numbers | int) -> None:
        """Moves on by so many bytes; a message that has fewer is deferred."""
        self.at += sizes
        self.defer(self.at > self.end)

    def bytes(self) -> Numbers:
        """The next byte."""
        seen = self.buffer.data[self.at]
        self.move(1)
        return seen

    def next_words(self, size: int) -> Numbers:
        """The next eight bytes as a number; it is moved on by ``size``."""
        seen = self.buffer.words[self.at]
        self.move(size)
        return seen

    def longs(self) -> Numbers:
        """Numbers of variable length in zigzag code."""
        codes, sizes = self.buffer.varints(self.at)
        self.at += sizes
        beyond = self.at > self.end
        if beyond.any():
            self.defer(beyond)
            codes[beyond] = 0
        return unzigzag(codes)


def cursors_of(messages: Sequence[bytes], skip: int) -> Cursors:
    """All messages, behind their first ``skip`` bytes."""
    buffer, count = MessageBuffer.of(messages), len(messages)
    begin, end = buffer.bounds[:-1], buffer.bounds[1:]
    nothing = np.zeros(count, bool)
    seen = Cursors(buffer, begin.copy(), end, np.arange(count), nothing, Budget(count))
    seen.defer(begin == end)
    seen.move(skip)
    return seen
