"""Avro without a header, as Flink's ``avro`` format reads and writes it: a message is one datum.

What writes is imported where something is written: polars, which that needs, takes longer to import than all the rest.
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.columns import columns_of, refuse_not_null
from pyspark_upsert_kafka.formats.avro.decoding import datum_decoder, datum_plan
from pyspark_upsert_kafka.formats.avro.decoding.plan import least_bytes
from pyspark_upsert_kafka.formats.avro.decoding.skip import Skipper
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.avro.options import OPTIONS, Settings, origin_of, settings_of
from pyspark_upsert_kafka.formats.avro.schema import parse_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: The schema is wrong, or the columns do not fit it.
    """
    settings = _settings_to_read(spec)
    return datum_decoder(settings.schema, spec.schema, legacy_timestamps=settings.legacy_timestamps)


def check_decoder(spec: CodecSpec) -> None:
    """Raises what `decoder` raises."""
    settings = _settings_to_read(spec)
    datum_plan(settings.schema, spec.schema, legacy_timestamps=settings.legacy_timestamps)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: The schema is wrong, or the columns do not fit it.
    """
    from pyspark_upsert_kafka.formats.avro.encoding import datum_encoder

    settings = settings_of(spec)
    _check_some_bytes(settings.schema)
    return datum_encoder(
        settings.schema,
        spec.schema,
        legacy_timestamps=settings.legacy_timestamps,
        finer=settings.finer,
    )


def columns(spec: CodecSpec, only: str | None) -> StructType | None:
    """The columns that the given schema gives; None = none is given.

    Raises:
        SchemaError: The schema is wrong, or Spark has no type for a field.
    """
    schema = spec.options["schema"]
    return None if schema is None else columns_of(parse_schema(schema, origin_of(spec)), only)


def _settings_to_read(spec: CodecSpec) -> Settings:
    settings = settings_of(spec)
    _check_some_bytes(settings.schema)
    if not spec.options["schema"]:
        refuse_not_null(spec.schema, spec.required, spec.side)
    return settings


def _check_some_bytes(schema: Schema) -> None:
    """An empty message is no datum, so a schema without anything in it has no messages."""
    if not least_bytes(Skipper(schema).node(schema.type, "")):
        raise SchemaError(
            "The 'avro' format needs at least one column or field that takes bytes: a message of this "
            "schema would be empty, which nobody can read."
        )


FORMAT = Format("avro", OPTIONS, decoder, encoder, columns, check_decoder=check_decoder)
