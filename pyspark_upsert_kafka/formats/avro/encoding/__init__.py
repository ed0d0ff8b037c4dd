"""Rows to Avro, column by column: each column becomes bytes, and the bytes are joined.

There is a vectorised path only, and no row path: every type has a vectorised writer, so equal rows
give equal bytes whatever stands beside them. The schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.avro.encoding.type_mapping import Timestamps, Writer
from pyspark_upsert_kafka.formats.avro.encoding.writers import datum_writer
from pyspark_upsert_kafka.formats.avro.model import Schema
from pyspark_upsert_kafka.formats.binary.byte_parts import constant, joined
from pyspark_upsert_kafka.formats.codec import Encoder


def datum_encoder(
    schema: Schema,
    columns: StructType,
    *,
    prefix: bytes = b"",
    legacy_timestamps: bool = True,
    finer: str | None = None,
) -> Encoder:
    """Compiles an encoder that writes each row as one datum of a schema.

    Args:
        schema: What to write: a record with a field for every column, or another type for an only
            column, which then is the whole datum.
        columns: The columns of the rows.
        prefix: What every message begins with.
        legacy_timestamps: Whether local and zoned timestamps go into each other.
        finer: What to do about a timestamp finer than its type's milliseconds, which then is an
            error; None = it is rounded down.

    Raises:
        SchemaError: The columns do not fit the schema.
    """
    timestamps = Timestamps(legacy_timestamps, finer)
    return _DatumEncoder(datum_writer(schema, columns, timestamps), prefix)


@dataclass(frozen=True)
class _DatumEncoder:
    write: Writer
    prefix: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        parts = self.write(rows.to_struct_array())
        prefix = constant(self.prefix, rows.num_rows)
        return joined([prefix, *parts], rows.num_rows)
