"""Avro data to rows."""

from __future__ import annotations

from collections.abc import Sequence
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
from pyspark_upsert_kafka.formats.batches import UnreadableError, batch_of, exact_decoder
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, TooManyMessagesError

# The fast way costs some thirty microseconds a field, however few the messages are.
_TOO_FEW = 64


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
    read = value_reader(plan, skip)

    def row(message: bytes) -> Sequence[Any]:
        if not message:
            raise UnreadableError("the message is empty")
        if len(message) < skip:
            raise UnreadableError(f"the message ends within the {skip} bytes before the datum")
        values = read(message)
        return [values[name] for name in target.names]

    exact = exact_decoder(row, target)
    fast = columnar_reader(plan, pa.struct(list(target)), skip)
    if fast is None:
        return _limited(exact, plan)

    def decode(messages: Sequence[bytes]) -> Decoded:
        if len(messages) < _TOO_FEW:
            return exact(messages)
        rows, left = fast(messages)
        batch = batch_of(rows.flatten(), target, len(rows))
        places = np.flatnonzero(left).tolist()
        if not places:
            return Decoded(batch)
        others = exact([messages[at] for at in places])
        errors = {places[at]: why for at, why in others.errors.items()}
        read_late = np.delete(places, list(others.errors))
        return Decoded(_inserted(batch, np.flatnonzero(~left), others.rows, read_late), errors)

    return _limited(decode, plan)


def _limited(decode: Decoder, plan: Plan) -> Decoder:
    """Refuses messages to whose rows the reader's defaults may add too much together."""
    for_each, for_each_byte = constant_bytes(plan.row), item_constant_bytes(plan.row)
    if not for_each and not for_each_byte:
        return decode

    def limited(messages: Sequence[bytes]) -> Decoded:
        count = len(messages)
        added = for_each * count + for_each_byte * sum(map(len, messages))
        if added > MOST_ADDED and count > 1:
            raise TooManyMessagesError(max(1, int(count * MOST_ADDED / added)))
        return decode(messages)

    return limited


def _inserted(rows: pa.RecordBatch, at: Any, others: pa.RecordBatch, others_at: Any) -> Any:
    """The rows of both batches in the order of their places."""
    if not others_at.size:
        return rows
    order = pa.array(np.argsort(np.concatenate([at, others_at])))
    columns = [pa.concat_arrays([a, b]).take(order) for a, b in zip(rows, others, strict=True)]
    return batch_of(columns, rows.schema, len(order))
