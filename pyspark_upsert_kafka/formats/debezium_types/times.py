"""Dates, times, timestamps and durations that are sent as numbers: how many days, milliseconds, microseconds or nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.debezium_types.reading import (
    WHOLE_NUMBERS,
    Reading,
    calculated,
    fitting,
    plain,
    timestamp_type,
)


@dataclass(frozen=True)
class Unit:
    """What a number counts.

    Args:
        name: Its name in an error.
        in_second: How many of it are a second.
    """

    name: str
    in_second: int

    def micros(self, number: int, kind: str) -> int:
        """Whole microseconds. Raises ValueError when they have no room in 64 bits."""
        if self.in_second > 1_000_000:
            return number // 1000
        return fitting(number * (1_000_000 // self.in_second), kind)

    def column_of_micros(self, array: pa.Array, kind: pa.DataType) -> pa.Array:
        """The same of a column. Raises ValueError."""
        wide = array.cast(pa.int64())
        if self.in_second > 1_000_000:
            return calculated(wide, lambda numbers: numbers // 1000, kind)
        return pc.multiply_checked(wide, 1_000_000 // self.in_second).cast(kind)


MILLISECONDS = Unit("milliseconds", 1000)
MICROSECONDS = Unit("microseconds", 1_000_000)
NANOSECONDS = Unit("nanoseconds", 1_000_000_000)

_ARROW_TIMES = {1000: pa.time32("ms"), 1_000_000: pa.time64("us"), 1_000_000_000: pa.time64("ns")}


def read_number(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """A whole number, as it is."""
    del schema
    return plain(wanted) if isinstance(wanted, WHOLE_NUMBERS) else None


def read_days(schema: ConnectSchema, wanted: DataType) -> Reading | None:
    """Days since 1970."""
    if isinstance(wanted, DateType):
        return Reading(IntegerType(), lambda array: array.cast(pa.date32()), lambda value: value)
    return read_number(schema, wanted)


def read_timestamp(unit: Unit) -> Callable[[ConnectSchema, DataType], Reading | None]:
    """A number of units since 1970; it says nothing of a zone, and is the time in UTC in a TIMESTAMP."""

    def read(schema: ConnectSchema, wanted: DataType) -> Reading | None:
        if not isinstance(wanted, TimestampType | TimestampNTZType):
            return read_number(schema, wanted)
        kind = timestamp_type(isinstance(wanted, TimestampType))
        return Reading(
            LongType(),
            partial(unit.column_of_micros, kind=kind),
            partial(unit.micros, kind=f"{unit.name} since 1970"),
        )

    return read


def read_duration(unit: Unit) -> Callable[[ConnectSchema, DataType], Reading | None]:
    """A number of units."""

    def read(schema: ConnectSchema, wanted: DataType) -> Reading | None:
        if not isinstance(wanted, DayTimeIntervalType):
            return read_number(schema, wanted)
        return Reading(
            LongType(),
            partial(unit.column_of_micros, kind=pa.duration("us")),
            partial(unit.micros, kind=unit.name),
        )

    return read


def read_time(unit: Unit) -> Callable[[ConnectSchema, DataType], Reading | None]:
    """A number of units since midnight; MySQL's may be negative, and more than a day."""

    def read(schema: ConnectSchema, wanted: DataType) -> Reading | None:
        if isinstance(wanted, StringType):
            return Reading(LongType(), partial(_time_texts, unit), partial(_time_text, unit))
        return read_duration(unit)(schema, wanted)

    return read


def _time_texts(unit: Unit, array: pa.Array) -> pa.Array:
    """Raises ValueError for a number that is no time of the day."""
    bounds = pc.min_max(array).as_py()
    if (
        bounds["min"] is not None
        and not 0 <= bounds["min"] <= bounds["max"] < 86_400 * unit.in_second
    ):
        raise ValueError("not a time of the day")
    kind = _ARROW_TIMES[unit.in_second]
    narrow = array.cast(pa.int32()) if pa.types.is_time32(kind) else array
    return pc.ascii_rtrim(pc.ascii_rtrim(narrow.cast(kind).cast(pa.string()), "0"), ".")


def _time_text(unit: Unit, number: int) -> str:
    seconds, fraction = divmod(abs(number), unit.in_second)
    digits = f".{fraction:0{len(str(unit.in_second)) - 1}}".rstrip("0").rstrip(".")
    sign = "-" if number < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"
