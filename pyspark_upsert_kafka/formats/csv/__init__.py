"""CSV, as Flink's ``csv`` format reads and writes it: one record per message."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.batches import decode_in_pieces, exact_decoder
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.csv.columnar import columnar_reader, reader_by_columns
from pyspark_upsert_kafka.formats.csv.dialect import OPTIONS, dialect_of
from pyspark_upsert_kafka.formats.csv.reading import row_reader
from pyspark_upsert_kafka.formats.csv.types import check_columns
from pyspark_upsert_kafka.formats.csv.writing import row_writer


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
    exact = exact_decoder(row, target, skip_bad=dialect.ignore_parse_errors)
    fast = columnar_reader(spec.schema, target, dialect)
    if fast is None:
        return exact

    by_columns = reader_by_columns(spec.schema, target, dialect)

    def decode(messages: Sequence[bytes]) -> Decoded:
        return decode_in_pieces(messages, fast, exact, by_columns)

    return decode


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: CSV cannot carry a column.
        OptionError: Two options contradict each other.
    """
    dialect = dialect_of(spec)
    check_columns(spec.schema)
    return row_writer(spec.schema, dialect)


FORMAT = Format("csv", OPTIONS, decoder, encoder)
