"""A Protobuf schema: a ``.proto`` file and those that it imports, compiled; and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.proto_registry.message_indexes import Indexes
from pyspark_upsert_kafka.formats.protobuf.columns import DURATION, TIMESTAMP
from pyspark_upsert_kafka.formats.protobuf.descriptors import names_of, pool_of
from pyspark_upsert_kafka.formats.protobuf.wire import Kind

OPTIONAL, REPEATED = 1, 3
"""``FieldDescriptorProto.Label``."""


@dataclass(frozen=True)
class ProtoSchema:
    """A schema.

    Args:
        origin: Where it comes from, for errors.
        files: Its ``FileDescriptorProto``, each behind those that it imports, so that the schema's own is the last.
    """

    origin: str
    files: Sequence[Any]

    @property
    def file(self) -> Any:
        """The schema's own file."""
        return self.files[-1]

    @property
    def names(self) -> list[str]:
        """The full names of the file's messages."""
        return list(names_of(self.file))

    def name_at(self, indexes: Indexes) -> str:
        """The full name of the message that has these indexes.

        Raises:
            SchemaError: There is none.
        """
        messages, parts = self.file.message_type, [self.file.package] if self.file.package else []
        for index in indexes:
            written = _written(messages)
            if index >= len(written):
                raise SchemaError(f"{self.origin} has no message with the indexes {list(indexes)}.")
            parts.append(written[index].name)
            messages = written[index].nested_type
        return ".".join(parts)

    def indexes_of(self, name: str) -> Indexes:
        """The indexes of the message with this full name."""
        indexes, messages = [], self.file.message_type
        for part in name.removeprefix(f"{self.file.package}.").split("."):
            written = [message.name for message in _written(messages)]
            indexes.append(written.index(part))
            messages = _written(messages)[indexes[-1]].nested_type
        return tuple(indexes)

    def descriptor(self, name: str) -> Any:
        """The ``Descriptor`` of the message with this full name.

        Raises:
            SchemaError: The files do not make sense together.
        """
        try:
            return pool_of(self.files).FindMessageTypeByName(name)
        except TypeError as why:
            raise SchemaError(f"{self.origin} cannot be used: {why}.") from None


def _written(messages: Any) -> list[Any]:
    """Those that stand in the text: the entries of maps do not, and are not counted."""
    return [message for message in messages if not message.options.map_entry]


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
