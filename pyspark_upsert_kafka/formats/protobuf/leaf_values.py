"""Values without parts: how numbers, enums, texts, timestamps and durations are read and written.

Each is read in two ways, as one value of the runtime and as a column of what stands on the wire, and written as a column.
Timestamps and durations are messages of seconds and nanoseconds, in the ranges that timestamp.proto and duration.proto
define. Spark has microseconds; finer is cut off, as its ``from_protobuf`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DecimalType, IntegerType, LongType, StringType, StructType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.binary.byte_parts import (
    ByteParts,
    Cells,
    constant,
    fixed,
    joined,
    only,
    varints,
)
from pyspark_upsert_kafka.formats.binary.message_buffer import MessageBuffer
from pyspark_upsert_kafka.formats.binary.numbers import unzigzag, zigzag
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    INT32,
    INT64,
    INTEGERS,
    UINT32,
    UINT64,
    VARINT,
    ZIGZAG,
    Kind,
    enum_names,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.field_types import TIMESTAMP, Column, columns_of

Built = tuple[pa.Array, np.ndarray]
"""A column, and which of its values are bad."""

Value = Callable[[MessageBuffer, np.ndarray, np.ndarray], Built]
"""Numbers, or where slices start and their lengths, to a column of as many values."""

Read = Callable[[MessageBuffer, np.ndarray, np.ndarray], "tuple[list[pa.Array], np.ndarray]"]
"""Messages, by where each starts and ends, to their columns, and which of them fall back to the row path."""

EncodeValues = Callable[[bytes, pa.Array, np.ndarray], ByteParts]
"""Values with the tag before each, but nothing where not present."""

_NumbersOf = Callable[[pa.Array], np.ndarray]
"""A column to numbers that fit its field; NULL becomes any of them. Raises EncodeError."""

_MEANING: dict[int, str] = {
    **dict.fromkeys(INT32 | {Kind.ENUM}, "i4"),
    **dict.fromkeys(UINT32, "u4"),
    **dict.fromkeys(INT64, "i8"),
    **dict.fromkeys(UINT64, "u8"),
    Kind.FLOAT: "f4",
    Kind.DOUBLE: "f8",
}
"""What a number of a kind is to numpy."""


def value_reader(column: Column) -> Callable[[Any], Any]:
    """Compiles the conversion from one value of the runtime to one of Arrow; it raises UnreadableError."""
    kind = column.field.type
    if kind == Kind.MESSAGE:
        return _moment(column)
    if kind == Kind.STRING:
        return _text(column)
    if kind == Kind.BYTES:
        return bytes
    if kind == Kind.ENUM and isinstance(column.type, StringType):
        names = enum_names(column.field.enum_type)
        return lambda number: names.get(number) or str(number)  # one that has no name is its digits
    if isinstance(column.type, DecimalType):
        return Decimal
    return _integer(column) if type(column.type) in BITS else lambda value: value


def _text(column: Column) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        # A proto2 string that is not UTF-8 is given as bytes.
        if type(value) is str:
            return value
        raise UnreadableError(f"field '{column.path}' is a string, but not UTF-8")

    return read


def _integer(column: Column) -> Callable[[int], int]:
    bound = 1 << (BITS[type(column.type)] - 1)

    def read(value: int) -> int:
        if -bound <= value < bound:
            return value
        raise UnreadableError(
            f"field '{column.path}': {value} does not fit into {column.type.simpleString().upper()}"
        )

    return read


def default_of(column: Column) -> Any:
    """The default of a field with presence, as a value of its column; None = nothing, zero or empty."""
    value = column.field.default_value
    if column.field.containing_type.GetOptions().map_entry:
        value = type(value)()  # of an enum too: to the runtime it is 0, and not the first value
    if column.field.type == Kind.ENUM and isinstance(column.type, StringType):
        return enum_names(column.field.enum_type)[value]
    return value or None


def column_reader(column: Column) -> Value:
    """Compiles the conversion from what stands on the wire to a column, but for timestamps: see `moments_reader`."""
    kind = column.field.type
    if kind == Kind.STRING:
        return lambda buffer, starts, lengths: buffer.texts(starts, starts + lengths)
    if kind == Kind.BYTES:
        return lambda buffer, starts, lengths: _all_good(buffer.slices(starts, starts + lengths))
    if kind == Kind.ENUM:
        enums = _enums(column)
        return lambda _, raw, __: enums(raw)
    if isinstance(column.type, DecimalType):
        return lambda _, raw, __: _all_good(pa.array(raw).cast(pa.decimal128(20, 0)))
    if kind in INTEGERS:
        return lambda _, raw, __: _integers(column, _meaning(kind, raw))
    return lambda _, raw, __: _all_good(pa.array(_meaning(kind, raw)))


def _all_good(array: pa.Array) -> Built:
    return array, np.zeros(len(array), np.bool_)


def _meaning(kind: int, raw: np.ndarray) -> np.ndarray:
    """What the numbers on the wire stand for; more bits than the kind has are cut off."""
    if kind == Kind.BOOL:
        return np.asarray(raw != 0)
    meaning = _MEANING[Kind(kind)]
    bits = raw.astype(f"u{meaning[1]}", copy=False)
    return unzigzag(bits) if kind in ZIGZAG else bits.view(meaning)


def _integers(column: Column, values: np.ndarray) -> Built:
    """Whole numbers as a column; bad are those for which it has no room."""
    bits = BITS[type(column.type)]
    smallest, largest = _bounds(column.field.type)
    bad = np.zeros(len(values), np.bool_)
    if largest >= 1 << (bits - 1):
        bad |= values >= values.dtype.type(1 << (bits - 1))
    if smallest < -(1 << (bits - 1)):
        bad |= values < -(1 << (bits - 1))
    return pa.array(values.astype(f"i{bits // 8}")), bad


def _bounds(kind: int) -> tuple[int, int]:
    """The smallest and the largest value of an integer kind; an enum is an ``int32``."""
    if kind in UINT32 | UINT64:
        return 0, 2**32 - 1 if kind in UINT32 else 2**64 - 1
    bits = 63 if kind in INT64 else 31
    return -(2**bits), 2**bits - 1


def _enums(column: Column) -> Callable[[np.ndarray], Built]:
    find, as_text = names_finder(column.field.enum_type), isinstance(column.type, StringType)

    def build(raw: np.ndarray) -> Built:
        names, unknown = find(raw)
        if as_text:
            return names, unknown
        array, bad = _integers(column, _meaning(Kind.ENUM, raw))
        return array, bad | unknown

    return build


def names_finder(enum: Any) -> Callable[[np.ndarray], Built]:
    """Compiles the conversion from the numbers of an enum on the wire to names, and which of them have none."""
    by_number = dict(sorted(enum_names(enum).items()))
    known = np.array(list(by_number), np.int32)
    names = pa.array(by_number.values(), pa.string())

    def find(raw: np.ndarray) -> Built:
        numbers = _meaning(Kind.ENUM, raw)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return names.take(pa.array(places)), known[places] != numbers

    return find


def number_encoder(column: Column, *, drops_default: bool) -> EncodeValues:
    """Compiles the conversion from numbers, or an enum's names, to bytes, each behind a tag.

    Args:
        column: The column.
        drops_default: Whether a zero is not written.
    """
    kind = column.field.type
    numbers_of = _enum_numbers(column) if kind == Kind.ENUM else _numbers(column)
    cells = varints if wire_type(kind) == VARINT else fixed

    def encode(tag: bytes, array: pa.Array, present: np.ndarray) -> ByteParts:
        numbers = _on_the_wire(kind, numbers_of(array))
        if drops_default:
            # Bits are compared, for -0.0 is no default.
            present = present & (numbers.view(f"u{numbers.dtype.itemsize}") != 0)
        return with_tag(tag, cells(numbers), present)

    return encode


def with_tag(tag: bytes, values: Cells, present: np.ndarray) -> ByteParts:
    """Values with a tag before them, and nothing where not present."""
    return [only(cells, present) for cells in (constant(tag, len(present)), values)]


def _on_the_wire(kind: int, values: np.ndarray) -> np.ndarray:
    if wire_type(kind) != VARINT:
        return values.astype(_MEANING[kind], copy=False)
    return zigzag(values) if kind in ZIGZAG else values


def _numbers(column: Column) -> _NumbersOf:
    if isinstance(column.type, DecimalType):
        return lambda array: _unsigned(column, array)
    if column.field.type in INTEGERS:
        return lambda array: _in_bounds(column, _to_numpy(array))
    return _to_numpy


def _to_numpy(array: pa.Array) -> np.ndarray:
    """The numbers of a column; NULL is 0."""
    zero = pa.scalar(0).cast(array.type)
    values: np.ndarray = array.fill_null(zero).to_numpy(zero_copy_only=False)
    return values


def _in_bounds(column: Column, values: np.ndarray) -> np.ndarray:
    """The numbers, once it is sure that the field has room for them. Raises EncodeError."""
    smallest, largest = _bounds(column.field.type)
    for value in (int(values.min(initial=0)), int(values.max(initial=0))):
        if not smallest <= value <= largest:
            raise EncodeError(column.path, _too_large(column, value))
    return values


def _unsigned(column: Column, array: pa.Array) -> np.ndarray:
    try:
        return _to_numpy(array.cast(pa.uint64()))
    except pa.ArrowInvalid:
        _, largest = _bounds(column.field.type)
        out = (value for value in array.drop_null().to_pylist() if not 0 <= value <= largest)
        raise EncodeError(column.path, _too_large(column, next(out))) from None


def _too_large(column: Column, value: Any) -> str:
    return f"{value} does not fit into {Kind(column.field.type).name.lower()}"


def _enum_numbers(column: Column) -> _NumbersOf:
    enum = column.field.enum_type
    by_name = {value.name: value.number for value in enum.values}
    known, fill = set(by_name.values()), filler(column, "")

    def number(value: Any) -> int:
        found = by_name.get(value, _digits(value)) if type(value) is str else value
        if found is None or (found not in known and enum.is_closed):
            shown = ", ".join(by_name)
            raise EncodeError(
                column.path, f"{value!r} is no value of enum '{enum.full_name}': {shown}"
            )
        return int(found)

    def numbers(array: pa.Array) -> np.ndarray:
        encoded = fill(array).dictionary_encode()
        values = [number(value) for value in encoded.dictionary.to_pylist()]
        places = encoded.indices.to_numpy(zero_copy_only=False)
        return _in_bounds(column, np.array(values, np.int64)[places])

    return numbers


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None


def bytes_of(column: Column, array: pa.Array) -> pa.LargeBinaryArray:
    """Texts, binaries, timestamps or durations as bytes, without tag and length. Raises EncodeError."""
    if column.field.type == Kind.MESSAGE:
        return joined(_message_parts(column, array), len(array))
    return array.cast(pa.large_binary())


def filler(column: Column, null_string: str) -> Callable[[pa.Array], pa.Array]:
    """Compiles the conversion from NULL in an array or a map to what is written for it.

    Flink's ``PbCodegenUtils.pbDefaultValueCode``: the default of the type, the first value of an enum,
    and for strings what an option says.
    """
    if column.field.type == Kind.STRING:
        return lambda array: array.fill_null(null_string)
    if column.field.type != Kind.ENUM:
        return lambda array: array
    first = column.field.enum_type.values[0]
    if isinstance(column.type, StringType):
        return lambda array: array.fill_null(first.name)
    # A TINYINT may have no room for it.
    return lambda array: array.cast(pa.int64()).fill_null(first.number)


def key_order(rows: np.ndarray, keys: pa.Array) -> pa.Array:
    """The order of a map's entries: by row, and in a row by key."""
    sortable = keys.cast(pa.uint8()) if pa.types.is_boolean(keys.type) else keys
    table = pa.table({"row": rows, "key": sortable})
    return pc.sort_indices(table, [("row", "ascending"), ("key", "ascending")])


