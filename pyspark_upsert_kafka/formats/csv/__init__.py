"""CSV, as Flink's ``csv`` format reads and writes it: one record per message."""

from __future__ import annotations

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.csv.column_path import compile_column_path
from pyspark_upsert_kafka.formats.csv.dialect import OPTIONS, dialect_of
from pyspark_upsert_kafka.formats.csv.encoding import CsvEncoder
from pyspark_upsert_kafka.formats.csv.row_path import row_reader
from pyspark_upsert_kafka.formats.csv.types import check_columns
from pyspark_upsert_kafka.formats.csv.vectorised_path import compile_vectorised_path
from pyspark_upsert_kafka.formats.decoding import RowPath, SplittingDecoder


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: CSV cannot carry a column.
        OptionError: Two options contradict each other.
    """
    dialect = dialect_of(spec)
    check_columns(spec.schema)
    target = arrow_schema(spec.schema)
    row = row_reader(spec.schema, dialect)
    row_path = RowPath(row, target, skip_bad=dialect.ignore_parse_errors)
    vectorised = compile_vectorised_path(spec.schema, target, dialect)
    if vectorised is None:
        return row_path
    by_columns = compile_column_path(spec.schema, target, dialect)
    return SplittingDecoder(vectorised, row_path, by_columns)


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: CSV cannot carry a column.
        OptionError: Two options contradict each other.
    """
    dialect = dialect_of(spec)
    check_columns(spec.schema)
    return CsvEncoder(spec.schema, dialect)


FORMAT = Format("csv", OPTIONS, decoder, encoder)
