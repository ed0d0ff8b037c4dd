"""Protobuf with a schema registry: after its prefix a message says which of the schema's messages it is; then comes what ``protobuf`` writes.

A message is read by the schema that it names, whose fields become columns by their names; a column that the schema
lacks is NULL. Where a schema is given, all messages are read by that one, and so by the numbers of its fields.

The serializers of AWS Glue say which message it is by one number, in the bytes of a varint. The number is the place of its full name among those of all messages of the file, in the order of their texts. Entries of maps are
messages there, as in each descriptor.
Source: ``MessageIndexFinder`` and ``ProtobufWireFormatEncoder`` of Amazon's schema-registry-serde (1.1.27), whose comment says
zigzag where they write a plain varint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import text
from pyspark_upsert_kafka.formats.binary_values import varint
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Records, RecordType
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix, PrefixedEncoder
from pyspark_upsert_kafka.formats.protobuf import VALUE_OPTIONS, message_decoder, message_encoder
from pyspark_upsert_kafka.formats.protobuf.derived_schema import derived_schema, with_columns
from pyspark_upsert_kafka.formats.protobuf.descriptors import check_runtime, full_name
from pyspark_upsert_kafka.formats.protobuf.field_types import columns_of_message
from pyspark_upsert_kafka.formats.protobuf.proto_compiler import check_compiler, compiled
from pyspark_upsert_kafka.formats.protobuf.proto_schema import (
    INDEXES,
    ProtoSchema,
    WhichMessage,
    decoded_indexes,
    indexes_part,
    text_of,
)
from pyspark_upsert_kafka.formats.record_names import RecordNames
from pyspark_upsert_kafka.formats.registry_format import (
    LackedColumns,
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    SeenRecords,
    of_newest_schema,
)

_LONGEST = 5  # bytes of a number of 32 bits


def number_part(message: bytes, start: int) -> bytes:
    r"""The beginning of a message up to the end of its number; where there is none, as many bytes as it could take.

    Args:
        message: The message.
        start: Where the number begins.

    >>> number_part(b"__\x81\x01abc", 2), number_part(b"__\x00abc", 2)
    (b'__\x81\x01', b'__\x00')
    """
    longest = message[: start + _LONGEST]
    for end, byte in enumerate(longest[start:], start + 1):
        if byte < 0x80:
            return message[:end]
    return longest


def name_of_number(schema: ProtoSchema, prefix: bytes, start: int) -> str:
    """The full name of the message whose number ends the prefix.

    Raises:
        SchemaError: There is none, or the prefix ends with no number.
    """
    digits = prefix[start:]
    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(digits))
    if not digits or digits[-1] >= 0x80 or varint(number) != digits:
        raise SchemaError(
            "behind the id of the schema version there is no number of a message, as the Protobuf serializer of AWS Glue writes "
            f"it; it goes on with {shown(digits)!r}"
        )
    names = _numbered(schema)
    if number >= len(names):
        raise SchemaError(f"{schema.origin} has no message with the number {number}.")
    return names[number]


def encoded_number(schema: ProtoSchema, name: str) -> bytes:
    """The number of the message with this full name, in the bytes that a message has for it."""
    return varint(_numbered(schema).index(name))


def _numbered(schema: ProtoSchema) -> list[str]:
    return sorted(_names(schema.file.package, schema.file.message_type))


def _names(scope: str, messages: Any) -> Iterator[str]:
    for message in messages:
        name = f"{scope}.{message.name}" if scope else str(message.name)
        yield name
        yield from _names(name, message.nested_type)


NUMBER = WhichMessage(
    number_part,
    lambda schema, prefix, start: [name_of_number(schema, prefix, start)],
    encoded_number,
)
"""By the number that the serializers of AWS Glue write."""


_LONGEST_PART = 16
"""Bytes that say which message follows; a message hardly stands in more others than these are enough for."""


@dataclass(frozen=True)
class _ProtobufFormat:
    """One of the formats: its name, and how its messages say which message of their schema they are."""

    name: str
    which: WhichMessage


OPTIONS = (
    Option(
        "message-name",
        text,
        None,
        "If a schema has several message types: the one that is written, or that gives the columns; its full name or the end of "
        "it. When reading, each message says which message type it has; where that may be two, the named one is read.",
        shown_default="the first one",
    ),
    *VALUE_OPTIONS,
)


def decoder(
    kind: _ProtobufFormat, spec: CodecSpec, given: RegisteredSchema | None
) -> SchemaDecoder:
    """What reads one side.

    Raises:
        SchemaError: Protobuf cannot carry a column, or the given schema is wrong.
        OptionError: A package is missing, or the given schema has no such message.
    """
    check_runtime(kind.name)
    check_compiler(kind.name)
    derived_schema(spec.schema, frozenset())
    return _Reader(kind, spec, given).of_schema


class _Reader:
    """Compiles the decoders of one side."""

    def __init__(
        self, kind: _ProtobufFormat, spec: CodecSpec, given: RegisteredSchema | None
    ) -> None:
        self._kind, self._spec, self._seen = kind, spec, SeenRecords(spec)
        self._lacked = LackedColumns(spec)
        self._given: Any = None
        if given:
            schema = compiled(given)
            self._given = schema.descriptor(_chosen(kind, spec, schema))
            message_decoder(self._given, spec)

    def of_schema(self, registered: RegisteredSchema, prefix_length: int) -> Decoder:
        """The decoder of messages whose indexes stand behind a prefix of this length."""
        schema = compiled(registered)

        def of_prefix(prefix: bytes) -> Decoder:
            name = self._name(schema, prefix, prefix_length)
            return message_decoder(self._descriptor(schema, name), self._spec, skip=len(prefix))

        def prefix_of(message: bytes) -> bytes:
            return self._kind.which.part(message, prefix_length)

        return DecoderByPrefix(prefix_of, of_prefix, arrow_schema(self._spec.schema))

    def _name(self, schema: ProtoSchema, prefix: bytes, start: int) -> str:
        """The message that a prefix means; of two that may be meant it is the one that the options name."""
        names = self._kind.which.names(schema, prefix, start)
        read = self._spec.record_names
        only = read[0].lstrip(".") if len(read) == 1 else None
        wanted = self._spec.options["message-name"] or (self._given and self._given.name) or only
        chosen = [each for each in names if wanted and f".{each}".endswith(f".{wanted}")]
        if len(names) == 1 or len(chosen) == 1:
            return (chosen or names)[0]
        raise SchemaError(
            f"the message indexes {list(decoded_indexes(prefix, start))} may mean two messages of {schema.origin}: {names[0]!r}, if its writer "
            f"counts the messages of its text, and {names[1]!r}, if its writer counts those of a descriptor, in which each map "
            f"is a message. Set '{self._spec.side}.{self._kind.name}.message-name' to the one that is meant"
        )

    def _descriptor(self, schema: ProtoSchema, name: str) -> Any:
        """By what a message of that name is read."""
        self._seen.add(name)
        if self._given is None:
            found = schema.descriptor(name)
            what, fields = f"{schema.origin}, the message {name!r},", found.fields_by_name.keys()
            self._lacked.look(what, fields, partial(columns_of_message, found))
            return with_columns(schema, name, self._spec.schema).descriptor(name)
        if name.rpartition(".")[2] != self._given.name:
            wanted = self._given.full_name
            raise SchemaError(f"the message is a {name!r}, and not a {wanted!r}, which is read")
        return self._given


def encoder(
    kind: _ProtobufFormat, spec: CodecSpec, given: RegisteredSchema | None
) -> SchemaEncoder:
    """What writes one side with the given schema, or the one derived from the columns.

    Raises:
        SchemaError: The schema is wrong, or a column does not fit it.
        OptionError: A package is missing, or the schema has no such message.
    """
    check_runtime(kind.name)
    if given:
        check_compiler(kind.name)
    schema = compiled(given) if given else derived_schema(spec.schema, spec.required)
    name = _chosen(kind, spec, schema)
    encoder_ = message_encoder(schema.descriptor(name), spec)
    text_ = given.text if given else text_of(schema)
    after_id = kind.which.encoded(schema, name)
    return SchemaEncoder(text_, partial(PrefixedEncoder, encoder_), after_id=after_id)


def columns(
    kind: _ProtobufFormat, registered: RegisteredSchema, spec: CodecSpec, _: str | None
) -> StructType:
    """The columns that a message of a schema gives.

    Raises:
        SchemaError: It is no Protobuf schema, or holds what no column can.
        OptionError: A package is missing, or the schema has no such message.
    """
    check_runtime(kind.name)
    check_compiler(kind.name)
    schema = compiled(registered)
    found = columns_of_message(schema.descriptor(_chosen(kind, spec, schema)))
    # Any field may be new.
    return found if registered.given else of_newest_schema(found, found.names, spec.required)


def records(kind: _ProtobufFormat, registered: RegisteredSchema) -> Records:
    """The messages of a schema; what stands behind the schema's id tells which of them follows.

    Raises:
        SchemaError: It is no Protobuf schema.
        OptionError: A package is missing.
    """
    check_compiler(kind.name)
    schema = compiled(registered)

    def of_name(name: str) -> RecordType:
        return RecordType(name, frozenset(schema.descriptor(name).fields_by_name))

    def of_beginning(beginning: bytes, is_whole: bool) -> RecordType | int | None:
        part = kind.which.part(beginning, 0)
        try:
            names = kind.which.names(schema, part, 0)
        except SchemaError:
            # It has not ended, or is none.
            is_told = is_whole or len(beginning) > _LONGEST_PART
            return None if is_told else len(beginning) + 1
        if len(names) > 1:
            return None
        return of_name(names[0])

    return Records(tuple(map(of_name, schema.names)), of_beginning)


def _chosen(kind: _ProtobufFormat, spec: CodecSpec, schema: ProtoSchema) -> str:
    """The full name of the message that the options name, of the one that is read, or of the first one."""
    wanted, names = spec.options["message-name"], schema.names
    if not names:
        raise SchemaError(f"{schema.origin} has no message.")
    if wanted is None and spec.record_names:
        read = RecordNames(spec.record_names)
        found = [name for name in names if read.has(name)]
        if len(found) == 1:
            return found[0]
    if wanted is None:
        return names[0]
    option = f"Option '{spec.side}.{kind.name}.message-name'"
    return full_name(wanted, names, option, schema.origin)


def _are_indexes(data: bytes) -> bool:
    """Whether these are message indexes, and nothing else."""
    try:
        decoded_indexes(data, 0)
    except SchemaError:
        return False
    return indexes_part(data, 0) == data


def _format(kind: _ProtobufFormat, registry: str) -> RegistryFormat:
    codecs = partial(decoder, kind), partial(encoder, kind), partial(columns, kind)
    of_message = partial(records, kind)
    return RegistryFormat(
        kind.name, "PROTOBUF", "a Protobuf schema", *codecs, of_message, OPTIONS, registry=registry
    )


FORMAT = replace(
    _format(_ProtobufFormat("proto-registry", INDEXES), "confluent"),
    is_after_id=_are_indexes,
    id_is_seen=True,  # no field has the number 0
)

PROTOBUF_GLUE = _format(_ProtobufFormat("protobuf-glue", NUMBER), "glue")
"""The same with a registry of AWS Glue, as in Flink, whose serializer has a number in the place of indexes."""
