r"""A registry of AWS Glue: a message begins with a byte 3, a byte that says how it is compressed, and the UUID of its schema version.

Compressed is what the format writes, by zlib. Java's clients write it so, and Flink's formats on top of them.
Source: ``SerializationDataEncoder`` and ``GlueSchemaRegistryDeserializerDataParser`` of Amazon's schema-registry-serde.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError, shown
from pyspark_upsert_kafka.formats.batches import nulls
from pyspark_upsert_kafka.formats.codec import (
    CodecSpec,
    Decoded,
    Decoder,
    Encoder,
    Records,
    RecordType,
    RecordTypes,
)
from pyspark_upsert_kafka.formats.decoded_size import MAX_ROW_BYTES, Budget
from pyspark_upsert_kafka.formats.decoding import UnreadableError, merge_by_position
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix
from pyspark_upsert_kafka.formats.registry_format import (
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
)
from pyspark_upsert_kafka.registry.glue_client import (
    GlueSchema,
    schema_of_version,
)
from pyspark_upsert_kafka.registry.glue_options import OPTIONS, GlueSettings, settings_of
from pyspark_upsert_kafka.registry.registered_format import RecordsOfSchema, Registry, kept_records

_LENGTH = 18
_VERSION, _PLAIN, _ZLIB = 3, 0, 5
_WHOLE = 1 << 40  # bytes; more than any message has
_BEGUN = 100  # bytes that tell which record of a schema follows

_WRONG = (
    "the message does not begin with the byte 3, a byte 0 or 5, and the 16 bytes of a schema version's id, as the serializers "
    "of AWS Glue write it; it begins with {begin!r}"
)


@dataclass(frozen=True)
class _OfSide:
    """The registry as one side of a table uses it."""

    spec: CodecSpec
    format: RegistryFormat
    settings: GlueSettings
    takes_name_of_topic: bool = True
    writes_headers = False

    @property
    def schema(self) -> str | None:
        return self.settings.schema

    def subject(self) -> str:
        name, option = self.settings.schema_name, f"{self.settings.access.option_prefix}schema.name"
        if name is not None:
            return name
        if not self.takes_name_of_topic:
            raise OptionError(
                f"Option '{option}' is required: the schema of the values has the topic's name, and that of the keys needs one of "
                "its own. For example: '<topic>-key'."
            )
        if len(self.spec.topics) != 1:
            raise OptionError(
                f"Option '{option}' is required for more than one topic: the default, the topic, would be another one for each."
            )
        return self.spec.topics[0]

    def check_written(self) -> None:
        self.subject()
        if self.settings.compresses and self.spec.side == "key":
            raise OptionError(
                f"Option '{self.settings.access.option_prefix}compression' = 'ZLIB' is for values: the bytes of a key must be the "
                "same wherever it is written, and what zlib makes of it depends on its release. Leave it out."
            )

    def newest(self, subject: str) -> RegisteredSchema:
        return self._schema(subject).newest_version()

    def older(self, subject: str) -> Iterator[RegisteredSchema]:
        return islice(self._schema(subject).versions(), 1, None)

    def subject_is_given(self) -> bool:
        return self.settings.schema_name is not None

    def decoder(self, of_schema: SchemaDecoder, target: pa.Schema) -> Decoder:
        def of_version(version: UUID, prefix_length: int) -> Decoder:
            return of_schema(schema_of_version(self.settings.access, version), prefix_length)

        return decoder_by_version(of_version, target, ends_at_bad=self.spec.ends_at_bad)

    def record_types(self, of_schema: RecordsOfSchema) -> RecordTypes:
        def of_version(version: bytes) -> Records:
            return of_schema(schema_of_version(self.settings.access, UUID(bytes=version)))

        of_id = kept_records(of_version)

        def of_beginning(beginning: bytes, is_whole: bool) -> RecordType | int | None:
            if len(beginning) < _LENGTH and not is_whole:
                return _LENGTH
            if not _is_header(beginning[:_LENGTH]):
                return None
            found = of_id(beginning[2:_LENGTH])
            if found is None:
                return None
            if found.of_message is None:
                return found.all[0]
            if beginning[1] == _PLAIN:
                told = found.of_message(beginning[_LENGTH:], is_whole)
                return _LENGTH + told if isinstance(told, int) else told
            return found.of_message(_begun(beginning), True) if is_whole else _WHOLE

        return of_beginning

    def encoder(self, writing: SchemaEncoder) -> Encoder:
        settings = self.settings
        create = settings.compatibility if settings.auto_register else None
        version = self._schema(self.subject()).version(
            self.format.schema_type, writing.schema, create
        )
        if settings.compresses:
            compressed = writing.with_prefix(writing.after_id)
            return _CompressingEncoder(compressed, header_of(version, compressed=True))
        return writing.with_prefix(header_of(version) + writing.after_id)

    def _schema(self, name: str) -> GlueSchema:
        return GlueSchema(self.settings.access, self.settings.registry, name)


def _of_side(spec: CodecSpec, format_: RegistryFormat) -> _OfSide:
    return _OfSide(spec, format_, settings_of(spec, format_.name))


def _of_key(spec: CodecSpec, format_: RegistryFormat) -> _OfSide:
    return replace(_of_side(spec, format_), takes_name_of_topic=False)


def _payload(message: bytes) -> bytes:
    is_compressed = message[1:2] == bytes([_ZLIB])
    return _inflated(message, Budget(1)) if is_compressed else message[_LENGTH:]


REGISTRY = Registry(OPTIONS, _of_side, _payload)

OF_KEYS = replace(REGISTRY, of_side=_of_key)
"""That of keys beside values which have one too: the schemas of both cannot be versions of the one that has the topic's name."""


