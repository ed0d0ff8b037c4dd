"""CSV, as Flink's ``csv`` format reads and writes it: one record per message.

What compiles and runs the codecs is imported by the tasks that use them, not where a query is planned.
"""

from __future__ import annotations

import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.csv.dialect import OPTIONS, Dialect, dialect_of
from pyspark_upsert_kafka.formats.csv.types import check_columns


def check(spec: CodecSpec) -> Dialect:
    """The dialect of one side that can be read and written.

    Raises:
        SchemaError: CSV cannot carry a column.
        OptionError: Two options contradict each other.
    """
    dialect = dialect_of(spec)
    check_columns(spec.schema)
    return dialect


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.csv.column_path import compile_column_path
    from pyspark_upsert_kafka.formats.csv.row_path import row_reader
    from pyspark_upsert_kafka.formats.csv.vectorised_path import compile_vectorised_path
    from pyspark_upsert_kafka.formats.decoded_size import BoundedDecoder, item_bytes, items_by_bytes
    from pyspark_upsert_kafka.formats.decoding import RowPath, SplittingDecoder

    dialect = check(spec)
    target = arrow_schema(spec.schema)
    row = row_reader(spec.schema, dialect)
    row_path = RowPath(row, target, skip_bad=dialect.ignore_parse_errors)
    vectorised = compile_vectorised_path(spec.schema, target, dialect)
    paths: Decoder = row_path
    if vectorised is not None:
        by_columns = compile_column_path(spec.schema, target, dialect)
        paths = SplittingDecoder(vectorised, row_path, by_columns)
    # An element takes one byte, its delimiter.
    widest = max((item_bytes(kind) for kind in target.types if pa.types.is_list(kind)), default=0)
    return BoundedDecoder(
        paths, target, items_by_bytes(widest), skip_bad=dialect.ignore_parse_errors
    )


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side. Raises as `check` does."""
    from pyspark_upsert_kafka.formats.csv.encoding import CsvEncoder

    return CsvEncoder(spec.schema, check(spec))


FORMAT = Format("csv", OPTIONS, decoder, encoder, check_decoder=check, check_encoder=check)
