"""A format whose messages name their schema, completed with a registry: then it is a format like any other."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from uuid import UUID

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError, shown
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    RegistryFormat,
    SchemaEncoder,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.registry.client import (
    SchemaId,
    context_of,
    id_of_schema,
    latest_schema,
    schema_of_id,
)
from pyspark_upsert_kafka.registry.options import OPTIONS, Settings, settings_of

_ID, _GUID = b"\0", b"\1"
_ID_LENGTH, _GUID_LENGTH = 5, 17
_HIGHEST = 0x7F  # in the first byte of an id, which is a positive number of 32 bits

_WRONG = (
    "the message does not begin with a zero byte and the four bytes of a schema id, as the "
    "serializers of a schema registry write it; it begins with {begin!r}"
)

_LONG_ID = (
    "; is it the beginning of an id of 8 bytes, as Apicurio's serializers write it by default? Ids of 4 bytes are read: set "
    "'apicurio.registry.as-confluent' = 'true' for the writer"
)


def framed(format_: RegistryFormat) -> Format:
    """The format with its registry, which is asked when a message names a new schema, or a row is written.

    Its codecs raise an OptionError when the address is missing, no subject is known, or two options
    contradict each other.
    """
    framed_ = Format(
        format_.name,
        (*OPTIONS, *format_.options),
        partial(_decoder, format_),
        partial(_encoder, format_),
        partial(_columns, format_),
        fields=format_.fields and partial(_fields, format_.fields),
        newest_schema=partial(_newest_schema, format_),
    )
    return format_.complete(framed_) if format_.complete else framed_


def _decoder(format_: RegistryFormat, spec: CodecSpec) -> Decoder:
    settings = settings_of(spec, format_.name)
    given = format_.given(spec.side, settings.schema)
    of_schema = format_.decoder(spec, given)
    context = context_of(settings.subject)

    def of_id(schema_id: SchemaId) -> Decoder:
        schema = schema_of_id(settings.access, schema_id, format_.schema_type, context=context)
        format_.check_type(schema)
        return of_schema(schema, len(id_bytes(schema_id)))

    return decoder_by_id(of_id, arrow_schema(spec.schema))


def _encoder(format_: RegistryFormat, spec: CodecSpec) -> Encoder:
    settings = settings_of(spec, format_.name)
    subject = subject_of(spec, settings)
    writing = format_.encoder(spec, format_.given(spec.side, settings.schema))

    schema_id = partial(
        id_of_schema,
        settings.access,
        subject,
        format_.schema_type,
        writing.schema,
        register=settings.auto_register,
    )
    return _RegisteringEncoder(writing, schema_id)


class _RegisteringEncoder:
    """Has its schema registered, and is compiled, when there is a row to write."""

    def __init__(self, writing: SchemaEncoder, schema_id: Callable[[], int]) -> None:
        self._writing, self._schema_id = writing, schema_id
        self._compiled: Encoder | None = None

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        if self._compiled is None:
            self._compiled = self._writing.with_prefix(id_bytes(self._schema_id()))
        return self._compiled.encode(rows)


def _fields(fields: Callable[[bytes], Collection[str]], message: bytes) -> Collection[str]:
    return fields(message[len(id_part(message)) :])


def _columns(format_: RegistryFormat, spec: CodecSpec, only: str | None) -> StructType:
    """Those of the schema that is given, or else of the newest of the subject."""
    settings = settings_of(spec, format_.name)
    schema = format_.given(spec.side, settings.schema)
    if schema is None:
        try:
            schema = latest_schema(settings.access, subject_of(spec, settings), format_.schema_type)
        except NoSchemaError as error:
            raise SchemaError(str(error)) from None
        format_.check_type(schema)
    return format_.columns(schema, spec, only)


def _newest_schema(format_: RegistryFormat, spec: CodecSpec) -> str:
    """The subject of the newest schema of a side, whose messages can be read into the columns.

    Raises:
        NoSchemaError: The registry has none.
        SchemaError: It cannot be read into the columns.
        BrokerError: The registry does not answer, or refuses.
    """
    settings = settings_of(spec, format_.name)
    subject = subject_of(spec, settings)
    of_schema = format_.decoder(spec, format_.given(spec.side, settings.schema))
    schema = latest_schema(settings.access, subject, format_.schema_type)
    format_.check_type(schema)
    of_schema(schema, 0)
    return subject


def subject_of(spec: CodecSpec, settings: Settings) -> str:
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


def id_in(part: bytes) -> SchemaId:
    """The schema that the first bytes of a message name. Raises SchemaError if they name none."""
    if part[:1] == _GUID and len(part) == _GUID_LENGTH:
        return UUID(bytes=part[1:])
    if part[:1] != _ID or len(part) != _ID_LENGTH or part[1] > _HIGHEST:
        raise SchemaError(_WRONG.format(begin=shown(part[:_ID_LENGTH])))
    return int.from_bytes(part[1:], "big")


def decoder_by_id(
    compile_decoder: Callable[[SchemaId], Decoder], target: pa.Schema
) -> DecoderByPrefix:
    """The decoder of messages of any schema.

    Args:
        compile_decoder: Compiles the decoder of one schema's messages, prefix and all; a SchemaError
            is the fault of each message that names this schema.
        target: The columns.
    """

    def of_prefix(prefix: bytes) -> Decoder:
        schema_id = id_in(prefix)
        try:
            return compile_decoder(schema_id)
        except UnknownSchemaError as error:
            if schema_id != 0:
                raise
            raise UnknownSchemaError(f"{str(error).removesuffix('.')}{_LONG_ID}") from None

    return DecoderByPrefix(id_part, of_prefix, target)
