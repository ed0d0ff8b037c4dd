"""The fast way to read: the columns of a whole batch at once, but for the odd messages in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StructType

from pyspark_upsert_kafka.formats.bytewise.octets import MOST, Octets
from pyspark_upsert_kafka.formats.protobuf.columns import Column, columns_of
from pyspark_upsert_kafka.formats.protobuf.kinds import Kind
from pyspark_upsert_kafka.formats.protobuf.layout import Layout
from pyspark_upsert_kafka.formats.protobuf.moments import DURATIONS, TIMESTAMPS
from pyspark_upsert_kafka.formats.protobuf.placing import Build, Value, array, entries, one
from pyspark_upsert_kafka.formats.protobuf.required import required_names
from pyspark_upsert_kafka.formats.protobuf.scanning import Scan
from pyspark_upsert_kafka.formats.protobuf.types import TIMESTAMP
from pyspark_upsert_kafka.formats.protobuf.unread import Check, Read, checker
from pyspark_upsert_kafka.formats.protobuf.values import (
    Built,
    all_good,
    number_builder,
    struct,
)

_SECONDS_AND_NANOS = StructType().add("seconds", LongType()).add("nanos", IntegerType())


def columnar_reader(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType]
) -> Callable[[Sequence[bytes]], tuple[list[pa.Array], np.ndarray] | None]:
    """Compiles the fast way to read messages: their columns, and which of them are odd.

    What a column has for an odd message is without meaning. None: there is too much to read at once.
    """
    read = _message(descriptor, columns, kinds, ())

    def read_all(messages: Sequence[bytes]) -> tuple[list[pa.Array], np.ndarray] | None:
        octets = Octets.of(messages)
        if octets.data.size > MOST:
            return None
        return read(octets, octets.bounds[:-1], octets.bounds[1:])

    return read_all


def _message(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], above: tuple[Any, ...]
) -> Read:
    within, layout = (*above, descriptor), Layout.of(descriptor)
    builders = {
        column.name: _field(column, kind, within)
        for column, kind in zip(columns, kinds, strict=True)
    }
    required = required_names(descriptor)
    checks: dict[str, Check] = {
        field.name: checker(field, within, lambda part, above: _message(part, (), (), above))
        for field in descriptor.fields
        if field.name not in builders
    }

    def read(
        octets: Octets, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray]:
        scan = Scan(layout, octets, starts, ends)
        odd, arrays = scan.odd, {}
        for slot in scan.slots:
            name = slot.field.name
            if name in required:
                odd |= ~slot.present
            if name in builders:
                arrays[name], bad = builders[name](octets, slot, starts)
                odd |= bad
            elif slot.chunks:
                odd[checks[name](octets, slot)] = True
        return [arrays[name] for name in builders], odd

    return read


def _field(column: Column, kind: pa.DataType, above: tuple[Any, ...]) -> Build:
    if isinstance(column.type, ArrayType):
        return array(column, kind, _value(column.parts[0], kind.value_type, above))
    if isinstance(column.type, MapType):
        kinds = (kind.key_type, kind.item_type)
        return entries(
            column, kind, _message(column.field.message_type, column.parts, kinds, above)
        )
    return one(column, kind, _value(column, kind, above))


def _value(column: Column, kind: pa.DataType, above: tuple[Any, ...]) -> Value:
    """Compiles the way from slices, or from numbers, to values that are there."""
    if isinstance(column.type, StructType):
        read = _message(
            column.field.message_type, column.parts, [each.type for each in kind], above
        )
        return lambda octets, starts, lengths: _struct(
            kind, *read(octets, starts, starts + lengths)
        )
    if column.field.type == Kind.MESSAGE:
        return _moment(column, kind, above)
    if column.field.type == Kind.STRING:
        return lambda octets, starts, lengths: octets.texts(starts, starts + lengths)
    if column.field.type == Kind.BYTES:
        return lambda octets, starts, lengths: all_good(octets.slices(starts, starts + lengths))
    build = number_builder(column)
    return lambda _, raw, __: build(raw)


def _struct(kind: pa.DataType, children: list[pa.Array], odd: np.ndarray) -> Built:
    return struct(kind, children, np.ones(len(odd), np.bool_)), odd


def _moment(column: Column, kind: pa.DataType, above: tuple[Any, ...]) -> Value:
    descriptor = column.field.message_type
    moments = TIMESTAMPS if descriptor.full_name == TIMESTAMP else DURATIONS
    parts = columns_of(descriptor, _SECONDS_AND_NANOS, f"{column.path}.", defaults=True)
    read = _message(descriptor, parts, (pa.int64(), pa.int32()), above)

    def value(octets: Octets, starts: np.ndarray, lengths: np.ndarray) -> Built:
        (seconds, nanos), odd = read(octets, starts, starts + lengths)
        micros, good = moments.micros(seconds.to_numpy(), nanos.to_numpy().astype(np.int64))
        return pa.array(micros).view(kind), odd | ~good

    return value
