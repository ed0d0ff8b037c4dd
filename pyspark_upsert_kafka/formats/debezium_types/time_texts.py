"""Dates, times and timestamps that are sent as texts, in the spellings of Java's ``ISO_OFFSET_DATE_TIME`` and its like.

Java writes a year that has not four digits with a sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.reading import (
    Reading,
    fitting,
    plain,
    timestamp_type,
)
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, dates, days

_ISO = TimestampText("ISO-8601", zoned=True)
_SIGNED_YEAR = re.compile(r"([+-][0-9]{4,9})(-[0-9]{2}-[0-9]{2})(.*)")
# The Gregorian calendar repeats itself.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_DAY_MICROS = 86_400_000_000
_INFINITIES = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
"""Postgres' infinity of a TIMESTAMPTZ, which Debezium sends by name, as the number that it sends for that of a TIMESTAMP."""


def read_text(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A text, as it is."""
    del schema
    return plain(wanted) if isinstance(wanted, StringType) else None


def read_zoned_timestamp(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A text such as ``2011-12-03T10:15:30.030431+01:00``, into a TIMESTAMP."""
    if isinstance(wanted, TimestampType):
        return Reading(StringType(), _ISO.column, _micros)
    return read_text(schema, wanted)


def read_utc_timestamp(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A timestamp without a zone that is written as one in UTC."""
    if isinstance(wanted, TimestampNTZType):
        return Reading(
            StringType(), lambda array: _ISO.column(array).cast(timestamp_type(False)), _micros
        )
    return read_zoned_timestamp(schema, wanted)


def read_utc_date(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A date with the zone UTC: ``2005-05-12Z``."""
    if isinstance(wanted, DateType):
        return Reading(StringType(), _dates, _days)
    return read_text(schema, wanted)


def as_bytes(
    read: Callable[[ConnectSchema, DataType], Reading | None],
) -> Callable[[ConnectSchema, DataType], Reading | None]:
    """The same text, sent as its bytes in UTF-8."""

    def read_bytes(schema: ConnectSchema, wanted: DataType) -> Reading | None:
        if isinstance(wanted, BinaryType):
            return plain(wanted)
        of_text = read(schema, wanted)
        if of_text is None:
            return None
        column, value = of_text.column, of_text.value
        return Reading(
            BinaryType(),
            lambda array: (
                array.cast(pa.string()) if column is None else column(array.cast(pa.string()))
            ),
            lambda data: _decoded(data) if value is None else value(_decoded(data)),
        )

    return read_bytes


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("expected a text in UTF-8") from None


def _micros(text: str) -> int:
    """Microseconds since 1970 of a text, in any year."""
    years = _SIGNED_YEAR.fullmatch(text)
    if text in _INFINITIES:
        return _INFINITIES[text]
    if not years:
        return _ISO.micros(text)
    near, cycles = _near_year(int(years[1]))
    micros = _ISO.micros(f"{near}{years[2]}{years[3]}")
    return fitting(micros + cycles * _CYCLE_DAYS * _DAY_MICROS, "TIMESTAMP")


def _days(text: str) -> int:
    """Days since 1970 of a text, in any year."""
    digits = text.removesuffix("Z")
    years = _SIGNED_YEAR.fullmatch(digits)
    if not years:
        return days(digits)
    near, cycles = _near_year(int(years[1]))
    return fitting(days(f"{near}{years[2]}{years[3]}") + cycles * _CYCLE_DAYS, "DATE", 32)


def _near_year(year: int) -> tuple[int, int]:
    """A year with the same calendar that Python's dates know, and how many cycles it is away."""
    near = year % _CYCLE_YEARS + 5 * _CYCLE_YEARS
    return near, (year - near) // _CYCLE_YEARS


def _dates(array: pa.Array) -> pa.Array:
    """Raises ValueError for a text that is no plain date in UTC."""
    if pc.all(pc.ends_with(array, "Z")).as_py() is False:
        raise ValueError("expected dates in UTC")
    return dates(pc.utf8_slice_codeunits(array, 0, -1))
