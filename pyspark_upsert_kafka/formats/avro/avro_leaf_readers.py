"""How leaf types are read, which hold no others: as a column, for the vectorised path, and value by value, for the row path.

Reading a column leaves each message that it cannot read to the row path, which reads it or says what is wrong with it.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.avro_cursors import Cursor, Cursors
from pyspark_upsert_kafka.formats.avro.avro_types import (
    Enum,
    Fixed,
    LeafSchema,
    Logical,
    logical_of,
    mismatch,
    plain_name,
    sql_type,
    unreadable,
)
from pyspark_upsert_kafka.formats.binary_values import Numbers, beyond, signed

ColumnReader = Callable[[Cursors], Any]
"""Reads a field of all messages and gives its column; None when no column wants it."""

ValueReader = Callable[[Cursor], Any]
"""Reads a field of a message and gives its value, as ``pyarrow.array`` takes it; raises UnreadableError."""


class AvroLeaf(ABC):
    """How a field of a leaf type is read: as a column (vectorised path), and value by value (row path)."""

    arrow: pa.DataType | None
    """Type of the column; None = no column wants the field, which is skipped."""

    @property
    def least_bytes(self) -> int:
        """How many bytes it takes in a message at least; 0 when in doubt."""
        return 1

    @property
    def constant_bytes(self) -> int:
        """How many bytes a value has at most that do not stand in the message."""
        return 0

    @abstractmethod
    def column_reader(self) -> ColumnReader:
        """Compiles the function that reads all messages; those that it cannot read it leaves to the row path."""

    @abstractmethod
    def value_reader(self) -> ValueReader:
        """Compiles the function that reads one message, or says what is wrong with it."""


@dataclass(frozen=True)
class ReadField:
    """A field of a leaf type, and the column that it is read into.

    Args:
        path: The field, for errors.
        written: Its type in the writer's schema, which is how its bytes stand.
        read_as: Its type in the reader's schema; the written one when there is no reader's schema.
        column: Type of the column.
        strict_zones: Refuse a local timestamp for a TIMESTAMP, and the reverse.
    """

    path: str
    written: LeafSchema
    read_as: LeafSchema
    column: pa.DataType
    strict_zones: bool = False

    @property
    def logical(self) -> Logical | None:
        """The writer's logical type, or else the reader's: the writer knew what it wrote."""
        return logical_of(self.written) or logical_of(self.read_as)


_Read = Callable[[ReadField], "AvroLeaf | None"]
"""How a field is read; None = its column cannot hold what is written."""


@dataclass(frozen=True)
class _Boolean(AvroLeaf):
    """One byte, 0 or 1."""

    path: str
    arrow: pa.DataType | None = None

    def column_reader(self) -> ColumnReader:
        skipped = self.arrow is None

        def read(cursors: Cursors) -> pa.Array | None:
            seen = cursors.bytes()
            cursors.leave(seen > 1)
            return None if skipped else pa.array(seen == 1)

        return read

    def value_reader(self) -> ValueReader:
        path = self.path

        def read(cursor: Cursor) -> bool:
            byte = cursor.take(1, path, "boolean")[0]
            if byte > 1:
                raise unreadable(path, f"expected a boolean, 0 or 1, got {byte}")
            return bool(byte)

        return read


_BOUNDS = {"int": 1 << 31, "long": 1 << 63}


@dataclass(frozen=True)
class _Integer(AvroLeaf):
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
class _Floating(AvroLeaf):
    """A float or a double; see `_Integer`."""

    path: str
    written: str
    arrow: pa.DataType | None = None
    through: tuple[str, ...] = ()

    @property
    def least_bytes(self) -> int:
        return _FLOATS[self.written].itemsize

    def column_reader(self) -> ColumnReader:
        dtype, arrow, through = _FLOATS[self.written], self.arrow, self.through
        size = self.least_bytes
        if arrow is None:
            return lambda cursors: cursors.move(size)

        def read(cursors: Cursors) -> pa.Array:
            bits = cursors.next_words(size).astype(f"<u{size}", copy=False)
            return _column(bits.view(dtype), through, arrow)

        return read

    def value_reader(self) -> ValueReader:
        path, written, size = self.path, self.written, self.least_bytes
        unpack = struct.Struct("<f" if written == "float" else "<d").unpack
        return lambda cursor: unpack(cursor.take(size, path, written))[0]


def _column(numbers: Numbers, dtypes: tuple[str, ...], arrow: pa.DataType) -> pa.Array:
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        for dtype in dtypes:
            numbers = numbers.astype(dtype, copy=False)
    return pa.Array.from_buffers(arrow, numbers.size, [None, pa.py_buffer(numbers)])


def _read_boolean(field: ReadField) -> AvroLeaf | None:
    """A boolean into a BOOLEAN."""
    return _Boolean(field.path, field.column) if pa.types.is_boolean(field.column) else None


def _read_integer(field: ReadField) -> AvroLeaf | None:
    """An int into an integer of any size, if the number has room there; a long into a LONG."""
    name, column = plain_name(field.read_as), field.column
    if not pa.types.is_integer(column) or name not in ("int", "long"):
        return None
    if name == "long" and column != pa.int64():
        return None
    half = 1 << (column.bit_width - 1)
    return _Integer(field.path, plain_name(field.written), column, -half, half - 1)


def _read_floating(field: ReadField) -> AvroLeaf | None:
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
        return _Floating(field.path, written, field.column, through)
    return _Integer(field.path, written, field.column, through=through)


@dataclass(frozen=True)
class _Symbol(AvroLeaf):
    """The number of one of an enum's symbols; None stands for one that the reader does not know."""

    path: str
    symbols: tuple[str | None, ...]
    arrow: pa.DataType | None = None

    @property
    def constant_bytes(self) -> int:
        """Those of the longest symbol: the message has its number only."""
        return 0 if self.arrow is None else max((len(s or "") for s in self.symbols), default=0)

    def column_reader(self) -> ColumnReader:
        count = len(self.symbols)
        skipped = self.arrow is None
        known = np.array([skipped or symbol is not None for symbol in self.symbols] + [False])
        symbols = pa.array([*self.symbols, None], pa.string())

        def read(cursors: Cursors) -> pa.Array | None:
            numbers = cursors.longs()
            numbers[(numbers < 0) | (numbers > count)] = count
            cursors.leave(~known[numbers])
            return None if skipped else symbols.take(pa.array(numbers))

        return read

    def value_reader(self) -> ValueReader:
        path, symbols, skipped = self.path, self.symbols, self.arrow is None

        def read(cursor: Cursor) -> str | None:
            number = cursor.long(path)
            if not 0 <= number < len(symbols):
                raise unreadable(path, f"there is no symbol {number} in an enum of {len(symbols)}")
            if symbols[number] is None and not skipped:
                raise unreadable(path, f"symbol {number} is none that the reader's schema knows")
            return symbols[number]

        return read


