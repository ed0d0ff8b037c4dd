"""A format whose messages name their schema, completed with a registry: then it is a format like any other.

How a message names its schema, and what the registry is asked, is for each kind of registry to say: see `RegistryOfSide`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.formats.codec import (
    CodecSpec,
    Decoder,
    Encoder,
    Format,
    HeaderEncoder,
    WithSchemaIds,
)
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
)


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

    def newest(self) -> RegisteredSchema:
        """The newest schema of the subject.

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
        )
        return format_.complete(completed) if format_.complete else completed


def _decoder(format_: RegistryFormat, registry: Registry, spec: CodecSpec) -> Decoder:
    of_side = registry.of_side(spec, format_)
    return of_side.decoder(_of_schema(format_, spec, of_side), arrow_schema(spec.schema))


def _of_schema(format_: RegistryFormat, spec: CodecSpec, of_side: RegistryOfSide) -> SchemaDecoder:
    compile_decoder = format_.decoder(spec, format_.given(spec.side, of_side.schema))

    def of_schema(schema: RegisteredSchema, prefix_length: int) -> Decoder:
        format_.check_type(schema)
        return compile_decoder(schema, prefix_length)

    return of_schema


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
    fields: Callable[[bytes], Collection[str]], registry: Registry, message: bytes
) -> Collection[str]:
    return fields(registry.payload(message))


def _columns(
    format_: RegistryFormat, registry: Registry, spec: CodecSpec, only: str | None
) -> StructType:
    """Those of the schema that is given, or else of the newest of the subject."""
    of_side = registry.of_side(spec, format_)
    schema = format_.given(spec.side, of_side.schema)
    if schema is None:
        try:
            schema = of_side.newest()
        except NoSchemaError as error:
            raise SchemaError(str(error)) from None
        format_.check_type(schema)
    return format_.columns(schema, spec, only)


def _newest_schema(format_: RegistryFormat, registry: Registry, spec: CodecSpec) -> str:
    """The subject of the newest schema of a side, whose messages can be read into the columns.

    Raises:
        NoSchemaError: The registry has none.
        SchemaError: It cannot be read into the columns.
        BrokerError: The registry does not answer, or refuses.
    """
    of_side = registry.of_side(spec, format_)
    subject = of_side.subject()
    of_schema = _of_schema(format_, spec, of_side)
    of_schema(of_side.newest(), 0)
    return subject
