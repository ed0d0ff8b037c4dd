"""The Protobuf schema that columns mean when none is given: that of Confluent's Flink, where values are the same.

The message is called ``Row``, and its fields have the numbers of the columns' places, from 1 on. What may be NULL is
``optional``. See ``fields.py`` for the types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.proto_registry.fields import REPEATED, add_message
from pyspark_upsert_kafka.formats.proto_registry.proto_schema import ProtoSchema
from pyspark_upsert_kafka.formats.protobuf.columns import DURATION, TIMESTAMP
from pyspark_upsert_kafka.formats.protobuf.wire import Kind

_PACKAGE, _MESSAGE = "io.confluent.protobuf.generated", "Row"


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


def imported_files(file: Any) -> list[Any]:
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


def text_of(schema: ProtoSchema) -> str:
    """A derived schema as the text of a ``.proto`` file."""
    file = schema.file
    lines = ['syntax = "proto3";', f"package {file.package};", ""]
    if file.dependency:
        lines += [*(f'import "{name}";' for name in file.dependency), ""]
    for message in file.message_type:
        lines += _message(message)
    return "\n".join([*lines, ""])


def _message(message: Any) -> Iterator[str]:
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    yield f"message {message.name} {{"
    for field in message.field:
        yield f"  {_field(field, entries)} {field.name} = {field.number};"
    for nested in message.nested_type:
        if nested.name not in entries:
            yield ""
            yield from (f"  {line}".rstrip() for line in _message(nested))
    yield "}"


def _field(field: Any, entries: dict[str, Any]) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, value = entry.field
        return f"map<{_type(key)}, {_type(value)}>"
    if field.label == REPEATED:
        return f"repeated {_type(field)}"
    return f"optional {_type(field)}" if field.proto3_optional else _type(field)


def _type(field: Any) -> str:
    if field.type != Kind.MESSAGE:
        return Kind(field.type).name.lower()
    if field.type_name.startswith(".google."):
        return str(field.type_name)
    return str(field.type_name).rpartition(".")[2]
