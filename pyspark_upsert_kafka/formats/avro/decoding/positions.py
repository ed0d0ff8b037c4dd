"""Many messages read in step: each has a position, and every read moves all of them at once.

A message that a read finds wrong is left: it is marked, its position goes to its end, and from there
on it reads as zeros. What comes of it is never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyspark_upsert_kafka.formats.bytewise.numbers import Numbers, unzigzag
from pyspark_upsert_kafka.formats.bytewise.octets import Octets


@dataclass(slots=True)
class Positions:
    """Where some messages are read on.

    Args:
        octets: All messages' bytes.
        at: The next byte of each message, in ascending order.
        end: The byte behind each message.
        rows: Which messages these are.
        left: Of all messages, which are left.
    """

    octets: Octets
    at: Numbers
    end: Numbers
    rows: Numbers
    left: Numbers

    def some(self, chosen: Numbers) -> Positions:
        """A copy for the messages at these places."""
        return Positions(
            self.octets, self.at[chosen], self.end[chosen], self.rows[chosen], self.left
        )

    def leave(self, wrong: Numbers) -> None:
        """Leaves the messages under the mask."""
        if wrong.any():
            self.left[self.rows[wrong]] = True
            self.at[wrong] = self.end[wrong]

    def move(self, sizes: Numbers | int) -> None:
        """Moves on by so many bytes; a message that has fewer is left."""
        self.at += sizes
        self.leave(self.at > self.end)

    def bytes(self) -> Numbers:
        """The next byte."""
        seen = self.octets.data[self.at]
        self.move(1)
        return seen

    def next_words(self, size: int) -> Numbers:
        """The next eight bytes as a number; it is moved on by ``size``."""
        seen = self.octets.words[self.at]
        self.move(size)
        return seen

    def longs(self) -> Numbers:
        """Numbers of variable length in zigzag code."""
        codes, sizes = self.octets.varints(self.at)
        self.at += sizes
        beyond = self.at > self.end
        if beyond.any():
            self.leave(beyond)
            codes[beyond] = 0
        return unzigzag(codes)


def positions_of(messages: Sequence[bytes], skip: int) -> Positions:
    """All messages, behind their first ``skip`` bytes."""
    octets, count = Octets.of(messages), len(messages)
    begin, end = octets.bounds[:-1], octets.bounds[1:]
    seen = Positions(octets, begin.copy(), end, np.arange(count), np.zeros(count, bool))
    seen.leave(begin == end)
    seen.move(skip)
    return seen
