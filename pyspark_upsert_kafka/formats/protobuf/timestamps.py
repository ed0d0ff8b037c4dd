"""Timestamps and durations: seconds and nanoseconds in the ranges that protobuf defines.

How they are read, as a value and as a column, and how they are written. Source: timestamp.proto and duration.proto.
Spark has microseconds; finer is cut off, as its ``from_protobuf`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import IntegerType, LongType, StructType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, varints
from pyspark_upsert_kafka.formats.binary.message_buffer import MessageBuffer
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.protobuf.column_builders import Built, Read, Value
from pyspark_upsert_kafka.formats.protobuf.columns import TIMESTAMP, Column, columns_of
from pyspark_upsert_kafka.formats.protobuf.numbers import to_numpy
from pyspark_upsert_kafka.formats.protobuf.wire import with_tag

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


def _meaning(column: Column) -> SecondsAndNanos:
    return TIMESTAMPS if column.field.message_type.full_name == TIMESTAMP else DURATIONS


def value_reader(column: Column) -> Callable[[Any], int]:
    """Compiles the conversion from a message of the runtime to microseconds; it raises UnreadableError."""
    timestamps = _meaning(column)

    def read(message: Any) -> int:
        seconds, nanos = message.seconds, message.nanos
        micros = timestamps.micros_of(seconds, nanos)
        if micros is not None:
            return micros
        raise UnreadableError(
            f"field '{column.path}': {seconds} seconds and {nanos} nanoseconds are not valid; "
            f"expected {timestamps.expected}"
        )

    return read


def fields_of(column: Column) -> tuple[Column, ...]:
    """The seconds and nanoseconds of the column's message, as columns of BIGINT and INT."""
    return columns_of(
        column.field.message_type, _SECONDS_AND_NANOS, f"{column.path}.", defaults=True
    )


def column_reader(column: Column, kind: pa.DataType, read: Read) -> Value:
    """Compiles the conversion from messages to a column, given what reads the fields that `fields_of` has."""
    timestamps = _meaning(column)

    def value(buffer: MessageBuffer, starts: np.ndarray, lengths: np.ndarray) -> Built:
        (seconds, nanos), fallback = read(buffer, starts, starts + lengths)
        micros, good = timestamps.micros(seconds.to_numpy(), nanos.to_numpy().astype(np.int64))
        return pa.array(micros).view(kind), fallback | ~good

    return value


def message_parts(column: Column, array: pa.Array) -> ByteParts:
    """Timestamps or durations as the fields of their message. Raises EncodeError."""
    timestamps = _meaning(column)
    seconds, nanos, good = timestamps.split(to_numpy(array.cast(pa.int64())))
    if not good.all():
        raise EncodeError(
            column.path, f"{array[int(np.argmin(good))]}: expected {timestamps.expected}"
        )
    return [
        part
        for tag, numbers in ((_SECONDS_TAG, seconds), (_NANOS_TAG, nanos))
        for part in with_tag(tag, varints(numbers), numbers != 0)
    ]