def _read_symbol(field: ReadField) -> AvroLeaf | None:
    """An enum into a STRING."""
    written, seen = field.written, field.read_as
    if not pa.types.is_string(field.column) or not isinstance(written, Enum):
        return None
    symbols: tuple[str | None, ...] = written.symbols
    if isinstance(seen, Enum) and seen is not written:
        symbols = tuple(s if s in seen.symbols else seen.default for s in symbols)
    return _Symbol(field.path, symbols, field.column)


_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_AS_MICROSECONDS: dict[str, Callable[..., _Integer]] = {
    "millis": partial(_Integer, low=-(-_LOWEST // 1000), high=_HIGHEST // 1000, times=1000),
    "micros": _Integer,
    "nanos": partial(_Integer, over=1000),
}


def _read_date(field: ReadField) -> AvroLeaf | None:
    """An int into a DATE."""
    if not pa.types.is_date32(field.column) or plain_name(field.read_as) != "int":
        return None
    return _Integer(field.path, plain_name(field.written), field.column)


def _read_timestamp(field: ReadField) -> AvroLeaf | None:
    """A long into a TIMESTAMP or a TIMESTAMP_NTZ."""
    if not pa.types.is_timestamp(field.column) or plain_name(field.read_as) != "long":
        return None
    unit = "millis"
    if field.logical is not None:
        zone, _, unit = field.logical.name.rpartition("-")
        if field.strict_zones and (field.column.tz is not None) != (zone == "timestamp"):
            return None
    return _AS_MICROSECONDS[unit](field.path, plain_name(field.written), field.column)


def _read_interval(field: ReadField) -> AvroLeaf | None:
    """A long into an INTERVAL DAY TO SECOND."""
    if not pa.types.is_duration(field.column):
        return None
    return _Integer(field.path, plain_name(field.written), field.column)


_HEX = np.frombuffer(bytes(range(256)).hex().encode(), "S2")
_DASHES = np.array([4, 6, 8, 10])


@dataclass(frozen=True)
class _Bytes(AvroLeaf):
    """Bytes with their length before them, or the bytes of a fixed ``size``."""

    path: str
    size: int | None
    arrow: pa.DataType | None = None

    @property
    def least_bytes(self) -> int:
        return 1 if self.size is None else self.size

    def column_reader(self) -> ColumnReader:
        size, column_of = self.size, self.column_of
        if self.arrow is None:

            def skip(cursors: Cursors) -> None:
                _skip_bytes(cursors, size)

            return skip
        return lambda cursors: column_of(cursors, _skip_bytes(cursors, size))

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """The bytes from there to where the cursors are now."""
        return cursors.buffer.slices(start, cursors.at)

    def value_reader(self) -> ValueReader:
        path, size, convert = self.path, self.size, self.value_of()
        what = "text" if isinstance(self, _Text) else "value"

        def read(cursor: Cursor) -> Any:
            data = cursor.take(cursor.long(path) if size is None else size, path, what)
            try:
                return convert(data)
            except ValueError as why:
                raise unreadable(path, str(why)) from None

        return read

    def value_of(self) -> Callable[[bytes], Any]:
        """From the bytes to the value; raises ValueError."""
        return bytes


def _skip_bytes(cursors: Cursors, size: int | None) -> Numbers:
    """Where the bytes begin that end where the cursors are afterwards."""
    if size is not None:
        start = cursors.at.copy()
        cursors.move(size)
        return start
    lengths = cursors.longs()
    wrong = (lengths < 0) | (lengths > cursors.end - cursors.at)
    if wrong.any():
        cursors.leave(wrong)
        lengths[wrong] = 0
    start = cursors.at.copy()
    cursors.at += lengths
    return start


class _Text(_Bytes):
    """UTF-8."""

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """The texts; messages with what is not UTF-8 are left to the row path."""
        column, wrong = cursors.buffer.texts(start, cursors.at)
        cursors.leave(wrong)
        return column

    def value_of(self) -> Callable[[bytes], str]:
        """The text, or where it is not UTF-8."""

        def text(data: bytes) -> str:
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from None

        return text


class _Uuid(_Bytes):
    """Sixteen bytes; as text they are hexadecimal digits with dashes."""

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        data = cursors.buffer.data[start[:, np.newaxis] + np.arange(16)]
        pairs = [_HEX[data[:, at]] for at in range(16)]
        dash = np.full(start.size, b"-", "S1")
        for at in reversed(_DASHES):
            pairs.insert(at, dash)
        text = np.rec.fromarrays(pairs).tobytes()
        offsets = np.arange(start.size + 1, dtype=np.int32) * 36
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), start.size, buffers)

    def value_of(self) -> Callable[[bytes], str]:
        return lambda data: str(UUID(bytes=data))


