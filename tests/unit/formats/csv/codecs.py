"""Short ways to compile the CSV codecs, and to see what comes out of the vectorised path and the row path."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import DataType, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder
from pyspark_upsert_kafka.formats.csv import FORMAT, dialect_of
from pyspark_upsert_kafka.formats.csv.row_path import row_reader
from pyspark_upsert_kafka.formats.decoding import RowPath
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.json.codecs import batch, columns, seen
from tests.unit.formats.listed import Listed

ENOUGH = 64  # messages that make a batch take the vectorised path
NAMES = {option.name.replace("-", "_"): option.name for option in FORMAT.options}


def spec(schema: StructType, side: str = "value", **options: Any) -> CodecSpec:
    """A spec with options by their Python names: ``null_literal="null"``."""
    given = {NAMES[name]: value for name, value in options.items()}
    return codec_spec(FORMAT, schema, side, given)


def decoder(schema: StructType, **options: Any) -> Decoder:
    """The decoder of the format, as a query has it."""
    return FORMAT.decoder(spec(schema, **options))


def exactly(schema: StructType, **options: Any) -> Decoder:
    """The row path alone."""
    dialect = dialect_of(spec(schema, **options))
    row = row_reader(schema, dialect)
    return RowPath(row, arrow_schema(schema), skip_bad=dialect.ignore_parse_errors)


def encoder(schema: StructType, side: str = "value", **options: Any) -> Listed:
    """The encoder of the format, as a query has it."""
    return Listed(FORMAT.encoder(spec(schema, side, **options)))


def read_rows(schema: StructType, text: str | bytes, **options: Any) -> Any:
    """The row of a message, or why there is none, or "skipped"; fails when the two paths differ."""
    message = text if isinstance(text, bytes) else text.encode()
    exact = exactly(schema, **options).decode
    many = [message] * ENOUGH
    assert seen(decoder(schema, **options).decode(many)) == seen(exact(many))
    decoded = exact([message])
    if decoded.skipped:
        return "skipped"
    return decoded.errors.get(0) or tuple(c[0].as_py() for c in decoded.rows.columns)


def read(kind: DataType, text: str | bytes, **options: Any) -> Any:
    """The value of the middle one of three fields, or why there is none."""
    data = text if isinstance(text, bytes) else text.encode()
    delimiter = options.get("field_delimiter", ",").encode()
    schema = StructType().add("a", "string").add("c", kind).add("b", "string")
    row = read_rows(schema, delimiter.join([b"A", data, b"B"]), **options)
    if isinstance(row, str):
        return row
    assert (row[0], row[2]) == ("A", "B")
    return row[1]


def written(kind: DataType, *values: Any, side: str = "value", **options: Any) -> list[str]:
    """The field that each value is written as."""
    schema = columns(c=kind, end=kind)
    nothing = batch(schema, *((value, None) for value in values))
    end = f"{options.get('field_delimiter', ',')}{options.get('null_literal') or ''}"
    texts = [message.decode() for message in encoder(schema, side, **options).encode(nothing)]
    assert all(text.endswith(end) for text in texts)
    return [text.removesuffix(end) for text in texts]
