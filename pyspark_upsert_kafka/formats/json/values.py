"""JSON values of simple types, exactly: one value to what ``pyarrow.array`` takes.

The rules are those of Flink's ``JsonParserToRowDataConverters``; where Flink would make a wrong value
out of a bad one (a cut fraction, a NULL for a decimal that is too large, ``false`` for any text), it
is an error here. Each reader raises ValueError with what was expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

from pyspark_upsert_kafka.formats.base64_text import binary
from pyspark_upsert_kafka.formats.json.document import Number, compact
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.variants import variant
from pyspark_upsert_kafka.formats.number_text import (
    BLANK,
    boolean,
    decimal,
    double,
    integer,
    integer_text,
    single,
)
from pyspark_upsert_kafka.formats.simple_types import BITS
from pyspark_upsert_kafka.formats.timestamp_text import OtherStandardError, TimestampText, days

Reader = Callable[[Any], Any]
"""A parsed JSON value, which is not null, to a value of the column; raises ValueError."""


def value_reader(kind: DataType, settings: Settings) -> Reader:
    """The reader of a simple type."""
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    if type(kind) in BITS:
        return _integer(BITS[type(kind)])
    if isinstance(kind, TimestampType | TimestampNTZType):
        zoned = isinstance(kind, TimestampType)
        return _timestamp(TimestampText(settings.timestamp_standard, zoned))
    return _LEAVES[type(kind)]


def _integer(bits: int) -> Reader:
    def read(value: Any) -> int:
        if type(value) is Number:
            return integer(value, bits)
        return integer_text(_text(value, "a whole number"), bits)

    return read


def _decimal(kind: DecimalType) -> Reader:
    expected = f"a DECIMAL({kind.precision},{kind.scale})"

    def read(value: Any) -> Any:
        return decimal(_text(value, expected), kind.precision, kind.scale)

    return read


def _timestamp(timestamp_format: TimestampText) -> Reader:
    expected = f"a text like '{timestamp_format.example}'"

    def read(value: Any) -> int:
        try:
            return timestamp_format.micros(_string(value, expected))
        except OtherStandardError as other:
            raise ValueError(
                f"expected {expected} ('timestamp-format.standard' = '{other.standard}' reads "
                "what the message has)"
            ) from None

    return read


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    return boolean(value if type(value) is str else "")


_milliseconds = _integer(64)


def _interval(value: Any) -> int:
    """Whole milliseconds, as Flink has an INTERVAL DAY TO SECOND, to microseconds."""
    micros: int = _milliseconds(value) * 1_000
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError("out of range of INTERVAL DAY TO SECOND")
    return micros


def _as_text(value: Any) -> str:
    return value if type(value) is str else compact(value)


def _text(value: Any, expected: str) -> str:
    """The digits of a number, or a string without blanks around it."""
    if not isinstance(value, str):
        raise ValueError(f"expected {expected}")  # noqa: TRY004 - the message is at fault
    return value.strip(BLANK)


def _string(value: Any, expected: str) -> str:
    if type(value) is not str:
        raise ValueError(f"expected {expected}")
    return value


_LEAVES: dict[type[DataType], Reader] = {
    BinaryType: lambda value: binary(_string(value, "BINARY as base64 text")),
    BooleanType: _boolean,
    DateType: lambda value: days(_string(value, "a DATE like '2024-01-31'")),
    DayTimeIntervalType: _interval,
    DoubleType: lambda value: double(_text(value, "a number")),
    FloatType: lambda value: single(_text(value, "a number")),
    StringType: _as_text,
    VariantType: variant,
}
