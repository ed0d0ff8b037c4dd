"""How columns are written as leaf types, which hold no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.avro.avro_types import (
    Enum,
    Fixed,
    LeafSchema,
    Logical,
    logical_of,
    plain_name,
)
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, Cells, fixed, varints
from pyspark_upsert_kafka.formats.binary.numbers import Numbers, zigzag

Writer = Callable[[pa.Array], ByteParts]
"""Writes a column as bytes; raises EncodeError.

That of a leaf type is given a column without nulls, and raises ValueError: it does not know the column's name.
"""


@dataclass(frozen=True)
class Timestamps:
    """How timestamps are written.

    Args:
        legacy: Write a TIMESTAMP as a local timestamp too, and a TIMESTAMP_NTZ as one that is not local.
        remedy: What the error of a value that is finer than its type's milliseconds advises; None = it is rounded down.
    """

    legacy: bool = True
    remedy: str | None = None


@dataclass(frozen=True)
class WrittenField:
    """A column, and the leaf type that it is written as.

    Args:
        column: Type of the column.
        written: What to write.
        timestamps: How timestamps are written.
    """

    column: DataType
    written: LeafSchema
    timestamps: Timestamps = Timestamps()


_Write = Callable[[WrittenField], "Writer | None"]
"""How a column is written; None = the type cannot hold it."""


def _from_columns(writers: Mapping[type[DataType], Writer]) -> _Write:
    """A way to write columns of some types, each by its writer."""
    return lambda field: writers.get(type(field.column))


def longs(values: Numbers) -> Cells:
    """Integers as Avro writes them."""
    return varints(zigzag(values))


def _write_integers(array: pa.Array) -> ByteParts:
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
_write_boolean = _from_columns({BooleanType: _booleans})
_write_int = _from_columns(dict.fromkeys(_INTEGERS, _write_integers))
_write_long = _from_columns({LongType: _write_integers})
_write_float = _from_columns(dict.fromkeys(_NO_DOUBLES, partial(_floating, "<f4")))
_write_double = _from_columns(dict.fromkeys((*_NO_DOUBLES, DoubleType), partial(_floating, "<f8")))

_SHOWN_SYMBOLS = 20


def _write_symbol(field: WrittenField) -> Writer | None:
    """A STRING, which must be one of the symbols."""
    if not isinstance(field.column, StringType) or not isinstance(field.written, Enum):
        return None
    return partial(_symbols, field.written)


def _symbols(enum: Enum, array: pa.Array) -> ByteParts:
    import pyarrow.compute as pc

    positions = pc.index_in(array, value_set=pa.array(enum.symbols, array.type))
    if positions.null_count:
        seen = array.filter(positions.is_null())[0].as_py()
        known = ", ".join(enum.symbols[:_SHOWN_SYMBOLS])
        raise ValueError(f"{seen!r} is no symbol of the enum {enum.name!r}: {known}")
    return _write_integers(positions)


_LAST_NANOS = ((1 << 63) - 1) // 1000


def _write_timestamp(field: WrittenField) -> Writer | None:
    """A TIMESTAMP, and a TIMESTAMP_NTZ as a local timestamp; see `Timestamps`."""
    if not isinstance(field.column, TimestampType | TimestampNTZType):
        return None
    logical = logical_of(field.written)
    if logical is None:
        return _milliseconds(field)
    zone, _, unit = logical.name.rpartition("-")
    zoned = isinstance(field.column, TimestampType)
    if not field.timestamps.legacy and zoned != (zone == "timestamp"):
        return None
    return {"millis": _milliseconds(field), "micros": _microseconds, "nanos": _nanoseconds}[unit]


def _milliseconds(field: WrittenField) -> Writer:
    remedy = field.timestamps.remedy
    return _rounded_down if remedy is None else partial(_whole_milliseconds, remedy)


def _rounded_down(array: pa.Array) -> ByteParts:
    """To milliseconds, as Spark and Flink do."""
    return [longs(array.cast(pa.int64()).to_numpy() // 1000)]


def _whole_milliseconds(remedy: str, array: pa.Array) -> ByteParts:
    """Milliseconds that lose nothing; a finer value is refused with what to do about it."""
    finer = array.cast(pa.int64()).to_numpy() % 1000 != 0
    if finer.any():
        first = array.slice(int(finer.argmax()), 1).cast(pa.int64())
        # By numpy: Python's own datetime ends with the year 9999.
        shown = str(first.to_numpy().astype("datetime64[us]")[0]).replace("T", " ")
        raise ValueError(f"{shown} is finer than milliseconds; {remedy}")
    return _rounded_down(array)


def _microseconds(array: pa.Array) -> ByteParts:
    return _write_integers(array.cast(pa.int64()))


def _nanoseconds(array: pa.Array) -> ByteParts:
    micros = array.cast(pa.int64()).to_numpy()
    if len(micros) and not -_LAST_NANOS <= micros.min() <= micros.max() <= _LAST_NANOS:
        raise ValueError("nanoseconds in 64 bits reach from the year 1677 to 2262 only")
    return [longs(micros * 1000)]


def _days(array: pa.Array) -> ByteParts:
    return _write_integers(array.cast(pa.int32()))


_write_date = _from_columns({DateType: _days})
_write_interval = _from_columns({DayTimeIntervalType: _microseconds})


_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def _lengths(data: pa.Array) -> Numbers:
    import pyarrow.compute as pc

    return np.asarray(pc.binary_length(data))


def byte_strings(array: pa.Array) -> ByteParts:
    """``string`` and ``bytes``."""
    data = array.cast(pa.large_binary())
    return [longs(_lengths(data)), data]


def _fixed_bytes(size: int, array: pa.Array) -> ByteParts:
    for seen in np.unique(_lengths(array)):
        if seen != size:
            raise ValueError(
                f"a value of {seen} bytes; the type in the Avro schema is fixed({size})"
            )
    return [array.cast(pa.large_binary())]


def _uuids(array: pa.Array) -> ByteParts:
    import polars as pl

    texts = pl.Series(array)
    wrong = texts.filter(~texts.str.contains(_UUID))
    if len(wrong):
        raise ValueError(f"{wrong[0]!r} is no UUID")
    data = texts.str.replace_all("-", "", literal=True).str.decode("hex")
    return [data.to_arrow().cast(pa.large_binary())]


_write_bytes = _from_columns({BinaryType: byte_strings})
_write_text = _from_columns({StringType: byte_strings})


def _write_fixed(field: WrittenField) -> Writer | None:
    """A BINARY of exactly this length."""
    if not isinstance(field.written, Fixed) or not isinstance(field.column, BinaryType):
        return None
    return partial(_fixed_bytes, field.written.size)


def _write_uuid(field: WrittenField) -> Writer | None:
    """A STRING: in a fixed as its sixteen bytes, in a string as it is."""
    if not isinstance(field.column, StringType):
        return None
    return _uuids if isinstance(field.written, Fixed) else byte_strings


def _write_decimal(field: WrittenField) -> Writer | None:
    """A DECIMAL of the same scale."""
    column, logical = field.column, logical_of(field.written)
    if not isinstance(column, DecimalType) or logical is None or logical.scale != column.scale:
        return None
    if isinstance(field.written, Fixed):
        return partial(_in_fixed, logical, field.written.size)
    return partial(_in_bytes, logical)


def _in_bytes(logical: Logical, array: pa.Array) -> ByteParts:
    """The fewest bytes that hold the number, as Java's ``BigInteger.toByteArray`` gives them."""
    data = _big_endian(array, logical)
    inverted = data ^ _sign(data)
    kept = np.ones(data.shape, np.bool_)
    needed = np.zeros(len(data), np.bool_)
    for at in range(data.shape[1] - 1):
        # Needed is a byte that differs from the sign, all behind it, and one to hold the sign's bit.
        needed |= inverted[:, at] != 0
        kept[:, at] = needed | (inverted[:, at + 1] > 0x7F)
    return [longs(np.einsum("ij->i", kept.view(np.uint8))), Cells(data, kept)]


