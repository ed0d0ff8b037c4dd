"""Avro decoders, encoders and columns of schemas as JSON, parsed or not."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.avro import avro_decoder, avro_encoder
from pyspark_upsert_kafka.formats.avro.avro_columns import columns_of as columns_of_parsed
from pyspark_upsert_kafka.formats.avro.avro_schema import Source, parse_schema
from pyspark_upsert_kafka.formats.codec import Decoder
from tests.unit.formats.listed import Listed


def datum_decoder(
    writer: Source, kinds: StructType, *, reader: Source | None = None, **more: Any
) -> Decoder:
    """The decoder of one datum each."""
    reads = None if reader is None else parse_schema(reader)
    return avro_decoder.datum_decoder(parse_schema(writer), kinds, reader=reads, **more)


def datum_encoder(schema: Source, kinds: StructType, **more: Any) -> Listed:
    """The encoder of one datum each."""
    return Listed(avro_encoder.datum_encoder(parse_schema(schema), kinds, **more))


def columns_of(schema: Source, only: str | None = None) -> StructType:
    """The columns that a schema means."""
    return columns_of_parsed(parse_schema(schema), only)
