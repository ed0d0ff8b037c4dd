"""JSON, as Flink's ``json`` format reads and writes it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.batches import decode_in_pieces, exact_decoder
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.json.columnar import columnar_reader
from pyspark_upsert_kafka.formats.json.parsed import reader_by_columns
from pyspark_upsert_kafka.formats.json.reading import row_reader
from pyspark_upsert_kafka.formats.json.settings import OPTIONS, settings_of
from pyspark_upsert_kafka.formats.json.types import check_columns
from pyspark_upsert_kafka.formats.json.writing import row_writer


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side.

    Raises:
        SchemaError: JSON cannot carry a column.
        OptionError: Two options contradict each other.
    """
    settings = settings_of(spec)
    check_columns(spec.schema)
    target = arrow_schema(spec.schema)
    row = row_reader(spec.schema, settings)
    exact = exact_decoder(row, target, skip_bad=settings.ignore_parse_errors)
    fast = columnar_reader(spec.schema, target, settings)
    if fast is None:
        return exact

    by_columns = reader_by_columns(spec.schema, target, settings)

    def decode(messages: Sequence[bytes]) -> Decoded:
        return decode_in_pieces(messages, fast, exact, by_columns)

    return decode


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side.

    Raises:
        SchemaError: JSON cannot carry a column.
        OptionError: Two options contradict each other.
    """
    settings = settings_of(spec)
    check_columns(spec.schema)
    return row_writer(spec.schema, settings)


FORMAT = Format("json", OPTIONS, decoder, encoder)
