"""How each type that has no parts is read: a value on the row path, and a column on the other paths.

The rules for values are those of Flink's ``JsonParserToRowDataConverters``; where Flink would make a wrong value
out of a bad one (a cut fraction, a NULL for a decimal that is too large, ``false`` for any text), it is an error
here. How each type is written: ``leaf_writers.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.formats.base64_text import binaries, binary
from pyspark_upsert_kafka.formats.json.document import HALF, Half, Number, compact, holds_half
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.variants import variant
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.number_text import (
    BLANK,
    boolean,
    decimal,
    double,
    integer,
    integer_text,
    single,
)
from pyspark_upsert_kafka.formats.parsed_columns import Conversion, finite
from pyspark_upsert_kafka.formats.timestamp_text import (
    OtherStandardError,
    TimestampText,
    dates,
    days,
)

Reader = Callable[[Any], Any]
"""A parsed JSON value, which is not null, to what ``pyarrow.array`` takes; raises ValueError with what was expected."""

_TEXT = frozenset({str})


@dataclass(frozen=True)
class Leaf:
    """How a type is read.

    Args:
        value: Reads one value.
        column: How ``pyarrow.json`` reads a column.
        from_orjson: The types of Python as which orjson gives a value without a loss; empty = it loses what is needed.
    """

    value: Reader
    column: Conversion
    from_orjson: frozenset[type] = frozenset()


def leaf(kind: DataType, settings: Settings) -> Leaf:
    """How a type without parts is read."""
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    if type(kind) in BITS:
        return _integer(BITS[type(kind)])
    if isinstance(kind, TimestampType | TimestampNTZType):
        zoned = isinstance(kind, TimestampType)
        return _timestamp(TimestampText(settings.timestamp_standard, zoned))
    return _LEAVES[type(kind)]


def _integer(bits: int) -> Leaf:
    column = Conversion(getattr(pa, f"int{bits}")())
    return Leaf(_integer_value(bits), column, frozenset({int}))


def _integer_value(bits: int) -> Reader:
    def read(value: Any) -> int:
        if type(value) is Number:
            return integer(value, bits)
        return integer_text(_text(value, "a whole number"), bits)

    return read


def _decimal(kind: DecimalType) -> Leaf:
    """The parser is given room for 38 digits as they stand and 38 more that the scale adds.

    It counts the digits it is given, and then scales without a check: in 128 bits 11 would become a
    wrong DECIMAL(38,38). The cast back to 128 bits refuses what does not fit.
    """
    expected = f"a DECIMAL({kind.precision},{kind.scale})"
    exact, wide = pa.decimal128(kind.precision, kind.scale), pa.decimal256(38, kind.scale)

    def read(value: Any) -> Any:
        return decimal(_text(value, expected), kind.precision, kind.scale)

    return Leaf(read, Conversion(wide, lambda array: array.cast(exact)))


def _timestamp(timestamp_format: TimestampText) -> Leaf:
    expected = f"a text like '{timestamp_format.example}'"

    def read(value: Any) -> int:
        try:
            return timestamp_format.micros(_string(value, expected))
        except OtherStandardError as other:
            raise ValueError(
                f"expected {expected} ('timestamp-format.standard' = '{other.standard}' reads "
                "what the message has)"
            ) from None

    return Leaf(read, Conversion(pa.string(), timestamp_format.column), _TEXT)


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    return boolean(value if type(value) is str else "")


_milliseconds = _integer_value(64)


def _interval(value: Any) -> int:
    """Whole milliseconds, as Flink has an INTERVAL DAY TO SECOND, to microseconds."""
    micros: int = _milliseconds(value) * 1_000
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError("out of range of INTERVAL DAY TO SECOND")
    return micros


def _intervals(array: pa.Array) -> pa.Array:
    return pc.multiply_checked(array, 1_000).cast(pa.duration("us"))


def _as_text(value: Any) -> str:
    if type(value) is str:
        return value
    text = compact(value)
    if type(value) is Half or holds_half(text):
        raise ValueError(HALF)
    return text


def _text(value: Any, expected: str) -> str:
    """The digits of a number, or a string without blanks around it."""
    if not isinstance(value, str):
        raise ValueError(f"expected {expected}")  # noqa: TRY004 - the message is at fault
    return value.strip(BLANK)


def _string(value: Any, expected: str) -> str:
    if type(value) is not str:
        raise ValueError(f"expected {expected}")
    return value


_LEAVES: dict[type[DataType], Leaf] = {
    BinaryType: Leaf(
        lambda value: binary(_string(value, "BINARY as base64 text")),
        Conversion(pa.string(), binaries),
        _TEXT,
    ),
    BooleanType: Leaf(_boolean, Conversion(pa.bool_()), frozenset({bool})),
    DateType: Leaf(
        lambda value: days(_string(value, "a DATE like '2024-01-31'")),
        Conversion(pa.string(), dates),
        _TEXT,
    ),
    DayTimeIntervalType: Leaf(_interval, Conversion(pa.int64(), _intervals)),
    DoubleType: Leaf(
        lambda value: double(_text(value, "a number")),
        Conversion(pa.float64(), finite),
        frozenset({float, int}),
    ),
    FloatType: Leaf(
        lambda value: single(_text(value, "a number")), Conversion(pa.float32(), finite)
    ),
    StringType: Leaf(_as_text, Conversion(pa.string()), _TEXT),
    # As a column it is read by the row path alone.
    VariantType: Leaf(variant, Conversion(pa.null())),
}
