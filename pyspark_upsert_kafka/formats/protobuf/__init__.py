"""Protocol buffers, by a descriptor file, as Flink's ``protobuf`` format reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.decoding import FallbackDecoder, RowPath
from pyspark_upsert_kafka.formats.protobuf.columns import columns_of
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_descriptor
from pyspark_upsert_kafka.formats.protobuf.encoding import ProtobufEncoder
from pyspark_upsert_kafka.formats.protobuf.row_path import row_reader
from pyspark_upsert_kafka.formats.protobuf.settings import OPTIONS, settings_of
from pyspark_upsert_kafka.formats.protobuf.vectorised_path import compile_vectorised_path

# The vectorised path has a fixed cost; under this many messages the row path costs less.
_MIN_VECTORISED = 128


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: A column does not fit the message.
        OptionError: The message cannot be found.
    """
    settings = settings_of(spec)
    descriptor = message_descriptor(settings)
    columns = columns_of(descriptor, spec.schema, defaults=settings.read_default_values)
    target = arrow_schema(spec.schema)
    row_path = RowPath(row_reader(descriptor, columns), target, settings.ignore_parse_errors)
    read = compile_vectorised_path(descriptor, columns, target.types)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        columnar = read(messages)
        if columnar is None:
            return None
        arrays, fallback = columnar
        rows = batch_of(arrays, target, len(messages))
        return (rows.filter(pa.array(~fallback)) if fallback.any() else rows), fallback

    return FallbackDecoder(vectorised, row_path, _MIN_VECTORISED)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: A column does not fit the message, or a required field has no column.
        OptionError: The message cannot be found.
    """
    settings = settings_of(spec)
    descriptor = message_descriptor(settings)
    columns = columns_of(descriptor, spec.schema, defaults=False)
    return ProtobufEncoder(descriptor, columns, settings.null_string)


FORMAT = Format("protobuf", OPTIONS, decoder, encoder)
