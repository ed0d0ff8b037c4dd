"""Many messages read in step: each has a position, and every read moves all of them at once.

A message that a read finds wrong is left: it is marked, its position goes to its end, and from there
on it reads as zeros. What comes of it is never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[Any]

_MARGIN = bytes(16)
"""Before and behind the messages, so that sixteen bytes can be read anywhere."""

_U64 = np.uint64
_ONE = _U64(1)
_STOP_BITS = _U64(0x8080808080808080)
_LENGTHS = _U64(0x0102030405060708)
_SEVEN_BITS = _U64(0x7F7F7F7F7F7F7F7F)
# Pairs of groups of 7, 14 and 28 bits: where the lower and the upper ones stand, and the gap.
_PAIRS = [
    (_U64(0x007F007F007F007F), _U64(0x7F007F007F007F00), _U64(1)),
    (_U64(0x00003FFF00003FFF), _U64(0x3FFF00003FFF0000), _U64(2)),
    (_U64(0x000000000FFFFFFF), _U64(0x0FFFFFFF00000000), _U64(4)),
]


@dataclass(slots=True)
class Positions:
    """Where some messages are read on.

    Args:
        data: All messages' bytes, one after the other, with a margin on both sides.
        words: The eight bytes from each position of ``data`` on, as little-endian numbers.
        at: The next byte of each message, in ascending order.
        end: The byte behind each message.
        rows: Which messages these are.
        left: Of all messages, which are left.
    """

    data: Numbers
    words: Numbers
    at: Numbers
    end: Numbers
    rows: Numbers
    left: Numbers

    def some(self, chosen: Numbers) -> Positions:
        """A copy for the messages at these places."""
        return Positions(
            self.data, self.words, self.at[chosen], self.end[chosen], self.rows[chosen], self.left
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
        seen = self.data[self.at]
        self.move(1)
        return seen

    def next_words(self, size: int) -> Numbers:
        """The next eight bytes as a number; it is moved on by ``size``."""
        seen = self.words[self.at]
        self.move(size)
        return seen

    def longs(self) -> Numbers:
        """Numbers of variable length in zigzag code."""
        code = self.data[self.at].astype(_U64)
        if code.size and code.max() < 0x80:
            sizes: Numbers | int = 1
        else:
            code, sizes = self._long_codes()
        self.at += sizes
        beyond = self.at > self.end
        if beyond.any():
            self.leave(beyond)
            code[beyond] = 0
        return (code >> _ONE).view(np.int64) ^ -(code & _ONE).view(np.int64)

    def _long_codes(self) -> tuple[Numbers, Numbers]:
        """Numbers of variable length, and how many bytes each takes.

        The lowest stop bit ends a number; its groups of seven bits are then moved together.
        """
        words = self.words[self.at]
        stops = ~words & _STOP_BITS
        lowest = stops & (~stops + _ONE)
        code = words & (lowest ^ (lowest - _ONE)) & _SEVEN_BITS
        for low, high, gap in _PAIRS:
            code = (code & low) | ((code & high) >> gap)
        sizes = (((lowest >> _U64(7)) * _LENGTHS) >> _U64(56)).view(np.int64)
        longer = np.flatnonzero(sizes == 0)
        if longer.size:
            self._add_last_bytes(code, sizes, longer)
        return code, sizes

    def _add_last_bytes(self, code: Numbers, sizes: Numbers, longer: Numbers) -> None:
        """The ninth and tenth bytes; ten hold more than 64 bits when the last is no 0 or 1."""
        ninth, tenth = (self.data[self.at[longer] + byte].astype(_U64) for byte in (8, 9))
        ended = ninth < 0x80
        code[longer] |= ((ninth & _U64(0x7F)) << _U64(56)) | np.where(
            ended, _U64(0), tenth << _U64(63)
        )
        sizes[longer] = np.where(ended, 9, np.where(tenth > 1, _TOO_FAR, 10))


_TOO_FAR = 1 << 40


def positions_of(messages: Sequence[bytes], skip: int) -> Positions:
    """All messages, behind their first ``skip`` bytes."""
    joined = pa.array([_MARGIN, *messages, _MARGIN], pa.large_binary())
    _, bounds, data = (np.frombuffer(buffer or b"", np.uint8) for buffer in joined.buffers())
    words = np.ndarray((data.size - 7,), "<u8", data, 0, (1,))
    count = len(messages)
    begin, end = bounds.view(np.int64)[1 : count + 1], bounds.view(np.int64)[2 : count + 2]
    seen = Positions(data, words, begin.copy(), end, np.arange(count), np.zeros(count, bool))
    seen.leave(begin == end)
    seen.move(skip)
    return seen
