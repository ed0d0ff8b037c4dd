"""date, the times and the timestamps, and what an int or a long without a logical type means in such a column.

A bare int is a date, and a bare long milliseconds of a timestamp, as for Spark and for Flink; a bare long is also
the microseconds of an interval, as for Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from pyspark.sql.types import DateType, DayTimeIntervalType, TimestampNTZType, TimestampType

from pyspark_upsert_kafka.formats.avro.leaf_types import (
    Leaf,
    ReadField,
    Writer,
    WrittenField,
    from_columns,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.numbers import Integer, longs, write_integers
from pyspark_upsert_kafka.formats.avro.model import logical_of, plain_name
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts

_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_LAST_NANOS = _HIGHEST // 1000

_AS_MICROSECONDS: dict[str, Callable[..., Integer]] = {
    "millis": partial(Integer, low=-(-_LOWEST // 1000), high=_HIGHEST // 1000, times=1000),
    "micros": Integer,
    "nanos": partial(Integer, over=1000),
}


def read_date(field: ReadField) -> Leaf | None:
    """An int into a DATE."""
    if not pa.types.is_date32(field.column) or plain_name(field.read_as) != "int":
        return None
    return Integer(field.path, plain_name(field.written), field.column)


def read_timestamp(field: ReadField) -> Leaf | None:
    """A long into a TIMESTAMP or a TIMESTAMP_NTZ."""
    if not pa.types.is_timestamp(field.column) or plain_name(field.read_as) != "long":
        return None
    unit = "millis"
    if field.logical is not None:
        zone, _, unit = field.logical.name.rpartition("-")
        if field.strict_zones and (field.column.tz is not None) != (zone == "timestamp"):
            return None
    return _AS_MICROSECONDS[unit](field.path, plain_name(field.written), field.column)


def read_interval(field: ReadField) -> Leaf | None:
    """A long into an INTERVAL DAY TO SECOND."""
    if not pa.types.is_duration(field.column):
        return None
    return Integer(field.path, plain_name(field.written), field.column)


def write_timestamp(field: WrittenField) -> Writer | None:
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
    return write_integers(array.cast(pa.int64()))


def _nanoseconds(array: pa.Array) -> ByteParts:
    micros = array.cast(pa.int64()).to_numpy()
    if len(micros) and not -_LAST_NANOS <= micros.min() <= micros.max() <= _LAST_NANOS:
        raise ValueError("nanoseconds in 64 bits reach from the year 1677 to 2262 only")
    return [longs(micros * 1000)]


def _days(array: pa.Array) -> ByteParts:
    return write_integers(array.cast(pa.int32()))


write_date = from_columns({DateType: _days})
write_interval = from_columns({DayTimeIntervalType: _microseconds})
