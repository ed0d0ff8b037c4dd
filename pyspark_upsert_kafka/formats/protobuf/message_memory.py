"""How much memory messages take: two bytes may become a very wide message within a message.

The runtime keeps room for every field of a message that it reads, whether it is a column or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructType

from pyspark_upsert_kafka.formats.decoded_size import MAX_ROW_BYTES, Items, Measure, item_bytes
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    END_GROUP,
    FIXED64,
    LENGTH,
    START_GROUP,
    VARINT,
    Kind,
    enum_names,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.field_scan import MORE, read_length, read_varint
from pyspark_upsert_kafka.formats.protobuf.field_types import Column

# What the runtime keeps of a message, and of each of its fields: a text has the most.
_MESSAGE, _FIELD = 16, 16
# A message within another takes two bytes at least: a tag, and no length.
_LEAST = 2
# A number among others takes one byte, and while it is read some numbers that tell where it stands.
_READ = 16


@dataclass(frozen=True)
class _Field:
    """A field with items.

    Args:
        size: What an item takes in a column.
        read: What it takes while a message is read.
        packed: The wire type of numbers, which may stand side by side; None = it has no numbers.
        message: The full name of the messages that are its items; None = it has none.
    """

    size: float
    read: float = 0
    packed: int | None = None
    message: str | None = None

    def count(self, wire: int, value: bytes) -> int:
        """How many items a value is."""
        if wire != LENGTH or self.packed is None:
            return 1
        if self.packed == VARINT:
            return int(np.count_nonzero(np.frombuffer(value, np.uint8) < MORE))
        return len(value) // (8 if self.packed == FIXED64 else 4)


_Fields = dict[str, dict[int, _Field]]
"""By the full names of messages their fields with items, by their numbers."""


def measure_of(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], skip: int
) -> Measure:
    """Compiles how much memory messages of one kind take.

    Args:
        descriptor: The message's ``google.protobuf.descriptor.Descriptor``.
        columns: The columns.
        kinds: Their types.
        skip: How many bytes stand before the message.
    """
    fields = _fields(descriptor, _in_columns(columns, kinds))
    numbers = 0.0
    in_columns: dict[bytes, float] = {}
    while_read: dict[bytes, float] = {}
    for number, field in (each for some in fields.values() for each in some.items()):
        if field.message is None:
            numbers = max(numbers, field.size, _READ)
            continue
        for mark in _marks(number):
            in_columns[mark] = max(field.size, in_columns.get(mark, 0))
            while_read[mark] = max(field.read, while_read.get(mark, 0))
    items, read = (max(each.values(), default=0) / _LEAST for each in (in_columns, while_read))
    return Measure(
        Items(max(numbers, items), in_columns if items else {}, numbers),
        Items(read, while_read),
        partial(_exactly, fields, descriptor.full_name, skip),
        _constants(columns),
    )


def _marks(number: int) -> Iterable[bytes]:
    """The bytes with which the tags of a field's messages begin; a tag may be spelt with more bytes than it needs."""
    for wire in (LENGTH, START_GROUP):
        tag = number << 3 | wire
        yield from {bytes([first]) for first in (min(tag, tag & 0xFF | MORE), tag & 0xFF | MORE)}


def _constants(columns: Iterable[Column]) -> int:
    """The bytes that a row gets at most although its message does not hold them: names of enums, and long defaults."""
    return sum(map(_constant, columns))


def _constant(column: Column) -> int:
    if isinstance(column.type, ArrayType | MapType):
        return 0
    if isinstance(column.type, StructType):
        return _constants(column.parts)
    if column.field.type == Kind.ENUM:
        return max(map(len, enum_names(column.field.enum_type).values()))
    default = column.default if column.field.has_presence and column.fills else None
    return len(default) if isinstance(default, str | bytes) else 0


def _in_columns(columns: Sequence[Column], kinds: Sequence[pa.DataType]) -> dict[str, float]:
    """By the full names of fields that are arrays or maps, what an item takes in a column."""
    found: dict[str, float] = {}
    for column, kind in zip(columns, kinds, strict=True):
        if isinstance(column.type, StructType):
            inner = _in_columns(column.parts, [part.type for part in kind])
        elif isinstance(column.type, ArrayType | MapType):
            size = item_bytes(kind) + _constants(column.parts)
            entry = kind.field(0).type
            parts = list(entry) if isinstance(column.type, MapType) else [kind.field(0)]
            inner = _in_columns(column.parts, [part.type for part in parts])
            inner[column.field.full_name] = max(size, inner.get(column.field.full_name, 0))
        else:
            continue
        for name, size in inner.items():
            found[name] = max(size, found.get(name, 0))
    return found


def _fields(descriptor: Any, in_columns: dict[str, float]) -> _Fields:
    found: _Fields = {}
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        if message.full_name in found:
            continue
        found[message.full_name] = fields = {}
        for field in message.fields:
            size, inner = in_columns.get(field.full_name, 0.0), field.message_type
            if inner is not None:
                read = _MESSAGE + _FIELD * len(inner.fields)
                fields[field.number] = _Field(size, read, message=inner.full_name)
                waiting.append(inner)
            elif size:
                wire = wire_type(field.type)
                fields[field.number] = _Field(size, packed=None if wire == LENGTH else wire)
    return found


def _exactly(fields_of: _Fields, top: str, skip: int, message: bytes) -> float:
    """What the items of one message take; counting stops when it is too much, and where the bytes are no message."""
    size = 0.0
    above: list[tuple[dict[int, _Field], int]] = []
    fields, at, end = fields_of[top], skip, len(message)
    try:
        while size <= MAX_ROW_BYTES:
            while at >= end:
                if not above:
                    return size
                fields, end = above.pop()
            tag, at = read_varint(message, at)
            field, wire = fields.get(tag >> 3), tag & 7
            if wire == END_GROUP:
                fields, end = above.pop()
                continue
            taken, at = read_length(message, at, wire)
            if field is not None:
                size += (field.size + field.read) * field.count(wire, message[at : at + taken])
            if wire == START_GROUP or (wire == LENGTH and field and field.message):
                above.append((fields, end))
                fields = fields_of[field.message] if field and field.message else {}
                end = at + taken if wire == LENGTH else end
            else:
                at += taken
    except IndexError:
        pass
    return size
