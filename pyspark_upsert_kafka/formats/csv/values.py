"""Texts of fields and elements to values of simple types, exactly.

The rules are those of Flink's ``CsvToRowDataConverters``; where Flink would make a wrong value out of
a bad one (``false`` for any text, infinity for a number out of range), it is an error here. Each
reader raises ValueError with what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.base64_text import binary
from pyspark_upsert_kafka.formats.number_text import (
    BLANK,
    boolean,
    decimal,
    double,
    integer_text,
    single,
)
from pyspark_upsert_kafka.formats.simple_types import BITS
from pyspark_upsert_kafka.formats.timestamp_text import OtherStandardError, TimestampText, days

Reader = Callable[[str], Any]
"""A text to a value; raises ValueError."""

# java.sql.Date.valueOf lets a month and a day have one digit.
_SHORT_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")


def value_reader(kind: DataType) -> Reader:
    """The reader of a simple type."""
    if isinstance(kind, DecimalType):
        return lambda text: decimal(text.strip(BLANK), kind.precision, kind.scale)
    if type(kind) in BITS:
        bits = BITS[type(kind)]
        return lambda text: integer_text(text.strip(BLANK), bits)
    return _READERS[type(kind)]


def has_empty_text(kind: DataType) -> bool:
    """Whether the empty text is a value of the type, and so no NULL unless the literal says so."""
    return isinstance(kind, StringType | BinaryType)


def _date(text: str) -> int:
    match = _SHORT_DATE.fullmatch(text)
    return days("{}-{:0>2}-{:0>2}".format(*match.groups()) if match else text)


def _timestamp(zoned: bool) -> Reader:
    """Flink's spelling, or the ISO-8601 that Spark's ``to_csv`` writes."""
    sql, iso = TimestampText("SQL", zoned), TimestampText("ISO-8601", zoned)

    def read(text: str) -> int:
        try:
            return sql.micros(text.strip(BLANK))
        except OtherStandardError:
            return iso.micros(text.strip(BLANK))

    return read


_READERS: dict[type[DataType], Reader] = {
    BinaryType: binary,
    BooleanType: boolean,
    DateType: _date,
    DoubleType: lambda text: double(text.strip(BLANK)),
    FloatType: lambda text: single(text.strip(BLANK)),
    StringType: str,
    TimestampNTZType: _timestamp(zoned=False),
    TimestampType: _timestamp(zoned=True),
}