def header_of(version: UUID, *, compressed: bool = False) -> bytes:
    r"""What a message of this version begins with.

    >>> header_of(UUID(int=258))
    b'\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02'
    """
    return bytes([_VERSION, _ZLIB if compressed else _PLAIN]) + version.bytes


def decoder_by_version(
    compile_decoder: Callable[[UUID, int], Decoder],
    target: pa.Schema,
    *,
    ends_at_bad: bool = False,
) -> DecoderByPrefix:
    """The decoder of messages of any version.

    Args:
        compile_decoder: Compiles the decoder of one version's messages, from its id and how many bytes stand before what the
            format writes; a SchemaError is the fault of each message that names this version.
        target: The columns.
        ends_at_bad: As in `CodecSpec`.
    """

    def of_prefix(prefix: bytes) -> Decoder:
        if not _is_header(prefix):
            raise SchemaError(_WRONG.format(begin=shown(prefix)))
        version = UUID(bytes=prefix[2:])
        if prefix[1] == _PLAIN:
            return compile_decoder(version, _LENGTH)
        return _InflatingDecoder(compile_decoder(version, 0), target)

    def headers_of(messages: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        return pc.binary_slice(messages, 0, _LENGTH)

    return DecoderByPrefix(
        lambda message: message[:_LENGTH], of_prefix, target, headers_of, ends_at_bad=ends_at_bad
    )


def _is_header(prefix: bytes) -> bool:
    return len(prefix) == _LENGTH and prefix[0] == _VERSION and prefix[1] in (_PLAIN, _ZLIB)


@dataclass(frozen=True)
class _CompressingEncoder:
    """Compresses each message of an encoder, and puts the header before it.

    Args:
        encoder: Writes what is compressed.
        header: The header.
    """

    encoder: Encoder
    header: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        plain = self.encoder.encode(rows)
        messages = [self.header + zlib.compress(message) for message in plain.to_pylist()]
        return pa.array(messages, pa.large_binary())


@dataclass(frozen=True)
class _InflatingDecoder:
    """Decodes compressed messages: what they become is bounded, all together and each of them.

    Args:
        decoder: Decodes what they hold.
        target: The columns.
    """

    decoder: Decoder
    target: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        budget, errors = Budget(len(messages), begun=0), {}
        inflated, places = [], []
        for at, message in enumerate(messages):
            budget.begun = at + 1
            try:
                inflated.append(_inflated(message, budget))
                places.append(at)
            except UnreadableError as why:
                errors[at] = str(why)
        decoded = self.decoder.decode(BytesColumn.of(inflated))
        if not errors:
            return decoded
        bad = Decoded(nulls(self.target, len(errors)), dict(enumerate(errors.values())))
        return merge_by_position([(np.array(places, int), decoded), (np.array([*errors]), bad)])


def _begun(message: bytes) -> bytes:
    """The first bytes of what a compressed message holds; empty = it is not compressed by zlib."""
    try:
        return zlib.decompressobj().decompress(memoryview(message)[_LENGTH:], _BEGUN)
    except zlib.error:
        return b""


def _inflated(message: bytes, budget: Budget) -> bytes:
    """What a compressed message holds. What follows the end of that is skipped, as Java's clients do.

    Raises:
        UnreadableError: It is not whole, or too large.
        TooManyMessagesError: It is too large beside others.
    """
    inflating = zlib.decompressobj()
    try:
        # More than that is too much beside others, and for one alone.
        payload = inflating.decompress(memoryview(message)[_LENGTH:], budget.left() + 1)
    except zlib.error as error:
        raise UnreadableError(
            f"what it holds is not compressed by zlib as it says: {error}"
        ) from None
    budget.take(len(payload))
    if len(payload) > MAX_ROW_BYTES:
        raise UnreadableError(
            f"it is larger than {MAX_ROW_BYTES >> 20} MiB when it is inflated, which is the most that one may be"
        )
    if not inflating.eof:
        raise UnreadableError("what it holds, compressed by zlib, has no end: the message is cut")
    return payload
