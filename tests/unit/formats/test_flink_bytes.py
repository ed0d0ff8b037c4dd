"""The bytes of each row are those that Flink itself wrote: tables made by tools/flink/tables.py."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.formats.codec import CodecSpec
from tests.unit.formats.json import codecs as json_codecs
from tests.unit.formats.listed import Listed

TABLES = {
    table["name"]: (name, table)
    for name in ("json", "csv", "avro")
    for table in json.loads((Path(__file__).parent / "flink" / f"{name}.json").read_text("utf-8"))
}


def spec(name: str, table: dict[str, Any], side: str) -> CodecSpec:
    """One side of Flink's table."""
    whole = StructType.fromJson(table["columns"])
    schema = StructType(whole.fields[:1]) if side == "key" else whole
    values = {
        option.name: option.read(table["options"]) for option in format_named(name, side).options
    }
    return CodecSpec(schema, side, values, required=frozenset("k"))


def rows(table: dict[str, Any]) -> pa.RecordBatch:
    """The rows that Flink wrote."""
    read = json_codecs.exactly(StructType.fromJson(table["columns"])).decode
    decoded = read([row["row"].encode() for row in table["rows"]])
    assert not decoded.errors
    return decoded.rows


def messages(table: dict[str, Any], side: str) -> list[bytes]:
    """What Flink wrote."""
    return [b64decode(row[side]) for row in table["rows"]]


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("side", ["key", "value"])
@pytest.mark.parametrize("name", TABLES)
def test_a_row_has_the_bytes_that_flink_writes(name, side):
    """Key and value of every row are those of Flink's upsert-kafka, byte for byte.

    But no message is empty, which would be no CSV record: its empty text is quoted. And so is a text with U+FEFF at the beginning of
    a CSV message, from where every reader takes it away, Flink's too.
    """
    format_, table = TABLES[name]
    quote = table["options"].get("quote-character", '"').encode()
    given = rows(table).select(["k"] if side == "key" else ["k", "v"])

    written = Listed(format_named(format_, side).encoder(spec(format_, table, side))).encode(given)

    for row, ours, flinks in zip(table["rows"], written, messages(table, side), strict=True):
        other = flinks
        if flinks.startswith(MARK):
            delimiter = table["options"].get("field-delimiter", ",").replace(r"\t", "\t").encode()
            text, *more = flinks.split(delimiter, 1)
            other = delimiter.join([quote + text + quote, *more])
        assert ours == (other or quote * 2), row["row"]


@pytest.mark.parametrize("copies", [1, 64])
@pytest.mark.parametrize("name", TABLES)
def test_what_flink_wrote_is_read(name, copies):
    """What Flink wrote is read, and written again as it was; alone and as many as take the vectorised path.

    But for U+FEFF at the beginning of a CSV message, which Flink does not read back either.
    """
    format_, table = TABLES[name]
    side = spec(format_, table, "value")
    flinks = [message for message in messages(table, "value") for _ in range(copies)]

    decoded = format_named(format_, "value").decoder(side).decode(flinks)

    assert not decoded.errors
    again = Listed(format_named(format_, "value").encoder(side)).encode(decoded.rows)
    assert again == [message.removeprefix(MARK) for message in flinks]


OLD = [b"1e+20", b"1e20", b"-1.5e-9", b"0.00001", b"10000000.0", b"12345678.9", b"1E+2", b"100.00"]


@pytest.mark.parametrize("copies", [1, 64])
@pytest.mark.parametrize("message", OLD)
def test_other_spellings_of_numbers_are_read(message, copies):
    """What version 0.1.0 wrote for DOUBLE and DECIMAL is read as the same number."""
    for kind in ("double", DecimalType(38, 12)):
        schema = StructType().add("k", kind)
        for name, text in (("csv", message), ("json", b'{"k":%s}' % message)):
            side = spec(name, {"columns": schema.jsonValue(), "options": {}}, "value")
            decoded = format_named(name, "value").decoder(side).decode([text] * copies)
            assert [float(row["k"]) for row in decoded.rows.to_pylist()] == [
                float(message)
            ] * copies
