"""Fields made of columns: the Protobuf schema that columns mean when none is given, and fields that a writer's schema lacks.

The schema is that of Confluent's Flink, where values are the same.

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

A column that the writer's schema lacks is given a field, so that it is read as NULL. The fields have the highest numbers that
are free, which no message has. Their names begin with ``ADDED``, since a oneof, a type or an enum's value of the message may
have the name of the column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
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
from pyspark_upsert_kafka.formats.protobuf.descriptors import FieldKind
from pyspark_upsert_kafka.formats.protobuf.field_types import ADDED, DURATION, TIMESTAMP
from pyspark_upsert_kafka.formats.protobuf.proto_schema import ProtoSchema

_PACKAGE, _MESSAGE = "io.confluent.protobuf.generated", "Row"

_SIMPLE: dict[type[DataType], FieldKind] = {
    BinaryType: FieldKind.BYTES,
    BooleanType: FieldKind.BOOL,
    ByteType: FieldKind.INT32,
    DoubleType: FieldKind.DOUBLE,
    FloatType: FieldKind.FLOAT,
    IntegerType: FieldKind.INT32,
    LongType: FieldKind.INT64,
    ShortType: FieldKind.INT32,
    StringType: FieldKind.STRING,
}
_MESSAGES: dict[type[DataType], str] = {TimestampType: TIMESTAMP, DayTimeIntervalType: DURATION}
_KEYS = (FieldKind.BOOL, FieldKind.INT32, FieldKind.INT64, FieldKind.STRING, FieldKind.UINT64)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_OPTIONAL, _REPEATED = 1, 3  # FieldDescriptorProto.Label
_EXPLICIT = 1  # FeatureSet.FieldPresence
_HIGHEST = 2**29 - 1
_OF_PROTOBUF = (19_000, 20_000)


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
    _add_message(file.message_type, f".{_PACKAGE}.{_MESSAGE}", columns, required=required)
    files = _google_files_of(file)
    file.dependency.extend(each.name for each in files)
    return ProtoSchema("The schema derived from the columns", [*files, file])


def _add_field(message: Any, scope: str, column: StructField, number: int, path: str) -> Any:
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
    field = message.field.add(name=column.name, number=number, label=_OPTIONAL)
    kind = column.dataType
    if isinstance(kind, ArrayType):
        field.label = _REPEATED
        _set_type(field, kind.elementType, message, scope, f"{path}[]")
    elif isinstance(kind, MapType):
        field.label, field.type = _REPEATED, FieldKind.MESSAGE
        field.type_name = _add_entry(message, scope, column.name, kind, path)
    else:
        _set_type(field, kind, message, scope, path)
    return field


def _set_type(field: Any, kind: DataType, message: Any, scope: str, path: str) -> None:
    """The type of one value."""
    if isinstance(kind, StructType):
        field.type = FieldKind.MESSAGE
        name = f"{scope}.{field.name}_Row"
        field.type_name = _add_message(message.nested_type, name, kind, path)
    elif type(kind) in _MESSAGES:
        field.type, field.type_name = FieldKind.MESSAGE, f".{_MESSAGES[type(kind)]}"
    elif kind == DecimalType(20, 0):
        field.type = FieldKind.UINT64
    elif type(kind) in _SIMPLE:
        field.type = _SIMPLE[type(kind)]
    else:
        raise SchemaError(
            f"Protobuf has no type for column {path!r}, {kind.simpleString().upper()}."
        )


def _add_message(
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
        field = _add_field(message, full_name, column, number, above + column.name)
        if column.nullable and column.name not in required and field.label != _REPEATED:
            optional.append(field)
    _check_names(message, path)
    _make_optional(message, optional)
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


def _make_optional(message: Any, fields: list[Any]) -> None:
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
    key = entry.field.add(name="key", number=1, label=_OPTIONAL)
    value = entry.field.add(name="value", number=2, label=_OPTIONAL)
    _set_type(key, kind.keyType, entry, within, f"{path}{{key}}")
    if key.type not in _KEYS:
        raise SchemaError(
            f"Protobuf has no maps with keys of the type {kind.keyType.simpleString().upper()} (column "
            f"{path!r})."
        )
    value_kind = kind.valueType
    if isinstance(value_kind, StructType):
        # protoc wants the message outside of the entry, which has no text of its own.
        value.type = FieldKind.MESSAGE
        value_name = f"{scope}.{name}_Row"
        value.type_name = _add_message(message.nested_type, value_name, value_kind, f"{path}{{}}")
    else:
        _set_type(value, value_kind, entry, within, f"{path}{{}}")
    return within


def _google_files_of(file: Any) -> list[Any]:
    """The files of the types of Google's own that are used anywhere in a file."""
    from google.protobuf import duration_pb2, timestamp_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    used = {name for message in file.message_type for name in _type_names(message)}
    modules = {DURATION: duration_pb2, TIMESTAMP: timestamp_pb2}
    return [
        FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for name, module in modules.items()
        if f".{name}" in used
    ]


