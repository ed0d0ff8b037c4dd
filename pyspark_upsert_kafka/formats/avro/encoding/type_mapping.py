"""Which simple Spark types go into which Avro types, and how.

A column goes into a type that holds all its values: its own, or one that Avro promotes it to. An
integer is also taken for the number behind a date, time or timestamp, a bare int for a date, and a
bare long for milliseconds of a timestamp, as Spark's ``AvroSerializer`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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

from pyspark_upsert_kafka.formats.avro.encoding import leaves
from pyspark_upsert_kafka.formats.avro.model import AvroType, Enum, Fixed, Logical, Primitive
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts

Writer = Callable[[pa.Array], ByteParts]
"""A column to its bytes; raises EncodeError, or ValueError where the column is not known."""

_UNITS: dict[str, Writer] = {
    "millis": leaves.milliseconds,
    "micros": leaves.microseconds,
    "nanos": leaves.nanoseconds,
}
_ZONED = {f"timestamp-{unit}": write for unit, write in _UNITS.items()}
_LOCAL = {f"local-{name}": write for name, write in _ZONED.items()}
_BARE: dict[str, Writer] = {"long": leaves.milliseconds}
_REAL: dict[str, Writer] = {"float": leaves.floats, "double": leaves.doubles}
_LONG: dict[str, Writer] = {
    **dict.fromkeys(("long", "time-micros", *_ZONED, *_LOCAL), leaves.whole_numbers),
    **_REAL,
}
_INT: dict[str, Writer] = {
    **dict.fromkeys(("int", "date", "time-millis", "long"), leaves.whole_numbers),
    **_REAL,
}

_WRITERS: dict[type[DataType], dict[str, Writer]] = {
    BinaryType: {"bytes": leaves.byte_strings},
    BooleanType: {"boolean": leaves.booleans},
    ByteType: _INT,
    DateType: {"date": leaves.days, "int": leaves.days},
    DayTimeIntervalType: {"long": leaves.microseconds},
    DoubleType: {"double": leaves.doubles},
    FloatType: _REAL,
    IntegerType: _INT,
    LongType: _LONG,
    ShortType: _INT,
    StringType: dict.fromkeys(("string", "uuid", "bytes"), leaves.byte_strings),
    TimestampNTZType: _LOCAL | _BARE,
    TimestampType: _ZONED | _BARE,
}
"""By the name of the logical type, or of the type that has none."""


@dataclass(frozen=True)
class Timestamps:
    """How timestamps are written.

    Args:
        legacy: Whether local and zoned ones go into each other.
        remedy: What to do about a value finer than its type; None = it is rounded down.
    """

    legacy: bool = True
    remedy: str | None = None


def leaf_writer(kind: DataType, avro: AvroType, timestamps: Timestamps) -> Writer | None:
    """The writer of a column without nulls; None when the column does not fit.

    Args:
        kind: The column's type.
        avro: What to write.
        timestamps: How timestamps are written.
    """
    if isinstance(avro, Enum):
        return partial(leaves.symbols, avro) if isinstance(kind, StringType) else None
    if not isinstance(avro, Fixed | Primitive):
        return None
    if isinstance(kind, DecimalType):
        return _decimal_writer(kind, avro, avro.logical)
    if isinstance(avro, Fixed):
        return _fixed_writer(kind, avro)
    writers = _WRITERS.get(type(kind), {})
    if isinstance(kind, TimestampType | TimestampNTZType):
        writers = _ZONED | _LOCAL | _BARE if timestamps.legacy else writers
    write = writers.get(avro.logical.name if avro.logical else avro.kind)
    if write is leaves.milliseconds and timestamps.remedy is not None:
        return partial(leaves.whole_milliseconds, timestamps.remedy)
    return write


def _decimal_writer(
    kind: DecimalType, avro: Fixed | Primitive, logical: Logical | None
) -> Writer | None:
    if logical is None or not _is_decimal(logical) or logical.scale != kind.scale:
        return None
    if isinstance(avro, Fixed):
        return partial(leaves.fixed_decimals, logical, avro.size)
    return partial(leaves.decimals, logical)


def _fixed_writer(kind: DataType, avro: Fixed) -> Writer | None:
    if isinstance(kind, BinaryType) and not _is_decimal(avro.logical):
        return partial(leaves.fixed_bytes, avro.size)
    is_uuid = avro.logical is not None and avro.logical.name == "uuid"
    return leaves.uuids if isinstance(kind, StringType) and is_uuid else None


def _is_decimal(logical: Logical | None) -> bool:
    return logical is not None and logical.name == "decimal"
