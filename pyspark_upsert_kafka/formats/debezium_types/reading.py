"""How a field of a semantic type is read into a column: its physical type, and the way from there to the column's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
)

from pyspark_upsert_kafka.formats.binary.numbers import Numbers

WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class Reading:
    """How a field is read.

    Args:
        physical: The type as which the plain decoder reads it.
        column: A column of that type to one of the table's; ValueError = it refuses one of the values. None = it
            refuses all.
        value: A value that is not null, as Arrow gives it to Python, to one that ``pyarrow.array`` takes; ValueError =
            it is bad. None = the column of the physical type is the table's.
    """

    physical: DataType
    column: Callable[[pa.Array], pa.Array] | None = None
    value: Callable[[Any], Any] | None = None


def plain(wanted: DataType) -> Reading:
    """The plain decoder reads the column as it is wanted."""
    return Reading(wanted)


def calculated(
    array: pa.Array, change: Callable[[Numbers], Numbers], kind: pa.DataType
) -> pa.Array:
    """Numbers that NumPy makes of the numbers of a column, in a type of as many bits."""
    numbers = change(array.fill_null(0).to_numpy(zero_copy_only=False))
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(numbers, mask=nulls if nulls.any() else None).cast(kind)


def fitting(number: int, kind: str, bits: int = 64) -> int:
    """The number. Raises ValueError when it has no room in so many bits."""
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"out of range of {kind}")
    return number


def timestamp_type(zoned: bool) -> pa.DataType:
    """Spark's TIMESTAMP or TIMESTAMP_NTZ."""
    return pa.timestamp("us", "UTC") if zoned else pa.timestamp("us")
