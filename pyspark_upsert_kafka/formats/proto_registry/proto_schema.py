"""A Protobuf schema: a ``.proto`` file and those that it imports, compiled; and its text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
        implied: The full names of the messages that are in the file's descriptor and do not stand in its text: see
            `implied_messages`. Where the schema came as a descriptor there are none.
    """

    origin: str
    files: Sequence[Any]
    implied: frozenset[str] = frozenset()

    @property
    def file(self) -> Any:
        """The schema's own file."""
        return self.files[-1]

    @cached_property
    def names(self) -> list[str]:
        """The full names of the file's messages."""
        return list(names_of(self.file))

    @cached_property
    def _spelled_out(self) -> frozenset[str]:
        return frozenset(self.names) - self.implied

    def names_at(self, indexes: Indexes) -> list[str]:
        """The full names of the messages that may have these indexes: one, or two.

        Java's clients count the messages that stand in a text. Whoever counts those of a descriptor, as Confluent's clients for
        Python and .NET and Java's generated classes do, counts the implied ones too, and the registry may give that
        schema out as a text.

        Raises:
            SchemaError: There is none.
        """
        found = dict.fromkeys((self._name_at(indexes, self.implied), self._name_at(indexes)))
        possible = [name for name in found if name in self._spelled_out]
        if not possible:
            raise SchemaError(f"{self.origin} has no message with the indexes {list(indexes)}.")
        return possible

    def _name_at(self, indexes: Indexes, not_counted: frozenset[str] = frozenset()) -> str | None:
        messages, name = self.file.message_type, str(self.file.package)
        for index in indexes:
            if index >= len(messages):
                return None
            counted = _counted(messages, name, not_counted)
            if index >= len(counted):
                return None
            name, messages = _within(name, counted[index]), counted[index].nested_type
        return name

    def indexes_of(self, name: str) -> Indexes:
        """The indexes of the message with this full name, as Java's clients count them."""
        indexes, messages, scope = [], self.file.message_type, self.file.package
        for part in name.removeprefix(f"{self.file.package}.").split("."):
            counted = _counted(messages, scope, self.implied)
            indexes.append([message.name for message in counted].index(part))
            messages, scope = counted[indexes[-1]].nested_type, f"{scope}.{part}" if scope else part
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


def _counted(messages: Any, scope: str, not_counted: frozenset[str]) -> list[Any]:
    """Those of some messages that have indexes."""
    return [message for message in messages if _within(scope, message) not in not_counted]


def _within(scope: str, message: Any) -> str:
    """The full name of a message; the scope is empty outside of a package."""
    return f"{scope}.{message.name}" if scope else str(message.name)


def implied_messages(file: Any, spelled_out: Collection[tuple[str, ...]]) -> Iterator[str]:
    """The full names of the messages in a file's descriptor that are no messages in its text: entries of maps, and groups.

    Args:
        file: The ``FileDescriptorProto``.
        spelled_out: Entries that do stand in the text, by the names of the messages around them and their own.
    """
    above = f"{file.package}." if file.package else ""
    in_text = {above + ".".join(path) for path in spelled_out}
    yield from _groups(file.extension)
    for name, message in _messages(file.package, file.message_type):
        if message.options.map_entry and name not in in_text:
            yield name
        yield from _groups([*message.field, *message.extension])


def _groups(fields: Iterable[Any]) -> Iterator[str]:
    return (field.type_name.removeprefix(".") for field in fields if field.type == Kind.GROUP)


def _messages(scope: str, messages: Any) -> Iterator[tuple[str, Any]]:
    for message in messages:
        yield _within(scope, message), message
        yield from _messages(_within(scope, message), message.nested_type)


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
