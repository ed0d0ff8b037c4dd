"""Avro data to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.decoding.columnar import columnar_reader
from pyspark_upsert_kafka.formats.avro.decoding.exact import MOST_ADDED, value_reader
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    Plan,
    constant_bytes,
    item_constant_bytes,
)
from pyspark_upsert_kafka.formats.avro.decoding.resolution import resolved
from pyspark_upsert_kafka.formats.avro.derive import derived_schema
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, TooManyMessagesError
from pyspark_upsert_kafka.formats.decoding import FallbackDecoder, RowPath, UnreadableError

# The vectorised path costs some thirty microseconds a field, however few the messages are.
_MIN_VECTORISED = 64


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
        writer: The schema that the data are written with.
        columns: The columns, which find their fields by name.
        reader: A schema that stands between the two, with defaults and aliases.
        skip: How many bytes stand before the datum.
        legacy_timestamps: Read local and other timestamps alike; else a mismatch is refused.

    Raises:
        SchemaError: A column does not fit the schema.
    """
    # What has no Avro type is not read from one that happens to look like it, as a VARIANT's two halves.
    derived_schema(columns, frozenset(), legacy_timestamps=legacy_timestamps)
    target = arrow_schema(columns)
    plan = resolved(writer, reader, target, strict_zones=not legacy_timestamps)
    read_value = value_reader(plan, skip)

    def row(message: bytes) -> Sequence[Any]:
        if not message:
            raise UnreadableError("the message is empty")
        if len(message) < skip:
            raise UnreadableError(f"the message ends within the {skip} bytes before the datum")
        values = read_value(message)
        return [values[name] for name in target.names]

    row_path = RowPath(row, target)
    read = columnar_reader(plan, pa.struct(list(target)), skip)
    if read is None:
        return _limited(row_path, plan)

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        rows, left = read(messages)
        return batch_of(rows.flatten(), target, len(rows)), left

    return _limited(FallbackDecoder(vectorised, row_path, _MIN_VECTORISED), plan)


def _limited(decoder: Decoder, plan: Plan) -> Decoder:
    """Refuses messages to whose rows the reader's defaults may add too much together."""
    for_each, for_each_byte = constant_bytes(plan.row), item_constant_bytes(plan.row)
    return _Limited(decoder, for_each, for_each_byte) if for_each or for_each_byte else decoder


@dataclass(frozen=True)
class _Limited:
    decoder: Decoder
    for_each: int
    for_each_byte: float

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        count = len(messages)
        added = self.for_each * count + self.for_each_byte * sum(map(len, messages))
        if added > MOST_ADDED and count > 1:
            raise TooManyMessagesError(max(1, int(count * MOST_ADDED / added)))
        return self.decoder.decode(messages)