def _in_fixed(logical: Logical, size: int, array: pa.Array) -> ByteParts:
    """Filled up with the sign."""
    data = _big_endian(array, logical)
    lacking = size - data.shape[1]
    if lacking > 0:
        data = np.hstack([np.repeat(_sign(data), lacking, axis=1), data])
    return [fixed(data[:, -size:])]


def _sign(data: Numbers) -> Numbers:
    return np.where(data[:, :1] > 0x7F, np.uint8(0xFF), np.uint8(0))


def _big_endian(array: pa.Array, logical: Logical) -> Numbers:
    """Unscaled values as rows of bytes, of which there are eight when that is enough for all."""
    if array.type.precision > logical.precision:
        array = array.cast(pa.decimal128(logical.precision, logical.scale))
    values = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset :][: 16 * len(array)]
    width = 8 if logical.precision <= 18 or array.type.precision <= 18 else 16
    return np.ascontiguousarray(values.reshape(-1, 16)[:, width - 1 :: -1])


_DATE = (_write_int, _write_date)
_TIMESTAMP = (_write_long, _write_timestamp)

_WRITE: Mapping[str, tuple[_Write, ...]] = {
    "boolean": (_write_boolean,),
    "int": _DATE,
    "long": (_write_int, _write_long, _write_timestamp, _write_interval),
    "float": (_write_float,),
    "double": (_write_double,),
    "bytes": (_write_bytes, _write_text),
    "string": (_write_text,),
    "fixed": (_write_fixed,),
    "enum": (_write_symbol,),
    "date": _DATE,
    "time-millis": (_write_int,),
    "time-micros": (_write_long,),
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "timestamp-nanos": _TIMESTAMP,
    "local-timestamp-millis": _TIMESTAMP,
    "local-timestamp-micros": _TIMESTAMP,
    "local-timestamp-nanos": _TIMESTAMP,
    "uuid": (_write_uuid, _write_fixed),
    "decimal": (_write_decimal,),
}
"""The ways to write each leaf type, by the name of its logical type or else its plain one; the first that fits the column is taken."""


def write_leaf(field: WrittenField) -> Writer | None:
    """How a column without nulls is written; None = it does not fit."""
    logical = logical_of(field.written)
    ways = _WRITE[logical.name if logical else plain_name(field.written)]
    writers = (write(field) for write in ways)
    return next((writer for writer in writers if writer is not None), None)
