"""Confluent's registry, and those with its API: by which first bytes a message names its schema, and what the registry is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, first_bytes
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError, shown
from pyspark_upsert_kafka.core.metadata import LAST_BYTE_OF_IDS, SCHEMA_IDS
from pyspark_upsert_kafka.formats.codec import (
    CodecSpec,
    Decoder,
    Encoder,
    Records,
    RecordType,
    RecordTypes,
    WithSchemaIds,
)
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix
from pyspark_upsert_kafka.formats.registry_format import (
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.registry.client import (
    NEW_IDS,
    SchemaId,
    context_of,
    highest_id,
    latest_schema,
    older_schemas,
    registered_schema,
    schema_of_id,
)
from pyspark_upsert_kafka.registry.options import OPTIONS, RegistrySettings, settings_of
from pyspark_upsert_kafka.registry.registered_format import RecordsOfSchema, Registry, kept_records

_ID, _GUID = b"\0", b"\1"
_ID_LENGTH, _GUID_LENGTH = 5, 17
_HIGHEST = 0x7F  # in the first byte of an id, which is a positive number of 32 bits

_WRONG = (
    "the message does not begin with a zero byte and the four bytes of a schema id, as the "
    "serializers of a schema registry write it; it begins with {begin!r}"
)

_A_GUID = "; a byte 1 and 16 others are taken for a GUID, in the header that names the schema or else in front of the message"

_LONG_ID = (
    "; is it the beginning of an id of 8 bytes, as Apicurio's serializers write it by default? Ids of 4 bytes are read: set "
    "'apicurio.registry.as-confluent' = 'true' for the writer"
)


@dataclass(frozen=True)
class _OfSide:
    """The registry as one side of a table uses it."""

    spec: CodecSpec
    schema_type: str
    settings: RegistrySettings

    @property
    def schema(self) -> str | None:
        return self.settings.schema

    @property
    def writes_headers(self) -> bool:
        return self.settings.id_in_header

    def subject(self) -> str:
        return subject_of(self.spec, self.settings)

    def check_written(self) -> None:
        self.subject()

    def newest(self, subject: str) -> RegisteredSchema:
        return latest_schema(self.settings.access, subject, self.schema_type)

    def older(self, subject: str) -> Iterator[RegisteredSchema]:
        return older_schemas(self.settings.access, subject, self.schema_type)

    def subject_is_given(self) -> bool:
        return self.settings.subject is not None

    def decoder(self, of_schema: SchemaDecoder, target: pa.Schema) -> Decoder:
        access, context = self.settings.access, context_of(self.settings.subject)

        def of_id(schema_id: SchemaId) -> Decoder:
            schema = schema_of_id(access, schema_id, self.schema_type, context=context)
            return of_schema(schema, len(id_bytes(schema_id)))

        highest = partial(highest_id, access, context)
        return decoder_by_id(of_id, target, highest, ends_at_bad=self.spec.ends_at_bad)

    def record_types(self, of_schema: RecordsOfSchema) -> RecordTypes:
        access, context = self.settings.access, context_of(self.settings.subject)

        def of_part(part: bytes) -> Records:
            schema_id = id_in(part)
            return of_schema(schema_of_id(access, schema_id, self.schema_type, context=context))

        of_id = kept_records(of_part)

        def of_beginning(beginning: bytes, is_whole: bool) -> RecordType | int | None:
            length = _GUID_LENGTH if beginning[:1] == _GUID else _ID_LENGTH
            if len(beginning) < length and not is_whole:
                return length
            found = of_id(id_part(beginning))
            if found is None:
                return None
            if found.of_message is None:
                return found.all[0]
            told = found.of_message(beginning[length:], is_whole)
            return length + told if isinstance(told, int) else told

        return of_beginning

    def encoder(self, writing: SchemaEncoder) -> Encoder:
        access, register = self.settings.access, self.settings.auto_register
        registered = registered_schema(
            access, self.subject(), self.schema_type, writing.schema, register=register
        )
        if not self.writes_headers:
            return writing.with_prefix(id_bytes(registered.id) + writing.after_id)
        # Confluent's serializers write GUIDs in headers; not every registry has them.
        schema_id = registered.id if registered.guid is None else registered.guid
        header = SCHEMA_IDS[self.spec.side].value, id_bytes(schema_id) + writing.after_id
        return _BesideHeader(writing.with_prefix(b""), header)


@dataclass(frozen=True)
class _BesideHeader:
    """Writes messages whose schema a header names."""

    bare: Encoder
    name_and_value: tuple[str, bytes]

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        return self.bare.encode(rows)

    def header(self) -> tuple[str, bytes]:
        return self.name_and_value


def _of_side(spec: CodecSpec, format_: RegistryFormat) -> _OfSide:
    return _OfSide(spec, format_.schema_type, settings_of(spec, format_.name))


def _payload(message: bytes) -> bytes:
    return message[len(id_part(message)) :]


_WRONG_HEADER = (
    "the header {name!r} names no schema: Confluent's serializers write there a zero byte and the four bytes of an id, or a one and "
    "the 16 bytes of a GUID, and behind it the message indexes of Protobuf, but nothing for other formats; it is {seen!r}"
)


def _with_schema_ids(format_: RegistryFormat) -> WithSchemaIds:
    """Puts what a header has before the message: so messages begin that name their schema themselves."""

    def is_wrong(header: bytes) -> bool:
        part = id_part(header)
        try:
            id_in(part)
        except SchemaError:
            return True
        return not format_.is_after_id(header[len(part) :])

    def with_schema_ids(
        side: str, messages: BytesColumn, ids: BytesColumn
    ) -> tuple[BytesColumn, dict[int, str]]:
        column, headers = messages.column, ids.column
        if format_.id_is_seen:
            is_named = pa.array(first_bytes(column) <= LAST_BYTE_OF_IDS)
            headers = pc.if_else(is_named, pa.scalar(None, headers.type), headers)
            ids = BytesColumn(headers)
        wrong = [
            each for each in headers.unique().to_pylist() if each is not None and is_wrong(each)
        ]
        bad: dict[int, str] = {}
        if wrong:
            is_bad = pc.is_in(headers, value_set=pa.array(wrong, headers.type))
            # Nothing is made of such a message, unless it is null.
            nothing = pa.scalar(b"", column.type)
            column = pc.if_else(pc.and_(is_bad, column.is_valid()), nothing, column)
            headers = pc.if_else(is_bad, nothing, headers)
            places = np.flatnonzero(pc.and_(is_bad, column.is_valid()))
            name = SCHEMA_IDS[side].value
            bad = {int(at): _WRONG_HEADER.format(name=name, seen=shown(ids[at])) for at in places}
        nothing = pa.scalar(b"", column.type)
        joined = pc.binary_join_element_wise(pc.fill_null(headers, nothing), column, nothing)
        return BytesColumn(joined), bad

    return with_schema_ids


REGISTRY = Registry(OPTIONS, _of_side, _payload, _with_schema_ids)


def subject_of(spec: CodecSpec, settings: RegistrySettings) -> str:
    """The given subject, or the one named after the topic and the side.

    Raises:
        OptionError: None is given, and there is not one topic to name it after.
    """
    if settings.subject is not None:
        return settings.subject
    if len(spec.topics) != 1:
        raise OptionError(
            f"Option '{settings.access.option_prefix}subject' is required for more than one topic: the "
            f"default, '<topic>-{spec.side}', would be another one for each."
        )
    return f"{spec.topics[0]}-{spec.side}"


def id_bytes(schema_id: SchemaId) -> bytes:
    r"""What names this schema.

    >>> id_bytes(258)
    b'\x00\x00\x00\x01\x02'
    """
    if isinstance(schema_id, UUID):
        return _GUID + schema_id.bytes
    return _ID + schema_id.to_bytes(4, "big")


def id_part(message: bytes) -> bytes:
    """The first bytes of a message, which name its schema."""
    return message[: _GUID_LENGTH if message[:1] == _GUID else _ID_LENGTH]


def _id_parts(messages: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The same of many messages."""
    of_ids = pc.binary_slice(messages, 0, _ID_LENGTH)
    are_guids = pc.starts_with(messages, _GUID)
    if not pc.any(are_guids).as_py():
        return of_ids
    return pc.if_else(are_guids, pc.binary_slice(messages, 0, _GUID_LENGTH), of_ids)


