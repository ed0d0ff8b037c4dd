"""What binary formats share: the bytes of many messages, and the numbers in them, read and written together.

They are read at many places at once. They are written a column at a time, as parts, each of which holds some bytes of every
row: a row's bytes are those of its parts one after the other. Numbers are cells, which NumPy makes; texts are Arrow's own, where
NULL is no bytes. Neighbouring cells become one part before Arrow joins the parts, since joining costs more the more parts
there are.

Polars and ``pyarrow.compute`` take long to import: that is done when parts are joined, not when a query is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
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
    """The signed numbers, of as many bits as the unsigned ones have; see `zigzag`."""
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


Flags: TypeAlias = "npt.NDArray[np.bool_]"

_BYTES = pa.large_binary()


@dataclass(frozen=True)
class Cells:
    """Some bytes for every row, and which of them the row has; both arrays are of one shape."""

    data: npt.NDArray[np.uint8]
    kept: Flags


BytePart: TypeAlias = "Cells | pa.LargeBinaryArray"
ByteParts: TypeAlias = "list[BytePart]"


def zigzag(values: Numbers) -> npt.NDArray[np.uint64]:
    """Signed numbers as unsigned ones, of which those near zero are small: 0, -1, 1, -2, ..."""
    wide = values.astype(np.int64, copy=False)
    return ((wide << 1) ^ (wide >> 63)).view(np.uint64)


def varint(value: int) -> bytes:
    """An unsigned number in as few bytes as will do: seven bits in each, the lowest ones first."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def varints(values: Numbers) -> Cells:
    """Numbers as varints, in as few bytes as possible; a negative one as the unsigned number of its 64 bits."""
    rest = values.astype(np.uint64, copy=False)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // 7))
    data = np.empty((len(rest), width), np.uint8)
    kept = np.ones((len(rest), width + 1), np.bool_)
    for at in range(width):
        kept[:, at + 1] = more = rest > 0x7F
        data[:, at] = (rest.astype(np.uint8) & 0x7F) | (more.view(np.uint8) << 7)
        rest = rest >> np.uint64(7)
    return Cells(data, kept[:, :width])


def fixed(values: Numbers) -> Cells:
    """Values of one size: each row of the array, whatever it holds, as its bytes."""
    rows = np.ascontiguousarray(values)
    size = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    data = rows.view(np.uint8).reshape(len(rows), size)
    return Cells(data, np.ones(data.shape, np.bool_))


def constant(value: bytes, count: int) -> Cells:
    """The same bytes in every row."""
    shape = (count, len(value))
    return Cells(np.broadcast_to(np.frombuffer(value, np.uint8), shape), np.ones(shape, np.bool_))


def only(cells: Cells, present: Flags) -> Cells:
    """The bytes of the rows that are present; the others have none."""
    return cells if present.all() else Cells(cells.data, cells.kept & present[:, np.newaxis])


def among(part: BytePart, present: Flags) -> BytePart:
    """Spreads a part: its rows are, in order, those that are present; the others have no bytes."""
    if not isinstance(part, Cells):
        return grouped(part, present)
    # Row 0 is for the others: it keeps nothing.
    rows = np.where(present, np.cumsum(present), 0)
    nothing = np.zeros((1, part.data.shape[1]), np.bool_)
    data = np.concatenate([nothing.view(np.uint8), part.data])
    kept = np.concatenate([nothing, part.kept])
    return Cells(data.take(rows, axis=0), kept.take(rows, axis=0))


def joined(parts: Sequence[BytePart], count: int) -> pa.LargeBinaryArray:
    """One part of many."""
    import pyarrow.compute as pc

    nothing = pa.scalar(b"", _BYTES)
    if not parts:
        return pa.repeat(nothing, count)
    return pc.binary_join_element_wise(*_packed(parts), nothing, null_handling="replace")


def grouped(part: pa.LargeBinaryArray, counts: Numbers) -> pa.LargeBinaryArray:
    """Joins rows that follow one another: as many as the first count says become one, and so on; a count may be 0."""
    return _binary(_offsets(part)[offsets_of(counts)], part.buffers()[2])


def _merged(cells: Sequence[Cells]) -> pa.LargeBinaryArray:
    import polars as pl

    data = np.hstack([each.data for each in cells])
    kept = np.hstack([each.kept for each in cells])
    # Polars needs a fifteenth of the time that NumPy does for data[kept], einsum a quarter of sum's.
    bytes_kept = pl.Series(data.reshape(-1)).filter(pl.Series(kept.reshape(-1))).to_numpy()
    sizes = np.einsum("ij->i", kept.view(np.uint8), dtype=np.int64)
    return _binary(offsets_of(sizes), pa.py_buffer(bytes_kept))


def _packed(parts: Iterable[BytePart]) -> Iterable[pa.LargeBinaryArray]:
    for are_cells, neighbours in groupby(parts, lambda part: isinstance(part, Cells)):
        if are_cells:
            yield _merged(list(neighbours))
        else:
            yield from neighbours


def _binary(offsets: npt.NDArray[np.int64], data: pa.Buffer | None) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(offsets), data or pa.py_buffer(b"")]
    return pa.LargeBinaryArray.from_buffers(_BYTES, len(offsets) - 1, buffers)


def _offsets(part: pa.LargeBinaryArray) -> npt.NDArray[np.int64]:
    offsets = np.frombuffer(part.buffers()[1], np.int64)
    return offsets[part.offset : part.offset + len(part) + 1]
