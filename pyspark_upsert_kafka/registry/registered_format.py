"""A format whose messages name their schema, completed with a registry: then it is a format like any other.

How a message names its schema, and what the registry is asked, is for each kind of registry to say: see `RegistryOfSide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError, shown_names
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.formats.codec import (
    CodecSpec,
    Decoder,
    Encoder,
    Format,
    HeaderEncoder,
    Records,
    RecordType,
    RecordTypes,
    WithSchemaIds,
)
from pyspark_upsert_kafka.formats.record_names import RecordNames
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.formats.writers_columns import watched

RecordsOfSchema = Callable[[RegisteredSchema], Records]
"""The record types of the messages of a schema; raises SchemaError."""

_KEPT = 1_000


class RegistryOfSide(Protocol):
    """A registry as one side of a table uses it."""

    @property
    def schema(self) -> str | None:
        """The schema that the user gives; None = none."""

    @property
    def writes_headers(self) -> bool:
        """Whether messages that are written name their schema in a header; then the encoder is a `HeaderEncoder`."""

    def subject(self) -> str:
        """Under what the schema that is written is registered.

        Raises:
            OptionError: It is not given, and nothing else says it.
        """

    def check_written(self) -> None:
        """Refuses what no message could be written with.

        Raises:
            OptionError: There is no subject, or another option does not go with this side.
        """

    def subject_is_given(self) -> bool:
        """Whether a user names the subject."""

    def older(self, subject: str) -> Iterator[RegisteredSchema]:
        """The schemas of a subject before the newest one, the newer ones first, as far as they are looked at.

        Raises:
            SchemaError: One cannot be understood.
            BrokerError: The registry does not answer, or refuses.
        """

    def newest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject.

        Raises:
            NoSchemaError: There is none.
            SchemaError: It cannot be understood.
            BrokerError: The registry does not answer, or refuses.
        """

    def decoder(self, of_schema: SchemaDecoder, target: pa.Schema) -> Decoder:
        """The decoder of messages of any schema.

        Args:
            of_schema: Compiles the decoder of all messages of one schema; a SchemaError is the fault of each message
                that names this schema.
            target: The columns.
        """

    def record_types(self, of_schema: RecordsOfSchema) -> RecordTypes:
        """What tells the record types of messages of any schema.

        Raises:
            BrokerError: When it is asked: the registry does not answer, or refuses.
        """

    def encoder(self, writing: SchemaEncoder) -> Encoder:
        """Has a schema registered, or looks it up, and compiles the encoder of its messages.

        Raises:
            SchemaError: It is not there, or the registry cannot take it.
            BrokerError: The registry does not answer, or refuses.
        """


@dataclass(frozen=True)
class Registry:
    """A kind of registry.

    Args:
        options: Its options, which each of its formats has.
        of_side: From a side and its format, the registry as that uses it; raises OptionError where an option is missing,
            or two contradict each other.
        payload: What the format has written of a message.
        with_schema_ids: As in `Format`, of one of its formats; None = headers name no schemas.
    """

    options: tuple[Option, ...]
    of_side: Callable[[CodecSpec, RegistryFormat], RegistryOfSide]
    payload: Callable[[bytes], bytes]
    with_schema_ids: Callable[[RegistryFormat], WithSchemaIds] | None = None

    def completed(self, format_: RegistryFormat) -> Format:
        """The format with this registry, which is asked when a message names a new schema, or a row is written.

        Its codecs raise an OptionError when an address is missing, no subject is known, or two options
        contradict each other.
        """
        completed = Format(
            format_.name,
            (*self.options, *format_.options),
            partial(_decoder, format_, self),
            partial(_encoder, format_, self),
            partial(_columns, format_, self),
            fields=format_.fields and partial(_fields, format_.fields, self),
            newest_schema=partial(_newest_schema, format_, self),
            with_schema_ids=self.with_schema_ids and self.with_schema_ids(format_),
            id_is_seen=format_.id_is_seen,
            record_types=partial(_record_types, format_, self),
        )
        return format_.complete(completed) if format_.complete else completed


def _decoder(format_: RegistryFormat, registry: Registry, spec: CodecSpec) -> Decoder:
    of_side = registry.of_side(spec, format_)
    return of_side.decoder(_of_schema(format_, spec, of_side), arrow_schema(spec.schema))


def _of_schema(format_: RegistryFormat, spec: CodecSpec, of_side: RegistryOfSide) -> SchemaDecoder:
    given = format_.given(spec.side, of_side.schema)
    compile_decoder = format_.decoder(spec, given)

    def of_schema(schema: RegisteredSchema, prefix_length: int) -> Decoder:
        format_.check_type(schema)
        compiled = partial(compile_decoder, schema, prefix_length)
        if given:  # the columns are those of this one, whatever messages have
            return compiled()
        columns = partial(format_.columns, schema)
        return watched(spec, schema.origin, of_side.subject, columns, compiled)

    return of_schema


def _record_types(format_: RegistryFormat, registry: Registry, spec: CodecSpec) -> RecordTypes:
    def of_schema(schema: RegisteredSchema) -> Records:
        if schema.type != format_.schema_type:
            return Records((RecordType(f"a schema of the type {schema.type}"),))
        return format_.records(schema)

    return registry.of_side(spec, format_).record_types(of_schema)


