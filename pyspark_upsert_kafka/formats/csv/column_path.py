"""The vectorised path and the column path: one parser reads all messages together.

The vectorised path has it read each column as its type; the column path as texts, which are then read column by
column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.leaf_readers import leaf
from pyspark_upsert_kafka.formats.csv.line_parser import line_parser
from pyspark_upsert_kafka.formats.csv.row_path import field_reader
from pyspark_upsert_kafka.formats.decoding import PartialPath, VectorisedPath
from pyspark_upsert_kafka.formats.parsed_columns import (
    Column,
    Conversion,
    Convert,
    converted,
    read_columns,
)


def _conversion(column: StructField, target: pa.Field, dialect: Dialect) -> Conversion:
    """How a column is read."""
    if pa.types.is_nested(target.type):
        return Conversion(pa.string(), _one_by_one(column, target.type, dialect))
    return leaf(column.dataType, dialect).column


def _one_by_one(column: StructField, kind: pa.DataType, dialect: Dialect) -> Convert:
    """Arrays and structs: each text as the row path reads it."""
    read = field_reader(column, dialect)
    return lambda texts: pa.array([read(text) for text in texts.to_pylist()], kind)


def compile_column_path(columns: StructType, target: pa.Schema, dialect: Dialect) -> PartialPath:
    """Compiles the column path.

    It refuses a batch with a message that is not plainly one record; and every batch of a dialect that
    the parser does not have.
    """
    readers = [_column(c, field, dialect) for c, field in zip(columns, target, strict=True)]
    parse = line_parser([pa.string()] * len(readers), dialect)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        if parse is None:
            return None
        try:
            texts = parse(messages)
        except ValueError:
            return None
        return read_columns(readers, texts, len(messages))

    return read


def _column(column: StructField, target: pa.Field, dialect: Dialect) -> Column:
    """How a column is read from texts; arrays and structs one by one."""
    is_nested = pa.types.is_nested(target.type)
    convert = None if is_nested else leaf(column.dataType, dialect).from_texts
    return Column(target, convert, field_reader(column, dialect))


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, dialect: Dialect
) -> VectorisedPath | None:
    """Compiles the vectorised path; None when the parser does not have the dialect."""
    conversions = [_conversion(c, f, dialect) for c, f in zip(columns, target, strict=True)]
    parse = line_parser([each.parsed for each in conversions], dialect)
    if parse is None:
        return None

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            arrays = converted(parse(messages), conversions, target)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of(arrays, target, len(messages))

    return read
