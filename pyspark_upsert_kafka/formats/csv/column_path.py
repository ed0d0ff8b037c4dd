"""The column path: all fields of all messages are parsed as texts, and then each column is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.column_path import Column, read_columns
from pyspark_upsert_kafka.formats.csv.conversions import conversion_of_texts
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.lines import line_parser
from pyspark_upsert_kafka.formats.csv.row_path import field_reader
from pyspark_upsert_kafka.formats.decoding import PartialPath


def compile_column_path(columns: StructType, target: pa.Schema, dialect: Dialect) -> PartialPath:
    """Compiles the column path.

    It refuses a batch with a message that is not plainly one record; and every batch of a dialect that
    the parser does not have.
    """
    readers = [
        Column(field, conversion_of_texts(field.type, dialect), field_reader(column, dialect))
        for column, field in zip(columns, target, strict=True)
    ]
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