def kept_records(of_id: Callable[[bytes], Records]) -> Callable[[bytes], Records | None]:
    """The same, asked once for each id; None = its messages cannot be decoded. An id that is not known is asked for again."""

    @lru_cache(maxsize=_KEPT)
    def known(schema_id: bytes) -> Records | None:
        try:
            return of_id(schema_id)
        except UnknownSchemaError:
            raise
        except SchemaError:
            return None

    def found(schema_id: bytes) -> Records | None:
        try:
            return known(schema_id)
        except UnknownSchemaError:
            return None

    return found


def _encoder(format_: RegistryFormat, registry: Registry, spec: CodecSpec) -> Encoder:
    of_side = registry.of_side(spec, format_)
    of_side.check_written()
    writing = format_.encoder(spec, format_.given(spec.side, of_side.schema))
    registering = _HeaderEncoder if of_side.writes_headers else _RegisteringEncoder
    return registering(partial(of_side.encoder, writing))


class _RegisteringEncoder:
    """Has its schema registered, and is compiled, when there is a row to write."""

    def __init__(self, compile_encoder: Callable[[], Encoder]) -> None:
        self._compile = compile_encoder
        self._compiled: Encoder | None = None

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        return self._encoder().encode(rows)

    def _encoder(self) -> Encoder:
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled


class _HeaderEncoder(_RegisteringEncoder):
    """The same, of messages that name their schema in a header."""

    def header(self) -> tuple[str, bytes]:
        return cast("HeaderEncoder", self._encoder()).header()


def _fields(
    fields: Callable[[bytes], Mapping[str, Any]], registry: Registry, message: bytes
) -> Mapping[str, Any]:
    return fields(registry.payload(message))


def _columns(
    format_: RegistryFormat, registry: Registry, spec: CodecSpec, only: str | None
) -> StructType:
    """Those of the schema that is given, or else of the newest of the subject."""
    of_side = registry.of_side(spec, format_)
    schema = format_.given(spec.side, of_side.schema)
    if schema is not None:
        return format_.columns(schema, spec, only)
    try:
        _, schema = _newest(format_, of_side, spec)
    except NoSchemaError as error:
        raise SchemaError(str(error)) from None
    format_.check_type(schema)
    return format_.columns(schema, spec, only)


def _newest(
    format_: RegistryFormat, of_side: RegistryOfSide, spec: CodecSpec
) -> tuple[str, RegisteredSchema]:
    """The subject that gives the columns of a side, and the schema there that does.

    Where one record type is read, and the newest schema of the default subject is of another one or is not there, these are
    looked at in turn: the subject of `TopicRecordNameStrategy`, older schemas of the default one, and the subject of
    `RecordNameStrategy`.
    """
    if len(spec.record_names) != 1 or of_side.subject_is_given():
        subject = of_side.subject()
        return subject, of_side.newest(subject)
    names = RecordNames(spec.record_names)
    first: NoSchemaError | SchemaError | None = None
    for subject, schemas in _of_one_record(of_side, spec):
        try:
            for schema in schemas:
                found = format_.records(schema).all if schema.type == format_.schema_type else ()
                if any(names.has(each.name) for each in found):
                    return subject, schema
                first = first or _other_record(schema, found, spec)
        except NoSchemaError as error:
            first = first or error
    said = f"{str(first).rstrip('.')}. {_LOOKED_FOR.format(spec.record_names[0])}"
    raise NoSchemaError(said) if isinstance(first, NoSchemaError) else SchemaError(said)


_LOOKED_FOR = (
    "Nor is there a schema of {!r}, the record type that is read, under a name that Confluent's strategies for records give. Is it "
    "the full name, with its namespace?"
)


def _other_record(
    schema: RegisteredSchema, found: Sequence[RecordType], spec: CodecSpec
) -> SchemaError:
    names = [each.name or "(no name)" for each in found] or [f"(of the type {schema.type})"]
    return SchemaError(
        f"The columns of the table are not known: {schema.origin} is one of {shown_names(names)}, and 'scan.record-names' is "
        f"{spec.record_names[0]!r}. Give the columns by .schema(...)"
    )


def _of_one_record(
    of_side: RegistryOfSide, spec: CodecSpec
) -> Iterator[tuple[str, Iterator[RegisteredSchema]]]:
    """The subjects that may have the schema of the record that is read, and what is looked at there."""
    record = spec.record_names[0].removeprefix(".")
    if len(spec.topics) == 1:
        default, with_topic = of_side.subject(), f"{spec.topics[0]}-{record}"
        yield default, _only(of_side, default)
        yield with_topic, _only(of_side, with_topic)
        yield default, of_side.older(default)
    yield record, _only(of_side, record)


def _only(of_side: RegistryOfSide, subject: str) -> Iterator[RegisteredSchema]:
    yield of_side.newest(subject)


def _newest_schema(format_: RegistryFormat, registry: Registry, spec: CodecSpec) -> str:
    """The subject of the newest schema of a side, whose messages can be read into the columns.

    Raises:
        NoSchemaError: The registry has none.
        SchemaError: It cannot be read into the columns.
        BrokerError: The registry does not answer, or refuses.
    """
    of_side = registry.of_side(spec, format_)
    of_schema = _of_schema(format_, spec, of_side)
    subject, schema = _newest(format_, of_side, spec)
    of_schema(schema, 0)
    return subject
