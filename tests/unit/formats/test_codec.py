"""What a format must implement: no more than what one of forty lines has, with a row path alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector import format_catalog
from pyspark_upsert_kafka.connector.format_catalog import check_read_sides, format_options
from pyspark_upsert_kafka.connector.reading.message_rows import RowDecoder
from pyspark_upsert_kafka.connector.writing.row_encoding import RowEncoder
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import boolean
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_read, table_to_write
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.decoding import RowField, RowPath, UnreadableError
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options

# --- the format: a message is a list of Python's literals ---

TYPES = {LongType: int, StringType: str}


def reader(column: StructField):
    """The reader of one column: a wrong type is an error that names the column, and so is a missing value."""
    if type(column.dataType) not in TYPES:
        raise SchemaError(f"Lists carry no column {column.name!r}.")
    wanted = TYPES[type(column.dataType)]

    def read(value: Any) -> Any:
        if type(value) is not wanted:
            raise ValueError(f"expected {wanted.__name__}")
        return value

    return RowField(column.name, column.nullable).reader(read, repr)


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side."""
    readers = [reader(column) for column in spec.schema.fields]

    def row(message: bytes) -> Sequence[Any]:
        try:
            values = ast.literal_eval(message.decode())
        except (ValueError, SyntaxError):
            values = None
        if type(values) is not list or len(values) != len(readers):
            raise UnreadableError(f"expected a list of {len(readers)}")
        return [read(value) for read, value in zip(readers, values, strict=True)]

    return RowPath(row, arrow_schema(spec.schema), skip_bad=spec.options["skip-bad"])


class ListEncoder:
    """Rows to lists."""

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message for each row."""
        texts = [repr([*row.values()]) for row in rows.to_pylist()]
        return pa.array([text.encode() for text in texts], pa.large_binary())


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side."""
    decoder(spec)  # refuses what it cannot carry
    return ListEncoder()


FORMAT = Format("lists", (Option("skip-bad", boolean, False, "Pass over it."),), decoder, encoder)

# --- that is all ---

SCHEMA = StructType().add("id", LongType(), False).add("name", StringType())
CHANGES = StructType(SCHEMA.fields).add("_change_type", StringType())


@pytest.fixture(autouse=True)
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """The format is one of the catalog."""
    module = ModuleType("pyspark_upsert_kafka.formats.lists")
    module.FORMAT = FORMAT
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(format_catalog.MODULES, "lists", "lists")


def read(messages: list[tuple[bytes, bytes | None]], **more: str) -> RowDecoder:
    """The rows of messages, and which of them are bad."""
    given = table_options(key__format="lists", value__format="lists", **more)
    options = read_options(given, format_options, stream=True)
    table = table_to_read(CHANGES, options)
    check_read_sides(table, options)
    keys, values = zip(*messages, strict=True)
    batch = RawBatch(
        "t", 0, BytesColumn.of(keys), BytesColumn.of(values), list(range(len(messages)))
    )
    return RowDecoder(table, options, "UTC").decode(batch)


def test_a_table_is_written_and_read() -> None:
    """Keys and values, upserts and deletes."""
    given = table_options(key__format="lists", value__format="lists")
    options = write_options(given, format_options)
    rows = pa.RecordBatch.from_pylist(
        [
            {"id": 1, "name": "a", "_change_type": "upsert"},
            {"id": 2, "name": None, "_change_type": "upsert"},
            {"id": 1, "name": None, "_change_type": "delete"},
        ],
        schema=arrow_schema(CHANGES),
    )
    encoded = RowEncoder(table_to_write(CHANGES, options), options, "UTC").encode(rows)
    keys, values = encoded.messages.keys.to_pylist(), encoded.messages.values.to_pylist()
    assert (keys[0], values) == (b"[1]", [b"[1, 'a']", b"[2, None]", None])

    decoded = read(list(zip(keys, values, strict=True)))

    assert pa.RecordBatch.from_arrays(decoded.columns, schema=rows.schema).equals(rows)


def test_a_bad_message_is_told_by_its_column() -> None:
    """The others are read."""
    decoded = read(
        [(b"[1]", b"[1, 5]"), (b"[2]", b"[2, 'b']"), (b"[3]", b"x("), (b"[4]", b"[4, None]")]
    )

    assert decoded.columns[0].to_pylist() == [2, 4]
    assert [each.index for each in decoded.bad] == [0, 2]
    assert "field 'name': expected str, got 5" in repr(decoded.bad[0])


def test_its_option_is_one_of_the_table() -> None:
    """Found by its prefix, with its default where it is not given."""
    decoded = read([(b"[1]", b"x(")], **{"value.lists.skip-bad": "true"})

    assert (len(decoded), decoded.bad) == (0, [])


def test_what_it_cannot_carry_is_refused_while_the_query_is_planned() -> None:
    """By what compiles the codecs; nothing else is asked."""
    given = table_options(key__format="lists", value__format="lists")
    options = read_options(given, format_options, stream=True)
    table = table_to_read(StructType(SCHEMA.fields).add("x", BooleanType()), options)

    with pytest.raises(SchemaError, match="no column 'x'"):
        check_read_sides(table, options)
