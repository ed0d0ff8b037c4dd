"""A Protobuf schema: a ``.proto`` file and those that it imports, compiled; which of its messages follows; and its text.

Behind the id of a schema, Confluent's message indexes say which message of the ``.proto`` file follows: how many indexes there
are, and the indexes: the place of a message among those of its file, of one within it among those within it, and so on. All
are zigzag varints. The first message of a file, ``[0]``, is the one byte 0.
Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.binary_values import varint
from pyspark_upsert_kafka.formats.protobuf.descriptors import FieldKind, names_of, pool_of

Indexes = tuple[int, ...]
"""The message indexes of a message."""

_FIRST: Indexes = (0,)
_REPEATED = 3  # FieldDescriptorProto.Label
_LONGEST = 10  # bytes of a varint
_MOST = 100  # bytes of indexes: a message stands in others no deeper than that


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
    return (field.type_name.removeprefix(".") for field in fields if field.type == FieldKind.GROUP)


def _messages(scope: str, messages: Any) -> Iterator[tuple[str, Any]]:
    for message in messages:
        yield _within(scope, message), message
        yield from _messages(_within(scope, message), message.nested_type)


def encoded_indexes(indexes: Indexes) -> bytes:
    r"""Message indexes, in the bytes that a message has for them.

    >>> encoded_indexes((0,)), encoded_indexes((2, 1))
    (b'\x00', b'\x04\x04\x02')
    """
    if indexes == _FIRST:
        return b"\0"
    return b"".join(varint(number << 1) for number in (len(indexes), *indexes))


def indexes_part(message: bytes, start: int) -> bytes:
    """The beginning of a message up to the end of its indexes; where there are none, as many bytes as they could take.

    Args:
        message: The message.
        start: Where the indexes begin.
    """
    if message[start : start + 1] == b"\0":
        return message[: start + 1]
    longest = message[: start + _MOST]
    found = _read(longest, start)
    return longest if found is None else longest[: found[1]]


def decoded_indexes(prefix: bytes, start: int) -> Indexes:
    r"""The indexes that end the prefix.

    Raises:
        SchemaError: They are none.

    >>> decoded_indexes(b"\x00", 0), decoded_indexes(b"\x04\x04\x02", 0)
    ((0,), (2, 1))
    """
    found = _read(prefix, start)
    if found is None or min(found[0]) < 0:
        raise SchemaError(
            "behind the schema's id there are no message indexes, as the Protobuf serializers of a schema "
            f"registry write them; it goes on with {shown(prefix[start:])!r}"
        )
    return found[0]


def _read(message: bytes, start: int) -> tuple[Indexes, int] | None:
    """The indexes, and where they end."""
    numbers: list[int] = []
    count = _number(message, start)
    while count is not None and len(numbers) < count[0]:
        number = _number(message, count[1])
        if number is None:
            return None
        numbers.append(number[0])
        count = count[0], number[1]
    if count is None or count[0] < 0:
        return None
    return tuple(numbers) or _FIRST, count[1]


def _number(message: bytes, at: int) -> tuple[int, int] | None:
    """A zigzag varint, and where it ends; in no more bytes than it needs, so that there are few spellings to compile a decoder for."""
    value = 0
    for place, byte in enumerate(message[at : at + _LONGEST]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return None if place and not byte else ((value >> 1) ^ -(value & 1), at + place + 1)
    return None


@dataclass(frozen=True)
class WhichMessage:
    """How messages say which message of their schema they are, behind its id.

    Args:
        part: The beginning of a message up to the end of what says it, from where that begins.
        names: The full names of the messages that it may mean, from such a beginning.
        encoded: What says it of the message with a full name.
    """

    part: Callable[[bytes, int], bytes]
    names: Callable[[ProtoSchema, bytes, int], list[str]]
    encoded: Callable[[ProtoSchema, str], bytes]


INDEXES = WhichMessage(
    indexes_part,
    lambda schema, prefix, start: schema.names_at(decoded_indexes(prefix, start)),
    lambda schema, name: encoded_indexes(schema.indexes_of(name)),
)
"""By Confluent's message indexes."""


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
    if field.label == _REPEATED:
        return f"repeated {_type(field)}"
    return f"optional {_type(field)}" if field.proto3_optional else _type(field)


def _type(field: Any) -> str:
    if field.type != FieldKind.MESSAGE:
        return FieldKind(field.type).name.lower()
    if field.type_name.startswith(".google."):
        return str(field.type_name)
    return str(field.type_name).rpartition(".")[2]
