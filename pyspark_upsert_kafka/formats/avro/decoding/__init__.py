"""Avro data to rows.

What reads many messages at once is imported where that is compiled, not where a query is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.table.arrow import arrow_schema
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
from pyspark_upsert_kafka.formats.decoding import FallbackDecoder, RowPath, UnreadableError

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
    """How messages that hold one datum each are read.

    Args:
        writer: The schema that the data are written with.
        columns: The columns, which find their fields by name.
        reader: A schema that stands between the two, with defaults and aliases.
        legacy_timestamps: Read local and other timestamps alike; else a mismatch is refused.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    # What has no Avro type is not read from one that happens to look like it, as a VARIANT's two halves.
    derived_schema(columns, frozenset(), legacy_timestamps=legacy_timestamps)
    return resolve(writer, reader, arrow_schema(columns), strict_zones=not legacy_timestamps)


def datum_decoder(
    writer: Schema,
    columns: StructType,
    *,
    reader: Schema | None = None,
    skip: int = 0,
    legacy_timestamps: bool = True,
) -> Decoder:
    """Compiles the decoder of messages that hold one datum each.

    Args:
        writer: Like the other arguments but ``skip``, as `resolve_columns` takes it.
        columns: The columns.
        reader: A schema in between.
        skip: How many bytes stand before the datum.
        legacy_timestamps: Whether timestamps are read alike.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    from pyspark_upsert_kafka.formats.avro.decoding.vectorised_path import vectorised_reader

    schema = resolve_columns(writer, columns, reader=reader, legacy_timestamps=legacy_timestamps)
    target = arrow_schema(columns)
    row_path = _RowPath(_row_reader(schema, skip), target)
    measure = Measure(constants=constant_bytes(schema.row))
    read = vectorised_reader(schema, pa.struct(list(target)), skip)
    if read is None:
        return BoundedDecoder(row_path, target, measure)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        rows, fallback = read(messages)
        return batch_of(rows.flatten(), target, len(rows)), fallback

    decoder = FallbackDecoder(vectorised, row_path, _MIN_VECTORISED)
    return BoundedDecoder(decoder, target, measure)


@dataclass(frozen=True)
class _RowPath:
    """The row path, with a budget for each batch."""

    read: Callable[[bytes, Budget], Sequence[Any]]
    schema: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        budget = Budget(len(messages), begun=0)
        return RowPath(lambda message: self.read(message, budget), self.schema).decode(messages)


def _row_reader(schema: ResolvedSchema, skip: int) -> Callable[[bytes, Budget], Sequence[Any]]:
    read = value_reader(schema, skip)

    def row(message: bytes, budget: Budget) -> Sequence[Any]:
        budget.begun += 1
        if not message:
            raise UnreadableError("the message is empty")
        if len(message) < skip:
            raise UnreadableError(f"the message ends within the {skip} bytes before the datum")
        values: Sequence[Any] = read(message, budget)
        return values

    return row