def _size_of(leaf: LeafSchema) -> int | None:
    """How many bytes a fixed has; None = their number stands before them."""
    return leaf.size if isinstance(leaf, Fixed) else None


def _read_bytes(field: ReadField) -> AvroLeaf | None:
    """Into a BINARY."""
    if not pa.types.is_binary(field.column):
        return None
    return _Bytes(field.path, _size_of(field.written), field.column)


def _read_text(field: ReadField) -> AvroLeaf | None:
    """Bytes or a string into a STRING."""
    if not pa.types.is_string(field.column) or isinstance(field.written, Fixed):
        return None
    return _Text(field.path, None, field.column)


def _read_uuid(field: ReadField) -> AvroLeaf | None:
    """A uuid in a fixed into a STRING; in a string it is the text itself."""
    if not pa.types.is_string(field.column) or not isinstance(field.written, Fixed):
        return None
    return _Uuid(field.path, field.written.size, field.column)


_PLENTY = Context(prec=100)


def _read_decimal(field: ReadField) -> AvroLeaf | None:
    """Into a DECIMAL of the same scale, which a number may have too many digits for."""
    column, logical = field.column, field.logical
    if not pa.types.is_decimal(column) or logical is None or logical.scale != column.scale:
        return None
    return _DecimalNumber(field.path, _size_of(field.written), column)


