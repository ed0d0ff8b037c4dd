"""Columns that the writer's schema lacks: its message is given fields for them, so that they are read as NULL.

The fields have the highest numbers that are free, which no message has. Their names begin with ``ADDED``, since a
oneof, a type or an enum's value of the message may have the name of the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pyspark_upsert_kafka.formats.proto_registry.derive import (
    add_field,
    make_optional,
)
from pyspark_upsert_kafka.formats.proto_registry.proto_schema import (
    REPEATED,
    ProtoSchema,
    imported_files,
)
from pyspark_upsert_kafka.formats.protobuf.columns import ADDED

_HIGHEST = 2**29 - 1
_OF_PROTOBUF = (19_000, 20_000)
_EXPLICIT = 1  # FeatureSet.FieldPresence


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
        for other in imported_files(file):
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
    field = add_field(message, name, added, _free_number(message), path)
    if field.label == REPEATED:
        return
    if file.syntax == "proto3":
        make_optional(message, [field])
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