def id_in(part: bytes) -> SchemaId:
    """The schema that the first bytes of a message name. Raises SchemaError if they name none."""
    if part[:1] == _GUID and len(part) == _GUID_LENGTH:
        return UUID(bytes=part[1:])
    if not _is_id(part):
        raise SchemaError(_WRONG.format(begin=shown(part[:_ID_LENGTH])))
    return int.from_bytes(part[1:], "big")


def _is_id(part: bytes) -> bool:
    return part[:1] == _ID and len(part) == _ID_LENGTH and part[1] <= _HIGHEST


def decoder_by_id(
    compile_decoder: Callable[[SchemaId], Decoder],
    target: pa.Schema,
    highest: Callable[[], int | None] = lambda: None,
    *,
    ends_at_bad: bool = False,
) -> DecoderByPrefix:
    """The decoder of messages of any schema.

    Args:
        compile_decoder: Compiles the decoder of one schema's messages, prefix and all; a SchemaError
            is the fault of each message that names this schema.
        target: The columns.
        highest: Asks for the highest id that the registry has given; None = it does not say.
        ends_at_bad: As in `CodecSpec`.
    """

    def of_prefix(prefix: bytes) -> Decoder:
        schema_id = id_in(prefix)
        try:
            return compile_decoder(schema_id)
        except UnknownSchemaError as error:
            hint = _A_GUID if isinstance(schema_id, UUID) else _LONG_ID if schema_id == 0 else ""
            if not hint:
                raise
            raise UnknownSchemaError(f"{str(error).removesuffix('.')}{hint}") from None

    def unknown_among(prefixes: Sequence[bytes]) -> Mapping[bytes, str]:
        ids = {each: int.from_bytes(each[1:], "big") for each in prefixes if _is_id(each)}
        # The messages are here: an id that is given after the answer is in none of them. Who answers may lag behind.
        most = highest() if ids else None
        if most is None:
            return {}
        return {
            each: f"Schema id {schema_id} is not in the schema registry, whose highest id is {most}"
            for each, schema_id in ids.items()
            if schema_id > most + NEW_IDS
        }

    return DecoderByPrefix(
        id_part, of_prefix, target, _id_parts, unknown_among, ends_at_bad=ends_at_bad
    )
