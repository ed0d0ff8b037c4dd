"""The vectorised path: the columns of a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.conversion import converted
from pyspark_upsert_kafka.formats.csv.conversions import conversion
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.lines import line_parser
from pyspark_upsert_kafka.formats.decoding import VectorisedPath


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, dialect: Dialect
) -> VectorisedPath | None:
    """Compiles the vectorised path; None when the parser does not have the dialect."""
    conversions = [
        conversion(column, field.type, dialect)
        for column, field in zip(columns, target, strict=True)
    ]
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
