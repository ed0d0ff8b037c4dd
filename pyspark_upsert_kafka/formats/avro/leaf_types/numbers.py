"""boolean, int, long, float and double."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
)

from pyspark_upsert_kafka.formats.avro.cursors import Cursor, Cursors
from pyspark_upsert_kafka.formats.avro.errors import sql_type, unreadable
from pyspark_upsert_kafka.formats.avro.leaf_types import (
    ColumnReader,
    Leaf,
    ReadField,
    ValueReader,
    from_columns,
)
from pyspark_upsert_kafka.formats.avro.model import plain_name
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, Cells, fixed, varints
from pyspark_upsert_kafka.formats.binary.numbers import Numbers, zigzag


@dataclass(frozen=True)
class Boolean(Leaf):
    """One byte, 0 or 1."""

    path: str
    arrow: pa.DataType | None = None

    def column_reader(self) -> ColumnReader:
        """Leaves messages with another byte to the row path."""
        skipped = self.arrow is None

        def read(cursors: Cursors) -> pa.Array | None:
            seen = cursors.bytes()
            cursors.leave(seen > 1)
            return None if skipped else pa.array(seen == 1)

        return read

    def value_reader(self) -> ValueReader:
        """Refuses another byte."""
        path = self.path

        def read(cursor: Cursor) -> bool:
            byte = cursor.take(1, path, "boolean")[0]
            if byte > 1:
                raise unreadable(path, f"expected a boolean, 0 or 1, got {byte}")
            return bool(byte)

        return read


_BOUNDS = {"int": 1 << 31, "long": 1 << 63}


@dataclass(frozen=True)
class Integer(Leaf):
    """An int or a long, which becomes ``written * times // over``.

    Args:
        path: The field, for errors.
        written: Which of the two.
        arrow: Type of the column.
        low: The smallest written number that the column can hold.
        high: The largest.
        times: Factor.
        over: Divisor.
        through: numpy's types that it takes on its way to a floating-point column.
    """

    path: str
    written: str
    arrow: pa.DataType | None = None
    low: int = -(1 << 63)
    high: int = (1 << 63) - 1
    times: int = 1
    over: int = 1
    through: tuple[str, ...] = ()

    def column_reader(self) -> ColumnReader:
        """Leaves messages with a number out of range to the row path."""
        numbers, arrow = self._numbers(), self.arrow
        if arrow is None:

            def skip(cursors: Cursors) -> None:
                numbers(cursors)

            return skip
        dtypes = self.through or (f"int{arrow.bit_width}",)
        return lambda cursors: _column(numbers(cursors), dtypes, arrow)

    def _numbers(self) -> Callable[[Cursors], Numbers]:
        bound, times, over = _BOUNDS[self.written], self.times, self.over
        low, high = max(self.low, -bound), min(self.high, bound - 1)
        checked = (low, high) != (-(1 << 63), (1 << 63) - 1)

        def numbers(cursors: Cursors) -> Numbers:
            seen = cursors.longs()
            if checked:
                cursors.leave((seen < low) | (seen > high))
            if times != 1:
                seen *= times
            return seen if over == 1 else seen // over

        return numbers

    def value_reader(self) -> ValueReader:
        """Refuses a number out of range, of the written type or of the column's."""
        path, bound = self.path, _BOUNDS[self.written]
        low, high, times, over = self.low, self.high, self.times, self.over

        def written(cursor: Cursor) -> int:
            number = cursor.long(path)
            if not -bound <= number < bound:
                raise unreadable(path, f"{number} is out of range of Avro's {self.written}")
            return number

        def scaled(cursor: Cursor) -> int:
            number = written(cursor)
            if not low <= number <= high:
                raise unreadable(path, f"{number} is out of range of {sql_type(self.arrow)}")
            return number * times // over

        def floating(cursor: Cursor) -> Any:
            number: Any = np.int64(written(cursor))
            for dtype in self.through:
                number = number.astype(dtype)
            return number.item()

        return floating if self.through else scaled