class _DecimalNumber(_Bytes):
    """The bytes of a decimal."""

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """Numbers whose sign is spread over sixteen bytes.

        Longer ones are left to the row path: they may still be a small number.
        """
        arrow: Any = self.arrow
        lengths = cursors.at - start
        low = cursors.buffer.words[cursors.at - 8].byteswap().view(np.int64)
        high = cursors.buffer.words[cursors.at - 16].byteswap().view(np.int64)
        cursors.leave((lengths == 0) | (lengths > 16))
        short = lengths <= 8
        low = np.where(short, signed(low, lengths), low)
        high = np.where(short, low >> 63, signed(high, lengths - 8))
        cursors.leave(beyond(high, low.view(np.uint64), arrow.precision))
        buffer = pa.py_buffer(np.stack([low, high], axis=1))
        return pa.Array.from_buffers(arrow, start.size, [None, buffer])

    def value_of(self) -> Callable[[bytes], Decimal]:
        """A number of no more digits than the column has."""
        arrow: Any = self.arrow
        bound = 10**arrow.precision

        def decimal(data: bytes) -> Decimal:
            if not data:
                raise ValueError("a decimal of no bytes")
            unscaled = int.from_bytes(data, "big", signed=True)
            if not -bound < unscaled < bound:
                digits = f"DECIMAL({arrow.precision},{arrow.scale})"
                raise ValueError(f"a number of more digits than {digits}")
            return Decimal(unscaled).scaleb(-arrow.scale, _PLENTY)

        return decimal


_NUMBER = (_read_integer, _read_floating)
_DATE = (*_NUMBER, _read_date)
_TIMESTAMP = (*_NUMBER, _read_timestamp)

_READ: Mapping[str, tuple[_Read, ...]] = {
    "boolean": (_read_boolean,),
    "int": _DATE,
    "long": (*_NUMBER, _read_timestamp, _read_interval),
    "float": (_read_floating,),
    "double": (_read_floating,),
    "bytes": (_read_bytes, _read_text),
    "string": (_read_text, _read_bytes),
    "fixed": (_read_bytes,),
    "enum": (_read_symbol,),
    "date": _DATE,
    "time-millis": _NUMBER,
    "time-micros": _NUMBER,
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "timestamp-nanos": _TIMESTAMP,
    "local-timestamp-millis": _TIMESTAMP,
    "local-timestamp-micros": _TIMESTAMP,
    "local-timestamp-nanos": _TIMESTAMP,
    "uuid": (_read_text, _read_uuid, _read_bytes),
    "decimal": (_read_decimal, _read_bytes),
}
"""The ways to read each leaf type, by the name of its logical type or else its plain one; the first that fits the column is taken."""


def read_leaf(field: ReadField) -> AvroLeaf:
    """How a field is read into its column.

    Raises:
        SchemaError: The column cannot hold what is written.
    """
    logical = field.logical
    for read in _READ[logical.name if logical else plain_name(field.read_as)]:
        leaf = read(field)
        if leaf is not None:
            return leaf
    raise mismatch(field.path, field.column, field.read_as)


def skip_leaf(leaf: LeafSchema, path: str) -> AvroLeaf:
    """How a field that no column wants is skipped."""
    name = plain_name(leaf)
    if name == "boolean":
        return _Boolean(path)
    if name in ("int", "long"):
        return _Integer(path, name)
    if name in ("float", "double"):
        return _Floating(path, name)
    return _Symbol(path, leaf.symbols) if isinstance(leaf, Enum) else _Bytes(path, _size_of(leaf))
