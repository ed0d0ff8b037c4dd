"""What binary formats share to read: the bytes of many messages, read at many places at once, and the numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core import bytes_column

if TYPE_CHECKING:
    import numpy.typing as npt

Numbers: TypeAlias = "npt.NDArray[Any]"
"""Many numbers, most often whole ones."""

MOST = 1 << 30
"""The number of bytes that can be read together: Arrow counts those of a binary column in 31 bits."""

TOO_LONG = 1 << 40
"""Length of a varint that does not end or has more than 64 bits: past the end of any message."""

_MARGIN = 16
"""Bytes before and behind the messages, so that sixteen bytes can be read anywhere."""

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


@dataclass(frozen=True)
class MessageBuffer:
    """Some messages' bytes.

    Args:
        data: The bytes of all messages, one after the other, with a margin on both sides.
        words: The eight bytes from each place of ``data`` on, as little-endian numbers.
        bounds: The place where each message begins, and the one where the last ends.
    """

    data: Numbers
    words: Numbers
    bounds: Numbers

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> MessageBuffer:
        """The bytes of some messages."""
        column = bytes_column.column_of(messages)
        offsets = bytes_column.offsets_of(column)
        begin, size = offsets[0], offsets[-1] - offsets[0]
        data = np.empty(size + 2 * _MARGIN, np.uint8)
        data[:_MARGIN] = data[_MARGIN + size :] = 0
        if size:
            source = np.frombuffer(column.buffers()[2], np.uint8)
            data[_MARGIN : _MARGIN + size] = source[begin : begin + size]
        words = np.ndarray((data.size - 7,), "<u8", data, 0, (1,))
        return cls(data, words, offsets + (_MARGIN - begin))

    def varints(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """The unsigned numbers of variable length at these places, and how many bytes each takes."""
        values = self.data[at].astype(_U64)
        if values.max(initial=0) < 0x80:
            # One 1 for all: fresh memory for many costs a tenth of what reading them does.
            return values, np.broadcast_to(np.int64(1), at.shape)
        return self._long_varints(at)

    def _long_varints(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """The lowest stop bit ends a number; its groups of seven bits are then moved together."""
        words = self.words[at]
        stops = ~words & _STOP_BITS
        lowest = stops & (~stops + _ONE)
        values = words & (lowest ^ (lowest - _ONE)) & _SEVEN_BITS
        for low, high, gap in _PAIRS:
            values = (values & low) | ((values & high) >> gap)
        sizes = (((lowest >> _U64(7)) * _LENGTHS) >> _U64(56)).view(np.int64)
        longer = np.flatnonzero(sizes == 0)
        if longer.size:
            ninth, tenth = (self.data[at[longer] + byte].astype(_U64) for byte in (8, 9))
            ended = ninth < 0x80
            values[longer] |= (ninth & _U64(0x7F)) << _U64(56)
            values[longer] |= np.where(ended, _U64(0), tenth << _U64(63))
            # Ten bytes hold more than 64 bits when the last is no 0 or 1.
            sizes[longer] = np.where(ended, 9, np.where(tenth > 1, TOO_LONG, 10))
        return values, sizes

    def slices(self, start: Numbers, end: Numbers) -> pa.BinaryArray:
        """The bytes between these places; none may begin before the end of the previous one.

        Arrow gathers them: with the gaps between them they are an array, of which every second element is taken.
        """
        count = len(start)
        if not count:
            return pa.array([], pa.binary())
        offsets = np.empty(2 * count, np.int32)
        offsets[0::2], offsets[1::2] = start, end
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        with_gaps = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        return with_gaps.take(pa.array(np.arange(0, 2 * count, 2)))

    def texts(self, start: Numbers, end: Numbers) -> tuple[pa.StringArray, Numbers]:
        """The same bytes as texts, and which of them are not UTF-8; those become empty."""
        data = self.slices(start, end)
        try:
            return data.cast(pa.string()), np.zeros(len(data), np.bool_)
        except pa.ArrowInvalid:
            wrong = bytes_column.not_utf8(data)
        kept = pa.array(np.arange(len(data)), mask=wrong)
        return data.take(kept).cast(pa.string()).fill_null(""), wrong


def offsets_of(sizes: Numbers) -> npt.NDArray[np.int64]:
    """Where each of some parts begins when they stand side by side, and where the last one ends."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def unzigzag(codes: Numbers) -> Numbers:
    """The signed numbers, of as many bits as the unsigned ones have; see ``binary_writing.zigzag``."""
    one = codes.dtype.type(1)
    signed = f"i{codes.dtype.itemsize}"
    return np.asarray((codes >> one).view(signed) ^ -(codes & one).view(signed))


def signed(numbers: Numbers, lengths: Numbers) -> Numbers:
    """The last bytes of each number, the first bit of them being the sign."""
    unused = 8 * np.clip(8 - lengths, 0, 7)
    return np.asarray((numbers << unused) >> unused)


def beyond(high: Numbers, low: Numbers, precision: int) -> Numbers:
    """Which unscaled numbers of decimals have more digits: each in halves of 64 bits, of which ``high`` is signed."""
    (over, over_low), (under, under_low) = (
        divmod(bound, 1 << 64) for bound in (10**precision, -(10**precision))
    )
    too_large = (high > over) | ((high == over) & (low >= np.uint64(over_low)))
    too_small = (high < under) | ((high == under) & (low <= np.uint64(under_low)))
    return np.asarray(too_large | too_small)