_FLOATS: dict[str, np.dtype[Any]] = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}


@dataclass(frozen=True)
class Floating(Leaf):
    """A float or a double; see `Integer`."""

    path: str
    written: str
    arrow: pa.DataType | None = None
    through: tuple[str, ...] = ()

    @property
    def least_bytes(self) -> int:
        """Always this number of bytes."""
        return _FLOATS[self.written].itemsize

    def column_reader(self) -> ColumnReader:
        """No value is wrong."""
        dtype, arrow, through = _FLOATS[self.written], self.arrow, self.through
        size = self.least_bytes
        if arrow is None:
            return lambda cursors: cursors.move(size)

        def read(cursors: Cursors) -> pa.Array:
            bits = cursors.next_words(size).astype(f"<u{size}", copy=False)
            return _column(bits.view(dtype), through, arrow)

        return read

    def value_reader(self) -> ValueReader:
        """No value is wrong."""
        path, written, size = self.path, self.written, self.least_bytes
        unpack = struct.Struct("<f" if written == "float" else "<d").unpack
        return lambda cursor: unpack(cursor.take(size, path, written))[0]


def _column(numbers: Numbers, dtypes: tuple[str, ...], arrow: pa.DataType) -> pa.Array:
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        for dtype in dtypes:
            numbers = numbers.astype(dtype, copy=False)
    return pa.Array.from_buffers(arrow, numbers.size, [None, pa.py_buffer(numbers)])


def read_boolean(field: ReadField) -> Leaf | None:
    """A boolean into a BOOLEAN."""
    return Boolean(field.path, field.column) if pa.types.is_boolean(field.column) else None


def read_integer(field: ReadField) -> Leaf | None:
    """An int into an integer of any size, if the number has room there; a long into a LONG."""
    name, column = plain_name(field.read_as), field.column
    if not pa.types.is_integer(column) or name not in ("int", "long"):
        return None
    if name == "long" and column != pa.int64():
        return None
    half = 1 << (column.bit_width - 1)
    return Integer(field.path, plain_name(field.written), column, -half, half - 1)


def read_floating(field: ReadField) -> Leaf | None:
    """Any number into a DOUBLE, all but a double into a FLOAT; the reader's schema may ask for a step in between."""
    if not pa.types.is_floating(field.column):
        return None
    last = "float32" if pa.types.is_float32(field.column) else "float64"
    written, seen = plain_name(field.written), plain_name(field.read_as)
    between = _FLOATS[seen].name if seen in _FLOATS else last
    if between == "float64" and last == "float32":
        return None
    through = (between, last)
    if written in _FLOATS:
        return Floating(field.path, written, field.column, through)
    return Integer(field.path, written, field.column, through=through)


def longs(values: Numbers) -> Cells:
    """Integers as Avro writes them."""
    return varints(zigzag(values))


def write_integers(array: pa.Array) -> ByteParts:
    """``int`` and ``long``."""
    return [longs(array.to_numpy())]


def _booleans(array: pa.Array) -> ByteParts:
    return [fixed(array.to_numpy(zero_copy_only=False))]


def _floating(dtype: str, array: pa.Array) -> ByteParts:
    """Every NaN equals every other, and equal values must give equal bytes."""
    values = array.to_numpy().astype(dtype, copy=False)
    nans = np.isnan(values)
    return [fixed(np.where(nans, values.dtype.type("nan"), values) if nans.any() else values)]


_INTEGERS = (ByteType, ShortType, IntegerType)
_NO_DOUBLES = (*_INTEGERS, LongType, FloatType)
write_boolean = from_columns({BooleanType: _booleans})
write_int = from_columns(dict.fromkeys(_INTEGERS, write_integers))
write_long = from_columns({LongType: write_integers})
write_float = from_columns(dict.fromkeys(_NO_DOUBLES, partial(_floating, "<f4")))
write_double = from_columns(dict.fromkeys((*_NO_DOUBLES, DoubleType), partial(_floating, "<f8")))
