"""Avro with a schema registry, as Flink's ``avro-confluent`` format reads and writes it.

A message is a zero byte, the four bytes of its schema's id, and one datum of that schema.
"""

from __future__ import annotations

import json
from functools import cache

import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.decoding import datum_decoder
from pyspark_upsert_kafka.formats.avro.encoding import datum_encoder
from pyspark_upsert_kafka.formats.avro.options import schema_of_columns
from pyspark_upsert_kafka.formats.avro_confluent.options import OPTIONS, settings_of, subject_of
from pyspark_upsert_kafka.formats.avro_confluent.registry import (
    id_of_schema,
    latest_schema,
    schema_of_id,
)
from pyspark_upsert_kafka.formats.avro_confluent.wire import HEAD, decoder_by_id, head_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side; the registry is asked when a message names a new schema.

    Raises:
        SchemaError: The schema is wrong, or Avro cannot carry a column.
        OptionError: The address is missing, or two options contradict each other.
    """
    settings = settings_of(spec)
    # Refuses, while planning, what no message could be read into.
    datum_decoder(settings.schema or _derived(spec), spec.schema)

    def of_id(schema_id: int) -> Decoder:
        writer = schema_of_id(settings.access, schema_id)
        return datum_decoder(writer, spec.schema, reader=settings.schema, skip=HEAD)

    return decoder_by_id(of_id, arrow_schema(spec.schema))


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side; the registry is asked when the first row is written.

    Raises:
        SchemaError: The schema is wrong, or a column does not fit it.
        OptionError: The address is missing, no subject is known, or two options contradict.
    """
    settings = settings_of(spec)
    subject = subject_of(spec, settings)
    schema = settings.schema or _derived(spec)
    finer = None if settings.schema else _finer(spec.side)
    datum_encoder(schema, spec.schema)  # refuses, while planning, what the schema cannot take

    @cache
    def with_head() -> Encoder:
        schema_id = id_of_schema(settings.access, subject, schema, register=settings.auto_register)
        return datum_encoder(schema, spec.schema, prefix=head_of(schema_id), finer=finer)

    def encode(rows: pa.RecordBatch) -> list[bytes]:
        return with_head()(rows)

    return encode


def registered_schema(spec: CodecSpec) -> str:
    """The Avro schema of one side of a table: the one given, or else the newest of its subject.

    Args:
        spec: The side, its options and topics; its columns are what is yet to be known.

    Raises:
        SchemaError: The subject has no Avro schema.
        OptionError: The address is missing, or no subject is known.
        BrokerError: The registry does not answer, or refuses.
    """
    settings = settings_of(spec)
    return settings.schema or latest_schema(settings.access, subject_of(spec, settings))


def _derived(spec: CodecSpec) -> str:
    """As text that equals Flink's: some registries give each text an id of its own."""
    schema = schema_of_columns(spec, legacy_timestamps=True)
    return json.dumps(schema, separators=(",", ":"))


def _finer(side: str) -> str:
    return (
        "Flink's Avro has milliseconds there. Cut the column with date_trunc('MILLISECOND', ...), or "
        f"give '{side}.avro-confluent.schema', with timestamp-micros for it"
    )


FORMAT = Format("avro-confluent", OPTIONS, decoder, encoder)
