"""Avro without a header, as Flink's ``avro`` format reads and writes it: a message is one datum."""

from __future__ import annotations

from pyspark_upsert_kafka.formats.avro.decoding import datum_decoder
from pyspark_upsert_kafka.formats.avro.encoding import datum_encoder
from pyspark_upsert_kafka.formats.avro.options import OPTIONS, settings_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: The schema is wrong, or the columns do not fit it.
    """
    settings = settings_of(spec)
    return datum_decoder(settings.schema, spec.schema, legacy_timestamps=settings.legacy_timestamps)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: The schema is wrong, or the columns do not fit it.
    """
    settings = settings_of(spec)
    return datum_encoder(settings.schema, spec.schema, legacy_timestamps=settings.legacy_timestamps)


FORMAT = Format("avro", OPTIONS, decoder, encoder)
