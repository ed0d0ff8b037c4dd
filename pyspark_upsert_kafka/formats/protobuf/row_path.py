"""The row path: one message to the values of its row, or to what is wrong with it.

The protobuf runtime parses the message; the columns are compiled into functions that take values out
of it. What an absent field is follows Flink's ``PbCodegenRowDeserializer``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.decoded_values import enum_names
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_class, parse
from pyspark_upsert_kafka.formats.protobuf.kinds import Kind
from pyspark_upsert_kafka.formats.protobuf.required import what_is_missing
from pyspark_upsert_kafka.formats.protobuf.timestamps import DURATIONS, TIMESTAMPS
from pyspark_upsert_kafka.formats.protobuf.types import TIMESTAMP
from pyspark_upsert_kafka.formats.simple_types import BITS

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
            raise UnreadableError(what_is_missing(message))
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
    if column.field.type == Kind.MESSAGE:
        return _timestamp(column)
    if column.field.type == Kind.STRING:
        return _string(column)
    if column.field.type == Kind.ENUM and isinstance(column.type, StringType):
        names = enum_names(column.field.enum_type)
        return lambda number: names.get(number) or str(number)
    if isinstance(column.type, DecimalType):
        return Decimal
    return _integer(column) if type(column.type) in BITS else lambda value: value


def _integer(column: Column) -> Reader:
    bound = 1 << (BITS[type(column.type)] - 1)

    def read(value: int) -> int:
        if -bound <= value < bound:
            return value
        raise UnreadableError(
            f"field '{column.path}': {value} does not fit into {column.type.simpleString().upper()}"
        )

    return read


def _string(column: Column) -> Reader:
    def read(value: Any) -> str:
        # A proto2 string that is not UTF-8 is given as bytes.
        if type(value) is str:
            return value
        raise UnreadableError(f"field '{column.path}' is a string, but not UTF-8")

    return read


def _timestamp(column: Column) -> Reader:
    timestamps = TIMESTAMPS if column.field.message_type.full_name == TIMESTAMP else DURATIONS

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