def _type_names(message: Any) -> Iterator[str]:
    yield from (field.type_name for field in message.field)
    for nested in message.nested_type:
        yield from _type_names(nested)


def with_columns(schema: ProtoSchema, name: str, columns: StructType) -> ProtoSchema:
    """A schema whose message has a field for each column.

    Args:
        schema: The schema.
        name: The message's full name.
        columns: The columns.

    Raises:
        SchemaError: Protobuf has no type for a column that is missing.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files = FileDescriptorSet(file=schema.files).file  # copies
    messages = {f".{name}": pair for file in files for name, pair in _messages(file)}
    _complete(messages, f".{name}", columns, "")
    present = {file.name for file in files}
    imported = []
    for file in files:
        for other in _google_files_of(file):
            if other.name not in file.dependency:
                file.dependency.append(other.name)
            if other.name not in present:
                present.add(other.name)
                imported.append(other)
    return ProtoSchema(schema.origin, [*imported, *files])


def _messages(file: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Each message of a file, by its full name, with the file."""
    scope = f"{file.package}." if file.package else ""
    waiting = [(scope + message.name, message) for message in file.message_type]
    while waiting:
        name, message = waiting.pop()
        yield name, (message, file)
        waiting += [(f"{name}.{nested.name}", nested) for nested in message.nested_type]


def _complete(messages: dict[str, Any], name: str, columns: StructType, path: str) -> None:
    """Adds what is missing to a message, and to those within it."""
    message, file = messages[name]
    fields = {field.name: field for field in message.field}
    for column in columns:
        field = fields.get(column.name) or fields.get(ADDED + column.name)
        if field is None:
            _add(message, file, name, column, path + column.name)
        else:
            within = _struct_of(column.dataType)
            inner = _message_of(messages, field)
            if within is not None and inner is not None:
                _complete(messages, inner, within, f"{path}{column.name}.")


def _add(message: Any, file: Any, name: str, column: StructField, path: str) -> None:
    added = StructField(ADDED + column.name, column.dataType)
    field = _add_field(message, name, added, _free_number(message), path)
    if field.label == _REPEATED:
        return
    if file.syntax == "proto3":
        _make_optional(message, [field])
    elif file.syntax == "editions":
        field.options.features.field_presence = _EXPLICIT


def _free_number(message: Any) -> int:
    """The highest number that nothing else in the message has.

    Where the message keeps all of them, it is one of Protobuf's own: protoc lets no field have these.
    """
    fields = [(field.number, field.number + 1) for field in message.field]
    kept = [*message.extension_range, *message.reserved_range]
    taken = [*fields, *((each.start, each.end) for each in kept), _OF_PROTOBUF]
    return _highest_free(taken, _HIGHEST) or _highest_free(fields, _OF_PROTOBUF[1] - 1)


def _highest_free(taken: list[tuple[int, int]], number: int) -> int:
    """The highest number up to this one that is in no range; a range is without its end; 0 = there is none."""
    for start, end in sorted(taken, key=lambda each: -each[1]):
        if number >= end:
            break
        number = min(number, start - 1)
    return number


def _struct_of(kind: DataType) -> StructType | None:
    """The columns within a column."""
    if isinstance(kind, ArrayType):
        kind = kind.elementType
    elif isinstance(kind, MapType):
        kind = kind.valueType
    return kind if isinstance(kind, StructType) else None


def _message_of(messages: dict[str, Any], field: Any) -> str | None:
    """The name of the message that a field holds, or that the values of its map are."""
    name = field.type_name or None
    if name in messages and messages[name][0].options.map_entry:
        name = messages[name][0].field[1].type_name or None
    return name if name in messages else None
