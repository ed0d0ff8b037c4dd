"""What binary formats share to write: parts of messages, a column at a time; each part holds some bytes of every row.

A row's bytes are those of its parts one after the other. Numbers are cells, which NumPy makes; texts
are Arrow's own, where NULL is no bytes. Neighbouring cells become one part before Arrow joins the
parts, since joining costs more the more parts there are.

Polars and ``pyarrow.compute`` take long to import: that is done when parts are joined, not when a query is planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.binary_reading import Numbers, offsets_of

if TYPE_CHECKING:
    import numpy.typing as npt

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
