"""The row path: one message to the values of its row, or to what is wrong with it; and how much memory messages take.

The protobuf runtime parses the message; the columns are compiled into functions that take values out
of it. What an absent field is follows Flink's ``PbCodegenRowDeserializer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

from pyspark_upsert_kafka.formats.decoded_size import MAX_ROW_BYTES, Items, Measure, item_bytes
from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    END_GROUP,
    FIXED64,
    LENGTH,
    START_GROUP,
    VARINT,
    FieldKind,
    enum_names,
    is_map,
    is_repeated,
    is_required,
    message_class,
    parse,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.field_scan import MORE, read_length, read_varint
from pyspark_upsert_kafka.formats.protobuf.field_types import Column, moments_of

_UNNAMED = "required fields are missing"
# The number of missing fields that are looked for; a message may lack millions.
_NAMED = 10

# What the runtime keeps of a message, and of each of its fields: a text has the most.
_MESSAGE, _FIELD = 16, 16
# A message within another takes two bytes at least: a tag, and no length.
_LEAST = 2
# A number among others takes one byte, and while it is read some numbers that tell where it stands.
_READ = 16

Reader = Callable[[Any], Any]
"""A message to the value of one of its fields, or a value of the runtime to one of Arrow."""


def row_reader(descriptor: Any, columns: Sequence[Column]) -> Callable[[bytes], Sequence[Any]]:
    """Compiles the function from a message to its row; it raises UnreadableError."""
    message_type = message_class(descriptor)
    readers = [_field(column) for column in columns]

    def row(data: bytes) -> Sequence[Any]:
        try:
            message = parse(message_type, data)
        except ValueError as why:
            raise UnreadableError(str(why)) from None
        if not message.IsInitialized():
            raise UnreadableError(_what_is_missing(message))
        return [read(message) for read in readers]

    return row


def _field(column: Column) -> Reader:
    name = column.name
    if isinstance(column.type, ArrayType):
        return _array(column, _value(column.parts[0]))
    if isinstance(column.type, MapType):
        return _map(column)
    value = _value(column)
    if column.fills:
        return lambda message: value(getattr(message, name))
    null = partial(RowField(column.path, column.nullable).null, "missing")
    return lambda message: value(getattr(message, name)) if message.HasField(name) else null()


def _array(column: Column, element: Reader) -> Reader:
    name = column.name
    empty: list[Any] | None = [] if column.fills else None

    def read(message: Any) -> list[Any] | None:
        return [element(item) for item in getattr(message, name)] or empty

    return read


def _map(column: Column) -> Reader:
    name = column.name
    empty: list[Any] | None = [] if column.fills else None
    key, value = (_value(part) for part in column.parts)

    def read(message: Any) -> list[Any] | None:
        try:
            entries = sorted(getattr(message, name).items(), key=lambda entry: entry[0])
        except UnicodeDecodeError:  # a proto2 string that is not UTF-8
            raise UnreadableError(f"field '{column.path}' has a string that is not UTF-8") from None
        return [(key(k), value(v)) for k, v in entries] or empty

    return read


def _value(column: Column) -> Reader:
    """Compiles the function for one value that is there."""
    if isinstance(column.type, StructType):
        readers = [_field(part) for part in column.parts]
        # A tuple takes a third of what a dict does: a message of 10 MB may hold millions.
        return lambda message: tuple([read(message) for read in readers])
    kind = column.field.type
    if kind == FieldKind.MESSAGE:
        return _moment(column)
    if kind == FieldKind.STRING:
        return _text(column)
    if kind == FieldKind.BYTES:
        return bytes
    return _number(column)


def _number(column: Column) -> Reader:
    if column.field.type == FieldKind.ENUM and isinstance(column.type, StringType):
        names = enum_names(column.field.enum_type)
        return lambda number: names.get(number) or str(number)  # one that has no name is its digits
    if isinstance(column.type, DecimalType):
        return Decimal
    return _integer(column) if type(column.type) in BITS else lambda value: value


def _text(column: Column) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        # A proto2 string that is not UTF-8 is given as bytes.
        if type(value) is str:
            return value
        raise UnreadableError(f"field '{column.path}' is a string, but not UTF-8")

    return read


def _integer(column: Column) -> Callable[[int], int]:
    bound = 1 << (BITS[type(column.type)] - 1)

    def read(value: int) -> int:
        if -bound <= value < bound:
            return value
        raise UnreadableError(
            f"field '{column.path}': {value} does not fit into {column.type.simpleString().upper()}"
        )

    return read


def _moment(column: Column) -> Callable[[Any], int]:
    """Compiles the conversion from a message of the runtime to microseconds."""
    within = moments_of(column)

    def read(message: Any) -> int:
        seconds, nanos = message.seconds, message.nanos
        micros = within.micros_of(seconds, nanos)
        if micros is not None:
            return micros
        raise UnreadableError(
            f"field '{column.path}': {seconds} seconds and {nanos} nanoseconds are not valid; "
            f"expected {within.expected}"
        )

    return read


def _what_is_missing(message: Any) -> str:
    """What is said of a message that lacks required fields.

    The runtime's own list, ``FindInitializationErrors()``, is never asked for: where a message holds a map
    of numbers or texts, upb loses count of where it stands, and a second map that it meets can end the
    process (seen with protobuf 5.26 to 7.36). ``IsInitialized()`` keeps no such count.
    """
    names = dict.fromkeys(islice(_missing(message, ""), _NAMED))
    # None is found when it is an extension that lacks them.
    return f"{_UNNAMED}: {', '.join(names)}" if names else _UNNAMED


def _missing(message: Any, path: str) -> Iterator[str]:
    for field in message.DESCRIPTOR.fields:
        if is_required(field) and not message.HasField(field.name):
            yield path + field.name
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            name, parts = _parts(message, field)
            for part in parts:
                yield from _missing(part, f"{path}{name}.")


def _parts(message: Any, field: Any) -> tuple[str, Iterable[Any]]:
    """What a field with messages is called, and the messages in it."""
    value = getattr(message, field.name)
    if is_map(field):
        has_messages = field.message_type.fields_by_name["value"].message_type is not None
        return f"{field.name}{{}}", _values(value) if has_messages else ()
    if is_repeated(field):
        return f"{field.name}[]", value
    return field.name, [value] if message.HasField(field.name) else ()


def _values(entries: Any) -> Iterator[Any]:
    try:
        yield from entries.values()
    except UnicodeDecodeError:
        return  # a key that is not UTF-8: proto2 lets it pass, but it cannot be had


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
    """Compiles how much memory messages of one kind take: two bytes may become a very wide message within a message.

    The runtime keeps room for every field of a message that it reads, whether it is a column or not.

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
    if column.field.type == FieldKind.ENUM:
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
