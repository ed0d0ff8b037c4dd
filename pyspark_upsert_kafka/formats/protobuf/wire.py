"""Numbers and slices on the wire, many at once.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

TOO_LONG = 1 << 40
"""Length of a varint that does not end: past the end of any message."""

_PADDING = 16
_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
# Halves of 2, 4 and 8 bytes: how the groups of seven bits are moved together.
_MERGES = [
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
]
_ONE, _SEVEN = np.uint64(1), np.uint64(7)


@dataclass(frozen=True)
class Wire:
    """Some bytes, to be read at many places at once.

    Args:
        octets: Each byte, and some more behind the end, so that reading may look ahead.
        words: At each byte the eight that begin there, as one little-endian number.
        data: The bytes as Arrow has them.
    """

    octets: np.ndarray
    words: np.ndarray
    data: pa.Buffer

    @classmethod
    def of(cls, data: bytes) -> Wire:
        """The wire that holds these bytes."""
        padded = np.frombuffer(data + bytes(_PADDING), np.uint8)
        words: np.ndarray = np.ndarray((len(data) + 9,), "<u8", padded, strides=(1,))
        return cls(padded, words, pa.py_buffer(padded))

    def varints(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The varint at each place, and how many bytes it takes."""
        first = self.octets[at]
        values, lengths = first.astype(np.uint64), np.ones(len(at), np.int64)
        longer = np.flatnonzero(first >= 0x80)
        if len(longer):
            values[longer], lengths[longer] = self._long(at[longer])
        return values, lengths

    def _long(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        word = self.words[at]
        stops = ~word & _HIGH
        last = stops & (~stops + _ONE)
        values = word & (last | (last - _ONE)) & _LOW
        for low, high, shift in _MERGES:
            values = (values & low) | ((values & high) >> shift)
        lengths = (np.frexp(last.astype(np.float64))[1] >> 3).astype(np.int64)
        longest = np.flatnonzero(lengths == 0)
        if len(longest):
            ninth, tenth = (self.octets[at[longest] + i].astype(np.uint64) for i in (8, 9))
            is_ten = ninth >= 0x80
            values[longest] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
            values[longest] |= np.where(is_ten, tenth, 0).astype(np.uint64) << np.uint64(63)
            ends = np.where(tenth < 0x80, 10, TOO_LONG)
            lengths[longest] = np.where(is_ten, ends, 9)
        return values, lengths

    def slices(self, start: np.ndarray, length: np.ndarray) -> pa.Array:
        """The slices as one binary column. Each starts behind the one before it."""
        count = len(start)
        if not count:
            return pa.array([], pa.binary())
        # Every second value of a column whose other values are the gaps.
        offsets = np.empty(2 * count + 1, np.int32)
        offsets[:-1:2] = start
        offsets[1::2] = start + length
        offsets[-1] = offsets[-2]
        both = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(offsets), self.data]
        )
        return both.take(pa.array(np.arange(0, 2 * count, 2)))


def varint_lengths(values: np.ndarray) -> np.ndarray:
    """How many bytes each number takes as a varint."""
    lengths = np.ones(len(values), np.int64)
    largest = int(values.max(initial=0))
    for bits in range(7, 64, 7):
        if largest >> bits == 0:
            break
        lengths += values >= np.uint64(1 << bits)
    return lengths


def varint_column(tag: bytes, values: np.ndarray, present: np.ndarray) -> pa.Array:
    """Each number as tag and varint, and nothing where it is not present."""
    lengths = varint_lengths(values)
    width = int(lengths.max(initial=1))
    groups = np.empty((len(values), width), np.uint8)
    for i in range(width):
        groups[:, i] = (values >> (_SEVEN * np.uint64(i))).astype(np.uint8) | 0x80
    groups[np.arange(len(values)), lengths - 1] &= 0x7F
    return _column(tag, groups, np.where(present, lengths, -len(tag)))


def fixed_column(tag: bytes, values: np.ndarray, present: np.ndarray) -> pa.Array:
    """Each number as tag and little-endian bytes, and nothing where it is not present."""
    size = values.dtype.itemsize
    groups = values.view(np.uint8).reshape(len(values), size)
    return _column(tag, groups, np.where(present, size, -len(tag)))


def _column(tag: bytes, groups: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """The tag and so many bytes of each group."""
    count, width = groups.shape
    both = np.empty((count, len(tag) + width), np.uint8)
    both[:, : len(tag)] = np.frombuffer(tag, np.uint8)
    both[:, len(tag) :] = groups
    sizes = lengths + len(tag)
    return binary_column(offsets_of(sizes), _chosen(both, sizes))


def _chosen(cells: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The first so many cells of each row, side by side."""
    if (sizes == cells.shape[1]).all():
        return cells
    mask = np.arange(cells.shape[1]) < sizes[:, None]
    # Polars needs half the time that numpy does for this.
    return pl.Series(cells.reshape(-1)).filter(pl.Series(mask.reshape(-1))).to_numpy()


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Where each of some pieces begins when they stand side by side, and where the last one ends."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def binary_column(offsets: np.ndarray, data: np.ndarray | pa.Buffer) -> pa.Array:
    """The binary column of the bytes between the offsets."""
    if offsets[-1] >= 1 << 31:
        raise ValueError("the rows of one batch make more than 2 GiB")
    buffer = data if isinstance(data, pa.Buffer) else pa.py_buffer(np.ascontiguousarray(data))
    wide = pa.py_buffer(offsets.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, wide, buffer])
