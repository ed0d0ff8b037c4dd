"""Decoders of Avro: by the vectorised path, and by the row path what that leaves.

The vectorised path is imported when a decoder is compiled, not when a query is planned: each import costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.decoding.resolution import resolve
from pyspark_upsert_kafka.formats.avro.decoding.resolved_schema import (
    ResolvedSchema,
    constant_bytes,
)
from pyspark_upsert_kafka.formats.avro.decoding.row_path import value_reader
from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder, Budget, Measure
from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath, UnreadableError

if TYPE_CHECKING:
    import numpy as np

# The vectorised path costs some thirty microseconds a field, however few the messages are.
_MIN_VECTORISED = 64


def resolve_columns(
    writer: Schema,
    columns: StructType,
    *,
    reader: Schema | None = None,
    legacy_timestamps: bool = True,
) -> ResolvedSchema:
    """How messages that hold one datum each are read into columns.

    Args:
        writer: The schema that the messages are written with.
        columns: The columns; each is the field of its name.
        reader: The reader's schema, which has defaults and aliases; None = there is none.
        legacy_timestamps: Read a local timestamp into a TIMESTAMP, and the reverse; else that is refused.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    # Refuses a column that Avro has no type for: a VARIANT, for one, looks like a record of two binaries.
    derived_schema(columns, frozenset(), legacy_timestamps=legacy_timestamps)
    return resolve(writer, reader, arrow_schema(columns), strict_zones=not legacy_timestamps)


def datum_decoder(
    writer: Schema,
    columns: StructType,
    *,
    reader: Schema | None = None,
    prefix_length: int = 0,
    legacy_timestamps: bool = True,
) -> Decoder:
    """Compiles the decoder of messages that hold one datum each.

    Args:
        writer: See `resolve_columns`.
        columns: See there.
        reader: See there.
        prefix_length: How many bytes stand before the datum.
        legacy_timestamps: See `resolve_columns`.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    from pyspark_upsert_kafka.formats.avro.decoding.vectorised_path import vectorised_reader

    schema = resolve_columns(writer, columns, reader=reader, legacy_timestamps=legacy_timestamps)
    target = arrow_schema(columns)
    row_path = _RowPath(_row_reader(schema, prefix_length), target)
    measure = Measure(constants=constant_bytes(schema.row))
    read = vectorised_reader(schema, pa.struct(list(target)), prefix_length)
    if read is None:
        return BoundedDecoder(row_path, target, measure)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        rows, fallback = read(messages)
        return batch_of(rows.flatten(), target, len(rows)), fallback

    decoder = PathsDecoder(
        vectorised, row_path, is_small=lambda messages: len(messages) < _MIN_VECTORISED
    )
    return BoundedDecoder(decoder, target, measure)


@dataclass(frozen=True)
class _RowPath:
    """The row path, with a budget for each batch."""

    read: Callable[[bytes, Budget], Sequence[Any]]
    schema: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        budget = Budget(len(messages), begun=0)
        return RowPath(lambda message: self.read(message, budget), self.schema).decode(messages)


def _row_reader(
    schema: ResolvedSchema, prefix_length: int
) -> Callable[[bytes, Budget], Sequence[Any]]:
    read = value_reader(schema, prefix_length)

    def row(message: bytes, budget: Budget) -> Sequence[Any]:
        budget.begun += 1
        if not message:
            raise UnreadableError("the message is empty")
        if len(message) < prefix_length:
            raise UnreadableError(
                f"the message ends within the {prefix_length} bytes before the datum"
            )
        values: Sequence[Any] = read(message, budget)
        return values

    return row