_SECONDS_AND_NANOS = StructType().add("seconds", LongType()).add("nanos", IntegerType())
_SECONDS_TAG, _NANOS_TAG = b"\x08", b"\x10"
_MICROS = 1_000_000
_NANOS = 1_000_000_000


@dataclass(frozen=True)
class SecondsAndNanos:
    """What seconds and nanoseconds stand for.

    Args:
        first: The smallest number of seconds.
        last: The largest.
        signed: Whether nanoseconds have the sign of the seconds; else they count upwards.
        expected: The range in words.
    """

    first: int
    last: int
    signed: bool
    expected: str

    def micros(self, seconds: np.ndarray, nanos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Microseconds, and where seconds and nanoseconds are in range; elsewhere they are 0."""
        lowest = -_NANOS + 1 if self.signed else 0
        good = (seconds >= self.first) & (seconds <= self.last) & (nanos >= lowest)
        good &= nanos < _NANOS
        if self.signed:
            good &= (np.sign(seconds) * np.sign(nanos)) >= 0
        whole = np.where(good, seconds, 0) * _MICROS
        return whole + np.where(good, np.sign(nanos) * (np.abs(nanos) // 1000), 0), good

    def micros_of(self, seconds: int, nanos: int) -> int | None:
        """Microseconds of one moment; None where seconds or nanoseconds are out of range."""
        lowest = -_NANOS + 1 if self.signed else 0
        if not (self.first <= seconds <= self.last and lowest <= nanos < _NANOS):
            return None
        if self.signed and seconds * nanos < 0:
            return None
        micros = abs(nanos) // 1000
        return seconds * _MICROS + (micros if nanos >= 0 else -micros)

    def split(self, micros: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Seconds, nanoseconds, and where they are in range."""
        if self.signed:
            seconds = np.sign(micros) * (np.abs(micros) // _MICROS)
        else:
            seconds = micros // _MICROS
        nanos = (micros - seconds * _MICROS) * 1000
        return seconds, nanos, (seconds >= self.first) & (seconds <= self.last)


TIMESTAMPS = SecondsAndNanos(
    -62_135_596_800, 253_402_300_799, signed=False, expected="a year from 0001 to 9999"
)
DURATIONS = SecondsAndNanos(
    -315_576_000_000, 315_576_000_000, signed=True, expected="at most 10,000 years"
)


def _range(column: Column) -> SecondsAndNanos:
    return TIMESTAMPS if column.field.message_type.full_name == TIMESTAMP else DURATIONS


def _moment(column: Column) -> Callable[[Any], int]:
    """Compiles the conversion from a message of the runtime to microseconds."""
    within = _range(column)

    def read(message: Any) -> int:
        seconds, nanos = message.seconds, message.nanos
        micros = within.micros_of(seconds, nanos)
        if micros is not None:
            return micros
        raise UnreadableError(
            f"field '{column.path}': {seconds} seconds and {nanos} nanoseconds are not valid; "
            f"expected {within.expected}"
        )

    return read


def fields_of_moments(column: Column) -> tuple[Column, ...]:
    """The seconds and nanoseconds of the column's message, as columns of BIGINT and INT."""
    return columns_of(
        column.field.message_type, _SECONDS_AND_NANOS, f"{column.path}.", defaults=True
    )


def moments_reader(column: Column, kind: pa.DataType, read: Read) -> Value:
    """Compiles the conversion from messages to a column, given what reads the fields that `fields_of_moments` has."""
    within = _range(column)

    def value(buffer: MessageBuffer, starts: np.ndarray, lengths: np.ndarray) -> Built:
        (seconds, nanos), fallback = read(buffer, starts, starts + lengths)
        micros, good = within.micros(seconds.to_numpy(), nanos.to_numpy().astype(np.int64))
        return pa.array(micros).view(kind), fallback | ~good

    return value


def _message_parts(column: Column, array: pa.Array) -> ByteParts:
    """Timestamps or durations as the fields of their message. Raises EncodeError."""
    within = _range(column)
    seconds, nanos, good = within.split(_to_numpy(array.cast(pa.int64())))
    if not good.all():
        raise EncodeError(column.path, f"{array[int(np.argmin(good))]}: expected {within.expected}")
    return [
        part
        for tag, numbers in ((_SECONDS_TAG, seconds), (_NANOS_TAG, nanos))
        for part in with_tag(tag, varints(numbers), numbers != 0)
    ]
