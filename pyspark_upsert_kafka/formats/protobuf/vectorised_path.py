"""The vectorised path to read: the columns of a whole batch at once, but for those that fall back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructType

from pyspark_upsert_kafka.formats.binary.message_buffer import MOST, MessageBuffer
from pyspark_upsert_kafka.formats.protobuf import enums, numbers, timestamps
from pyspark_upsert_kafka.formats.protobuf.column_builders import (
    Build,
    Built,
    Read,
    Value,
    all_good,
    array,
    entries,
    one,
    struct,
)
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    is_repeated,
    is_required,
    required_names,
)
from pyspark_upsert_kafka.formats.protobuf.layout import Layout
from pyspark_upsert_kafka.formats.protobuf.occurrences import every
from pyspark_upsert_kafka.formats.protobuf.scanning import Scan, Slot
from pyspark_upsert_kafka.formats.protobuf.wire import Kind

Check = Callable[[MessageBuffer, Slot], np.ndarray]
"""From what was found of a field to the messages that fall back to the row path because of it."""

_NONE = np.empty(0, np.int64)
# The runtime reads messages no deeper than 100.
_DEEPEST = 90


def compile_vectorised_path(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], skip: int = 0
) -> Callable[[Sequence[bytes]], tuple[list[pa.Array], np.ndarray] | None]:
    """Compiles the vectorised path to read messages: their columns, and which of them fall back to the row path.

    What a column has for such a message has no meaning. The function returns None when there is too much to read at
    once.

    Args:
        descriptor: The message's descriptor.
        columns: The columns.
        kinds: Their types.
        skip: How many bytes stand before each message.
    """
    read = _message(descriptor, columns, kinds, ())

    def read_all(messages: Sequence[bytes]) -> tuple[list[pa.Array], np.ndarray] | None:
        buffer = MessageBuffer.of(messages)
        if buffer.data.size > MOST:
            return None
        return read(buffer, buffer.bounds[:-1] + skip, buffer.bounds[1:])

    return read_all


@dataclass(frozen=True)
class _MessageReader:
    layout: Layout
    required: frozenset[str]
    builders: Mapping[str, Build]
    checks: Mapping[str, Check]

    def read(
        self, buffer: MessageBuffer, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray]:
        scan = Scan(self.layout, buffer, starts, ends)
        fallback, arrays = scan.fallback, {}
        for slot in scan.slots:
            name = slot.field.name
            if name in self.required:
                fallback |= ~slot.present
            if name in self.builders:
                arrays[name], bad = self.builders[name](buffer, slot, starts)
                fallback |= bad
            elif slot.chunks:
                fallback[self.checks[name](buffer, slot)] = True
        return [arrays[name] for name in self.builders], fallback


def _message(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], above: tuple[Any, ...]
) -> Read:
    within = (*above, descriptor)
    builders = {
        column.name: _field(column, kind, within)
        for column, kind in zip(columns, kinds, strict=True)
    }
    checks = {
        field.name: _check(field, within)
        for field in descriptor.fields
        if field.name not in builders
    }
    reader = _MessageReader(Layout.of(descriptor), required_names(descriptor), builders, checks)
    return reader.read


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
    """Compiles the conversion from slices, or from numbers, to values that are there."""
    if isinstance(column.type, StructType):
        read = _message(
            column.field.message_type, column.parts, [each.type for each in kind], above
        )
        return lambda buffer, starts, lengths: _struct(
            kind, *read(buffer, starts, starts + lengths)
        )
    if column.field.type == Kind.MESSAGE:
        fields, kinds = timestamps.fields_of(column), (pa.int64(), pa.int32())
        read = _message(column.field.message_type, fields, kinds, above)
        return timestamps.column_reader(column, kind, read)
    if column.field.type == Kind.STRING:
        return lambda buffer, starts, lengths: buffer.texts(starts, starts + lengths)
    if column.field.type == Kind.BYTES:
        return lambda buffer, starts, lengths: all_good(buffer.slices(starts, starts + lengths))
    leaf = enums if column.field.type == Kind.ENUM else numbers
    build = leaf.column_reader(column)
    return lambda _, raw, __: build(raw)


def _struct(kind: pa.DataType, children: list[pa.Array], fallback: np.ndarray) -> Built:
    return struct(kind, children, np.ones(len(fallback), np.bool_)), fallback


def _check(field: Any, above: tuple[Any, ...]) -> Check:
    """Compiles the check of a field that is no column: the runtime reads it too, and a message with a bad one is bad."""
    if field.type == Kind.STRING:
        return _strings
    if field.type == Kind.ENUM and field.enum_type.is_closed and is_required(field):
        return _known_numbers(field.enum_type)
    if field.type != Kind.MESSAGE:
        return lambda buffer, slot: every(buffer, slot).fallback if is_repeated(field) else _NONE
    part = field.message_type
    if part in above or len(above) > _DEEPEST:
        return lambda _, slot: np.flatnonzero(slot.present)
    compiled = cache(lambda: _message(part, (), (), above))

    def check(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
        found = every(buffer, slot)
        _, fallback = compiled()(buffer, found.values, found.values + found.lengths)
        return found.rows[fallback]

    return check


def _known_numbers(enum: Any) -> Check:
    """A number that the enum does not have is an unknown field to the runtime, and so the field is missing."""
    find = enums.finder(enum)

    def check(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
        found = every(buffer, slot)
        _, unknown = find(numbers.meaning(Kind.ENUM, found.values))
        rows: np.ndarray = found.rows[unknown]
        return rows

    return check


def _strings(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
    found = every(buffer, slot)
    _, bad = buffer.texts(found.values, found.values + found.lengths)
    return found.rows[bad]
