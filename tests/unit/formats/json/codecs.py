"""Short ways to say a schema, to compile the JSON codecs, and to see what comes out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import RowPath
from pyspark_upsert_kafka.formats.json import FORMAT, settings_of
from pyspark_upsert_kafka.formats.json.row_path import row_reader
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import Listed

NAMES = {option.name.replace("-", "_").replace(".", "_"): option.name for option in FORMAT.options}


def columns(**kinds: DataType) -> StructType:
    """A schema of nullable columns."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def required(**kinds: DataType) -> StructType:
    """A schema of NOT NULL columns."""
    return StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])


def spec(schema: StructType, side: str = "value", **options: Any) -> CodecSpec:
    """A spec with options by their Python names: ``ignore_parse_errors=True``."""
    given = {NAMES[name]: value for name, value in options.items()}
    return codec_spec(FORMAT, schema, side, given)


def decoder(schema: StructType, **options: Any) -> Decoder:
    """The decoder of the format, as a query has it."""
    return FORMAT.decoder(spec(schema, **options))


def exactly(schema: StructType, **options: Any) -> Decoder:
    """The row path alone."""
    settings = settings_of(spec(schema, **options))
    row = row_reader(schema, settings)
    return RowPath(row, arrow_schema(schema), skip_bad=settings.ignore_parse_errors)


def encoder(schema: StructType, side: str = "value", **options: Any) -> Listed:
    """The encoder of the format, as a query has it."""
    return Listed(FORMAT.encoder(spec(schema, side, **options)))


def batch(schema: StructType, *rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Rows as Spark hands them over."""
    target = arrow_schema(schema)
    values = list(zip(*rows, strict=True)) or [()] * len(target)
    arrays = [pa.array(v, field.type) for v, field in zip(values, target, strict=True)]
    return batch_of(arrays, target, len(rows))


def seen(decoded: Decoded) -> tuple[Any, ...]:
    """All of a result in a form that compares well."""
    return values(decoded.rows), decoded.rows.num_rows, dict(decoded.errors), decoded.skipped


def values(rows: pa.RecordBatch) -> str:
    """Values of a batch in a form that compares well: NaN equals itself, -0.0 differs from 0.0."""
    return repr([column.to_pylist() for column in rows.columns])
