"""The row path: one message to the values of its row, or to what is wrong with it.

The protobuf runtime parses the message; the columns are compiled into functions that take values out
of it. What an absent field is follows Flink's ``PbCodegenRowDeserializer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    Kind,
    enum_names,
    is_map,
    is_repeated,
    is_required,
    message_class,
    parse,
)
from pyspark_upsert_kafka.formats.protobuf.field_types import Column, moments_of

_UNNAMED = "required fields are missing"
# The number of missing fields that are looked for; a message may lack millions.
_NAMED = 10

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
    if kind == Kind.MESSAGE:
        return _moment(column)
    if kind == Kind.STRING:
        return _text(column)
    if kind == Kind.BYTES:
        return bytes
    return _number(column)


def _number(column: Column) -> Reader:
    if column.field.type == Kind.ENUM and isinstance(column.type, StringType):
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
