"""How many bytes the items of messages are decoded to: two bytes may become a very wide message within a message.

The runtime keeps room for every field of a message that it reads, whether it is a column or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, MapType, StructType

from pyspark_upsert_kafka.core.bytes_column import total_size
from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES, MAX_ROW_BYTES
from pyspark_upsert_kafka.formats.decoded_size import item_bytes
from pyspark_upsert_kafka.formats.protobuf.column_builders import default_of
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.descriptors import enum_names
from pyspark_upsert_kafka.formats.protobuf.wire import (
    END_GROUP,
    FIXED64,
    LENGTH,
    MORE,
    START_GROUP,
    VARINT,
    Kind,
    read_length,
    read_varint,
    wire_type,
)

# What the runtime keeps of a message, and of each of its fields: a text has the most.
_MESSAGE, _FIELD = 16, 16
# A message within another takes two bytes at least: a tag, and no length.
_LEAST = 2
# A number among others takes one byte, and while it is read some numbers that tell where it stands.
_READ = 16


def constant_bytes(columns: Iterable[Column]) -> int:
    """The bytes that a row gets at most although its message does not hold them: names of enums, and long defaults."""
    return sum(map(_constant, columns))


def _constant(column: Column) -> int:
    if isinstance(column.type, ArrayType | MapType):
        return 0
    if isinstance(column.type, StructType):
        return constant_bytes(column.parts)
    if column.field.type == Kind.ENUM:
        return max(map(len, enum_names(column.field.enum_type).values()))
    default = default_of(column) if column.field.has_presence and column.fills else None
    return len(default) if isinstance(default, str | bytes) else 0


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


class _Widths:
    """What messages within messages take at most, by the bytes with which their tags begin."""

    def __init__(self) -> None:
        self._of_byte: dict[int, float] = {}
        self.widest = 0.0

    def add(self, number: int, size: float) -> None:
        """Adds a field."""
        for wire in (LENGTH, START_GROUP):
            tag = number << 3 | wire
            # A tag may be spelt with more bytes than it needs.
            for first in {min(tag, tag & 0xFF | MORE), tag & 0xFF | MORE}:
                self._of_byte[first] = max(size, self._of_byte.get(first, 0))
        self.widest = max(self.widest, size)

    def at_most(self, messages: Sequence[bytes], size: int) -> float:
        """What there may be in some messages, given their size in bytes."""
        most = self.widest * size / _LEAST
        if most <= MAX_HELD_BYTES:
            return most
        text = np.frombuffer(b"".join(messages), np.uint8)
        counted = (width * np.count_nonzero(text == byte) for byte, width in self._of_byte.items())
        return min(most, float(sum(counted)))


class ItemSizes:
    """What the items of messages of one kind take.

    Args:
        descriptor: The message's ``google.protobuf.descriptor.Descriptor``.
        columns: The columns.
        kinds: Their types.
        skip: How many bytes stand before the message.
    """

    def __init__(
        self, descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], skip: int
    ) -> None:
        self._top, self._skip = descriptor.full_name, skip
        self._fields = _fields(descriptor, _selected(columns, kinds))
        self._columns, self._reading, self._values = _Widths(), _Widths(), 0.0
        for number, field in (each for some in self._fields.values() for each in some.items()):
            if field.message is None:
                self._values = max(self._values, field.size, _READ)
                continue
            self._reading.add(number, field.read)
            if field.size:
                self._columns.add(number, field.size)

    def at_most(self, messages: Sequence[bytes]) -> float:
        """What the items of messages take at most: together in columns, and one by one while they are read."""
        if not self._values and not self._reading.widest:
            return 0
        size = total_size(messages)
        most = self._reading.widest * size / _LEAST
        if most > MAX_HELD_BYTES:
            enough = MAX_HELD_BYTES * _LEAST / self._reading.widest
            large = [message for message in messages if len(message) > enough]
            sizes = (self._reading.at_most([message], len(message)) for message in large)
            most = max(sizes, default=0)
        return self.in_columns(messages, size) + (
            most if len(messages) == 1 or most > MAX_HELD_BYTES else 0
        )

    def in_columns(self, messages: Sequence[bytes], size: int) -> float:
        """What the items of messages take at most in columns, given the size of the messages in bytes."""
        return self._values * size + self._columns.at_most(messages, size)

    def of_one(self, message: bytes) -> float:
        """What the items of one message take; counting stops when it is too much, and where the bytes are no message."""
        size = 0.0
        above: list[tuple[dict[int, _Field], int]] = []
        fields, at, end = self._fields[self._top], self._skip, len(message)
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
                    size += (field.size + field.read) * _count(
                        field, wire, message[at : at + taken]
                    )
                if wire == START_GROUP or (wire == LENGTH and field and field.message):
                    above.append((fields, end))
                    fields = self._fields[field.message] if field and field.message else {}
                    end = at + taken if wire == LENGTH else end
                else:
                    at += taken
        except IndexError:
            pass
        return size


def _selected(columns: Sequence[Column], kinds: Sequence[pa.DataType]) -> dict[str, float]:
    """By the full names of fields that are arrays or maps, what an item takes in a column."""
    found: dict[str, float] = {}
    for column, kind in zip(columns, kinds, strict=True):
        if isinstance(column.type, StructType):
            inner = _selected(column.parts, [part.type for part in kind])
        elif isinstance(column.type, ArrayType | MapType):
            size = item_bytes(kind) + constant_bytes(column.parts)
            entry = kind.field(0).type
            parts = list(entry) if isinstance(column.type, MapType) else [kind.field(0)]
            inner = _selected(column.parts, [part.type for part in parts])
            inner[column.field.full_name] = max(size, inner.get(column.field.full_name, 0))
        else:
            continue
        for name, size in inner.items():
            found[name] = max(size, found.get(name, 0))
    return found


def _fields(descriptor: Any, selected: dict[str, float]) -> dict[str, dict[int, _Field]]:
    """By the full names of messages their fields with items, by their numbers."""
    found: dict[str, dict[int, _Field]] = {}
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        if message.full_name in found:
            continue
        found[message.full_name] = fields = {}
        for field in message.fields:
            size, inner = selected.get(field.full_name, 0.0), field.message_type
            if inner is not None:
                read = _MESSAGE + _FIELD * len(inner.fields)
                fields[field.number] = _Field(size, read, message=inner.full_name)
                waiting.append(inner)
            elif size:
                wire = wire_type(field.type)
                fields[field.number] = _Field(size, packed=None if wire == LENGTH else wire)
    return found


def _count(field: _Field, wire: int, value: bytes) -> int:
    """How many items a value is."""
    if wire != LENGTH or field.packed is None:
        return 1
    if field.packed == VARINT:
        return int(np.count_nonzero(np.frombuffer(value, np.uint8) < MORE))
    return len(value) // (8 if field.packed == FIXED64 else 4)
