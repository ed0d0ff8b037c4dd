"""Avro with a schema registry, as Flink's ``avro-confluent`` format reads and writes it.

After its prefix a message is one datum of the schema that the prefix names.
"""

from __future__ import annotations

import json
from functools import partial

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.avro.columns import columns_of
from pyspark_upsert_kafka.formats.avro.decoding import datum_decoder, resolve_columns
from pyspark_upsert_kafka.formats.avro.derive import DERIVED, derived_schema
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.avro.schema import parse_schema
from pyspark_upsert_kafka.formats.avro_confluent.references import with_definitions
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder
from pyspark_upsert_kafka.formats.registry_format import (
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
)


def decoder(spec: CodecSpec, given: RegisteredSchema | None, prefix_length: int) -> SchemaDecoder:
    """What reads one side, resolving each message's schema to the given one.

    Raises:
        SchemaError: The given schema is wrong, or Avro cannot carry a column.
    """
    schema = _parsed(given, spec)
    resolve_columns(schema, spec.schema)
    reader = schema if given else None

    def of_schema(registered: RegisteredSchema) -> Decoder:
        writer = parse_schema(_text(registered), registered.origin)
        return datum_decoder(writer, spec.schema, reader=reader, skip=prefix_length)

    return of_schema


def encoder(name: str, spec: CodecSpec, given: RegisteredSchema | None) -> SchemaEncoder:
    """What writes one side with the given schema, or the one derived from the columns.

    Raises:
        SchemaError: The schema is wrong, or a column does not fit it.
    """
    from pyspark_upsert_kafka.formats.avro.encoding import datum_encoder

    schema = _parsed(given, spec)
    finer = None if given else _finer(f"{spec.side}.{name}.")
    datum_encoder(schema, spec.schema)

    def with_prefix(prefix: bytes) -> Encoder:
        return datum_encoder(schema, spec.schema, prefix=prefix, finer=finer)

    return SchemaEncoder(given.text if given else _derived(spec), with_prefix)


def columns(schema: RegisteredSchema, _: CodecSpec, only: str | None) -> StructType:
    """The columns that an Avro schema gives.

    Raises:
        SchemaError: It is wrong, or Spark has no type for a field.
    """
    return columns_of(parse_schema(_text(schema), schema.origin), only)


def _text(schema: RegisteredSchema) -> str:
    """A schema as JSON that needs no other schema."""
    if not schema.references:
        return schema.text
    return with_definitions(schema.text, [reference.text for reference in schema.references])


def _parsed(given: RegisteredSchema | None, spec: CodecSpec) -> Schema:
    """The given schema, else the one derived from the columns."""
    if given:
        return parse_schema(given.text, given.origin)
    return parse_schema(_derived(spec), DERIVED)


def _derived(spec: CodecSpec) -> str:
    """As text that equals Flink's: some registries give each text an id of its own."""
    schema = derived_schema(spec.schema, spec.required, legacy_timestamps=True)
    return json.dumps(schema, separators=(",", ":"))


def _finer(prefix: str) -> str:
    return (
        "Flink's Avro has milliseconds there. Cut the column with date_trunc('MILLISECOND', ...), or "
        f"give '{prefix}schema', with timestamp-micros for it"
    )


def _format(name: str) -> RegistryFormat:
    """The format under one of its names, with which its options begin."""
    return RegistryFormat(name, "AVRO", "an Avro schema", decoder, partial(encoder, name), columns)


FORMAT = _format("avro-confluent")

AVRO_REGISTRY = _format("avro-registry")
"""The same format under the name that Confluent's Flink has for it."""
