"""Protocol buffers, by a descriptor file, as Flink's ``protobuf`` format reads and writes them.

Names, meaning and defaults of options are those of Flink's ``PbFormatOptions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import any_text, boolean
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder
from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    DESCRIPTOR_OPTIONS,
    message_descriptor,
)
from pyspark_upsert_kafka.formats.protobuf.field_types import columns_of
from pyspark_upsert_kafka.formats.protobuf.protobuf_encoder import ProtobufEncoder
from pyspark_upsert_kafka.formats.protobuf.row_path import measure_of, row_reader
from pyspark_upsert_kafka.formats.protobuf.vectorised_path import compile_vectorised_path

VALUE_OPTIONS = (
    Option("ignore-parse-errors", boolean, False, "A message that cannot be read is skipped."),
    Option(
        "read-default-values",
        boolean,
        False,
        "A field that is missing in a message has its default value, not NULL. A proto3 field that is neither `optional` nor "
        "a message always has its default.",
    ),
    Option(
        "write-null-string-literal",
        any_text,
        "",
        "The text that is written for a NULL string in an array or a map, because Protobuf has no NULL there.",
        shown_default="the empty text",
    ),
)
"""Options on how values are read and written, which do not depend on where the message is described."""

# The vectorised path has a fixed cost; under this many messages the row path costs less, unless they have many items.
_MIN_VECTORISED = 128
_MANY_ITEMS_BYTES = 1024 * 1024


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: A column does not fit the message.
        OptionError: The message cannot be found.
    """
    return message_decoder(message_descriptor(spec), spec)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: A column does not fit the message, or a required field has no column.
        OptionError: The message cannot be found.
    """
    return message_encoder(message_descriptor(spec), spec)


FORMAT = Format("protobuf", (*DESCRIPTOR_OPTIONS, *VALUE_OPTIONS), decoder, encoder)


def message_decoder(descriptor: Any, spec: CodecSpec, *, skip: int = 0) -> Decoder:
    """Compiles the decoder of one message.

    Args:
        descriptor: The message's ``google.protobuf.descriptor.Descriptor``.
        spec: The columns, and the values of VALUE_OPTIONS.
        skip: How many bytes stand before the message.

    Raises:
        SchemaError: A column does not fit the message.
    """
    columns = columns_of(descriptor, spec.schema, defaults=spec.options["read-default-values"])
    target = arrow_schema(spec.schema)
    row = row_reader(descriptor, columns)
    row_path = RowPath(
        (lambda message: row(message[skip:])) if skip else row,
        target,
        spec.options["ignore-parse-errors"],
    )
    read = compile_vectorised_path(descriptor, columns, target.types, skip)
    measure = measure_of(descriptor, columns, target.types, skip)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        columnar = read(messages)
        if columnar is None:
            return None
        arrays, fallback = columnar
        return batch_of(arrays, target, len(messages)), fallback

    def is_small(messages: Sequence[bytes]) -> bool:
        return (
            len(messages) < _MIN_VECTORISED and measure.items.at_most(messages) < _MANY_ITEMS_BYTES
        )

    decoder = PathsDecoder(vectorised, row_path, is_small=is_small)
    return BoundedDecoder(decoder, target, measure, skip_bad=spec.options["ignore-parse-errors"])


def message_encoder(descriptor: Any, spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one message.

    Args:
        descriptor: The message's ``google.protobuf.descriptor.Descriptor``.
        spec: The columns, and the values of VALUE_OPTIONS.

    Raises:
        SchemaError: A column does not fit the message, or a required field has no column.
    """
    columns = columns_of(descriptor, spec.schema, defaults=False)
    return ProtobufEncoder(descriptor, columns, spec.options["write-null-string-literal"])
