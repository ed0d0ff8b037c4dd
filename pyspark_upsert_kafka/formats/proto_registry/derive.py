"""The Protobuf schema that columns mean when none is given: that of Confluent's Flink, where values are the same.

The message is called ``Row``, and its fields have the numbers of the columns' places, from 1 on. What may be NULL is
``optional``.

========================== ======================================
Spark                      Protobuf
========================== ======================================
BOOLEAN                    bool
BYTE, SHORT, INT           int32
LONG                       int64
FLOAT, DOUBLE              float, double
STRING, BINARY             string, bytes
DECIMAL(20, 0)             uint64
TIMESTAMP                  google.protobuf.Timestamp
INTERVAL DAY TO SECOND     google.protobuf.Duration
ARRAY                      repeated
MAP                        map
STRUCT                     a message within, ``<column>_Row``
========================== ======================================

Anything else is refused, as the format ``protobuf`` refuses it. Confluent's Flink has messages around arrays and
maps that may be NULL, and around elements; here an empty array is NULL, as in that format.
Source: https://docs.confluent.io/cloud/current/flink/reference/serialization.html
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.proto_registry.proto_schema import (
    OPTIONAL,
    REPEATED,
    ProtoSchema,
    imported_files,
)
from pyspark_upsert_kafka.formats.protobuf.columns import DURATION, TIMESTAMP
from pyspark_upsert_kafka.formats.protobuf.wire import Kind

_PACKAGE, _MESSAGE = "io.confluent.protobuf.generated", "Row"

_SIMPLE: dict[type[DataType], Kind] = {
    BinaryType: Kind.BYTES,
    BooleanType: Kind.BOOL,
    ByteType: Kind.INT32,
    DoubleType: Kind.DOUBLE,
    FloatType: Kind.FLOAT,
    IntegerType: Kind.INT32,
    LongType: Kind.INT64,
    ShortType: Kind.INT32,
    StringType: Kind.STRING,
}
_MESSAGES: dict[type[DataType], str] = {TimestampType: TIMESTAMP, DayTimeIntervalType: DURATION}
_KEYS = (Kind.BOOL, Kind.INT32, Kind.INT64, Kind.STRING, Kind.UINT64)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def derived_schema(columns: StructType, required: frozenset[str]) -> ProtoSchema:
    """The schema of messages with these columns.

    Args:
        columns: The columns.
        required: Those that are never null, whatever the columns say: the primary key.

    Raises:
        SchemaError: Protobuf has no type for a column, or cannot have its name.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(name="derived.proto", package=_PACKAGE, syntax="proto3")
    add_message(file.message_type, f".{_PACKAGE}.{_MESSAGE}", columns, required=required)
    files = imported_files(file)
    file.dependency.extend(each.name for each in files)
    return ProtoSchema("The schema derived from the columns", [*files, file])


def add_field(message: Any, scope: str, column: StructField, number: int, path: str) -> Any:
    """Adds a column's field to a message, and the messages that it needs within that.

    Args:
        message: The ``DescriptorProto``.
        scope: The message's full name, with a point before it.
        column: The column.
        number: The field's number.
        path: Where the column stands, for people.

    Returns:
        Its ``FieldDescriptorProto``.

    Raises:
        SchemaError: Protobuf has no type for the column, or cannot have its name.
    """
    if not _NAME.fullmatch(column.name):
        raise SchemaError(
            f"Column {path!r} cannot be a field of a protobuf message: its name must be made of letters, "
            "digits and '_', and not begin with a digit."
        )
    field = message.field.add(name=column.name, number=number, label=OPTIONAL)
    kind = column.dataType
    if isinstance(kind, ArrayType):
        field.label = REPEATED
        _set_type(field, kind.elementType, message, scope, f"{path}[]")
    elif isinstance(kind, MapType):
        field.label, field.type = REPEATED, Kind.MESSAGE
        field.type_name = _add_entry(message, scope, column.name, kind, path)
    else:
        _set_type(field, kind, message, scope, path)
    return field


def _set_type(field: Any, kind: DataType, message: Any, scope: str, path: str) -> None:
    """The type of one value."""
    if isinstance(kind, StructType):
        field.type = Kind.MESSAGE
        name = f"{scope}.{field.name}_Row"
        field.type_name = add_message(message.nested_type, name, kind, path)
    elif type(kind) in _MESSAGES:
        field.type, field.type_name = Kind.MESSAGE, f".{_MESSAGES[type(kind)]}"
    elif kind == DecimalType(20, 0):
        field.type = Kind.UINT64
    elif type(kind) in _SIMPLE:
        field.type = _SIMPLE[type(kind)]
    else:
        raise SchemaError(
            f"Protobuf has no type for column {path!r}, {kind.simpleString().upper()}."
        )


def add_message(
    messages: Any,
    full_name: str,
    columns: StructType,
    path: str = "",
    required: frozenset[str] = frozenset(),
) -> str:
    """Adds a message with these columns to others of a scope.

    Args:
        messages: Those of the scope.
        full_name: Its full name, with a point before it.
        columns: The columns.
        path: Where the column stands that holds the message, for people; empty = it is no column's.
        required: Columns that are never null, whatever the columns say.

    Returns:
        Its full name.

    Raises:
        SchemaError: Protobuf has no type for a column, or cannot have its name.
    """
    message = messages.add(name=full_name.rpartition(".")[2])
    above = f"{path}." if path else ""
    optional = []
    for number, column in enumerate(columns.fields, 1):
        field = add_field(message, full_name, column, number, above + column.name)
        if column.nullable and column.name not in required and field.label != REPEATED:
            optional.append(field)
    _check_names(message, path)
    make_optional(message, optional)
    return full_name


def _check_names(message: Any, path: str) -> None:
    """The runtime lets a field have the name of a message within, which protoc does not."""
    names = [each.name for each in (*message.field, *message.nested_type)]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        where = f"column {path!r}" if path else "the columns"
        raise SchemaError(
            f"The protobuf message of {where} would have the name {twice[0]!r} for two things: a field, or the "
            "message of a STRUCT ('<column>_Row') or of a MAP ('<Column>Entry'). Rename the column."
        )


def make_optional(message: Any, fields: list[Any]) -> None:
    """Makes fields of a proto3 message ``optional``, as protoc does it."""
    taken = {each.name for each in (*message.field, *message.oneof_decl)}
    for field in fields:
        oneof = f"_{field.name}"
        while oneof in taken:
            oneof = f"X{oneof}"
        taken.add(oneof)
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=oneof)


def _add_entry(message: Any, scope: str, name: str, kind: MapType, path: str) -> str:
    """The message of a map's entries, under the only name that Protobuf allows for it."""
    entry_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
    entry, within = message.nested_type.add(name=entry_name), f"{scope}.{entry_name}"
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=OPTIONAL)
    value = entry.field.add(name="value", number=2, label=OPTIONAL)
    _set_type(key, kind.keyType, entry, within, f"{path}{{key}}")
    if key.type not in _KEYS:
        raise SchemaError(
            f"Protobuf has no maps with keys of the type {kind.keyType.simpleString().upper()} (column "
            f"{path!r})."
        )
    value_kind = kind.valueType
    if isinstance(value_kind, StructType):
        # protoc wants the message outside of the entry, which has no text of its own.
        value.type = Kind.MESSAGE
        value_name = f"{scope}.{name}_Row"
        value.type_name = add_message(message.nested_type, value_name, value_kind, f"{path}{{}}")
    else:
        _set_type(value, value_kind, entry, within, f"{path}{{}}")
    return within
