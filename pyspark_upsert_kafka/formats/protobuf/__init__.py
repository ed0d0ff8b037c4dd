"""Protocol buffers, by a descriptor file, as Flink's ``protobuf`` format reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.batches import batch_of, exact_decoder
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.protobuf.columnar import columnar_reader
from pyspark_upsert_kafka.formats.protobuf.columns import columns_of
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_descriptor
from pyspark_upsert_kafka.formats.protobuf.reading import row_reader
from pyspark_upsert_kafka.formats.protobuf.settings import OPTIONS, settings_of
from pyspark_upsert_kafka.formats.protobuf.writing import row_writer

# The fast way has a fixed cost; under this many messages the exact way costs less.
_TOO_FEW = 128


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
    row = row_reader(descriptor, columns)
    exact = exact_decoder(row, target, skip_bad=settings.ignore_parse_errors)
    fast = columnar_reader(descriptor, columns, target.types)

    def decode(messages: Sequence[bytes]) -> Decoded:
        columnar = fast(messages) if len(messages) >= _TOO_FEW else None
        if columnar is None:
            return exact(messages)
        arrays, odd = columnar
        rows = batch_of(arrays, target, len(messages))
        if not odd.any():
            return Decoded(rows)
        at = np.flatnonzero(odd)
        return _mended(rows, at, exact([messages[i] for i in at.tolist()]))

    return decode


def _mended(rows: pa.RecordBatch, at: np.ndarray, exact: Decoded) -> Decoded:
    """The rows with those at some places as the exact way has them, or without them."""
    unread = np.zeros(len(at), np.bool_)
    unread[[*exact.errors, *exact.skipped]] = True
    source, kept = np.arange(len(rows)), np.ones(len(rows), np.bool_)
    source[at[~unread]] = len(rows) + np.arange(exact.rows.num_rows)
    kept[at[unread]] = False
    wanted = pa.array(source[kept])
    both = zip(rows.columns, exact.rows.columns, strict=True)
    return Decoded(
        batch_of([pa.concat_arrays(pair).take(wanted) for pair in both], rows.schema, len(wanted)),
        errors={int(at[i]): why for i, why in exact.errors.items()},
        skipped=frozenset(int(at[i]) for i in exact.skipped),
    )


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: A column does not fit the message, or a required field has no column.
        OptionError: The message cannot be found.
    """
    settings = settings_of(spec)
    descriptor = message_descriptor(settings)
    columns = columns_of(descriptor, spec.schema, defaults=False)
    return row_writer(descriptor, columns, settings.null_string)


FORMAT = Format("protobuf", OPTIONS, decoder, encoder)
