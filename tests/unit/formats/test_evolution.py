"""docs/schema-evolution.md: each cell of its tables is what happens."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import DoubleType, FloatType, IntegerType, LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import FORMATS, format_named
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.formats import avro_confluent, json_registry, proto_registry
from pyspark_upsert_kafka.formats.codec import Decoded
from pyspark_upsert_kafka.registry.framing import decoder_by_id
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import Listed, good_rows
from tests.unit.formats.protobuf.codecs import Proto
from tests.unit.formats.registry_codecs import Codecs, rows_of

PAGE = Path(__file__).parents[3] / "docs" / "schema-evolution.md"


@dataclass(frozen=True)
class Table:
    """The columns of a table before and after a change.

    Args:
        before: Before it.
        after: After it.
        row: A row's values that fit both, as far as there are columns for them.
        changed: The columns that the change is about.
    """

    before: StructType
    after: StructType
    row: tuple[Any, ...]
    changed: tuple[str, ...]


OLD = columns(id=LongType(), name=StringType(), n=IntegerType())
CHANGES = {
    "added": Table(OLD, columns(id=LongType(), name=StringType(), n=IntegerType(), x=StringType()), (1, "a", 5, "b"), ("x",)),
    "dropped": Table(OLD, columns(id=LongType(), name=StringType()), (1, "a", 5), ("n",)),
    "renamed": Table(OLD, columns(id=LongType(), name=StringType(), m=IntegerType()), (1, "a", 5), ("n", "m")),
    "INT to BIGINT": Table(OLD, columns(id=LongType(), name=StringType(), n=LongType()), (1, "a", 5), ("n",)),
    "FLOAT to DOUBLE": Table(columns(id=LongType(), n=FloatType()), columns(id=LongType(), n=DoubleType()), (1, 0.5), ("n",)),
}  # fmt: skip


class Plain:
    """A format whose messages do not name their schema."""

    def __init__(self, name: str) -> None:
        self._format = format_named(name, "value")

    def write(self, schema: StructType, *rows: tuple[Any, ...]) -> list[bytes]:
        """Messages of rows."""
        encoder = self._format.encoder(codec_spec(self._format, schema))
        return Listed(encoder).encode(batch(schema, *rows))

    def read(self, reader: StructType, _: StructType, messages: list[bytes]) -> Decoded:
        """Messages by the reader's columns."""
        return self._format.decoder(codec_spec(self._format, reader)).decode(messages)


class Registry:
    """A format whose messages name their schema, here the one that is derived from the writer's columns."""

    def __init__(self, codecs: Codecs) -> None:
        self._codecs = codecs

    def write(self, schema: StructType, *rows: tuple[Any, ...]) -> list[bytes]:
        """Messages of rows."""
        return self._codecs.write(schema, batch(schema, *rows))

    def read(self, reader: StructType, writer: StructType, messages: list[bytes]) -> Decoded:
        """Messages by the reader's columns."""
        text = self._codecs.writing(writer).schema
        decoder = decoder_by_id(lambda _: self._codecs.decoder(reader, text), arrow_schema(reader))
        return decoder.decode(messages)


class Descriptors:
    """Protobuf, with the descriptor file that belongs to the columns: fields keep their numbers."""

    def _proto(self, schema: StructType) -> Proto:
        kinds = {
            "bigint": "int64",
            "string": "string",
            "int": "int32",
            "float": "float",
            "double": "double",
        }
        fields = (
            f"optional {kinds[field.dataType.simpleString()]} {field.name} = {number};"
            for number, field in enumerate(schema, 1)
        )
        return Proto(f'syntax = "proto3"; message Row {{ {" ".join(fields)} }}', "Row")

    def write(self, schema: StructType, *rows: tuple[Any, ...]) -> list[bytes]:
        """Messages of rows."""
        return self._proto(schema).encoder(schema).encode(batch(schema, *rows))

    def read(self, reader: StructType, _: StructType, messages: list[bytes]) -> Decoded:
        """Messages by the reader's descriptor file."""
        return self._proto(reader).decoder(reader).decode(messages)


CODECS = {
    "json": Plain("json"),
    "json-registry": Registry(Codecs(json_registry.FORMAT)),
    "csv": Plain("csv"),
    "avro": Plain("avro"),
    "avro-confluent": Registry(Codecs(avro_confluent.FORMAT)),
    "protobuf": Descriptors(),
    "proto-registry": Registry(Codecs(proto_registry.FORMAT)),
}


def outcome(format_name: str, change: str, *, backlog: bool) -> str:
    """What becomes of the changed column, in a word of the page.

    Args:
        format_name: The format.
        change: The change.
        backlog: Messages from before are read with the columns from after it; else the other way round.
    """
    table, codecs = CHANGES[change], CODECS[format_name]
    reader, writer = (table.after, table.before) if backlog else (table.before, table.after)
    (message,) = codecs.write(writer, table.row[: len(writer)])
    decoded = codecs.read(reader, writer, [message])
    if decoded.errors:
        return "error"
    (row,) = decoded.rows.to_pylist()
    seen = [row.pop(name) for name in table.changed if name in row]
    assert row == {
        name: value for name, value in zip(OLD.names, table.row, strict=False) if name in row
    }
    if not seen:
        return "skipped"
    return "NULL" if seen == [None] else "read"


def cells(heading: str) -> dict[tuple[str, str], str]:
    """The cells of the page's table under a heading, by format and change."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    head, _, *lines = (
        line.strip("|").split("|") for line in re.findall(r"^\|.*\|$", section, re.MULTILINE)
    )
    changes = [cell.strip() for cell in head[1:]]
    return {
        (name.strip("` "), change): cell.strip()
        for formats, *row in lines
        for name in formats.split(",")
        for change, cell in zip(changes, row, strict=True)
    }


BACKLOG = cells("Old messages, read with the new columns")
RUNNING = cells("New messages, read with the old columns")


@pytest.mark.parametrize(("format_name", "change"), BACKLOG)
def test_messages_from_before_a_change(format_name, change):
    """A reader that has the new columns already: a new query, or one that starts again."""
    assert outcome(format_name, change, backlog=True) == BACKLOG[format_name, change]


@pytest.mark.parametrize(("format_name", "change"), RUNNING)
def test_messages_from_after_a_change(format_name, change):
    """A reader that still has the old columns."""
    assert outcome(format_name, change, backlog=False) == RUNNING[format_name, change]


GLUE = {"avro-glue", "json-glue", "protobuf-glue"}
"""They read what is behind their header as those with a registry of Confluent do."""


def test_the_page_has_every_format():
    """With each change, in both tables; a message of ``raw`` has one column, which is all there is to say."""
    expected = {(name, change) for name in CODECS for change in CHANGES}

    assert {*BACKLOG} == {*RUNNING} == expected
    assert {*CODECS} == {*FORMATS} - {"avro-registry", "raw", *GLUE, *CDC_FORMATS}


WIDE = columns(id=LongType(), n=LongType())
NARROW = columns(id=LongType(), n=IntegerType())


@pytest.mark.parametrize("format_name", ["avro", "csv", "json", "json-registry", "proto-registry"])
def test_a_number_that_an_old_reader_has_no_room_for(format_name):
    """It is an error of its message alone."""
    codecs = CODECS[format_name]
    messages = codecs.write(WIDE, (1, 5), (2, 2**31), (3, 6))

    decoded = codecs.read(NARROW, WIDE, messages)

    assert good_rows(decoded).to_pylist() == [{"id": 1, "n": 5}, {"id": 3, "n": 6}]
    assert list(decoded.errors) == [1]


def test_a_number_that_an_old_descriptor_has_no_room_for():
    """Protobuf's own rule: a field that is an int32 in the reader's descriptor file is cut to 32 bits, silently."""
    codecs = CODECS["protobuf"]

    decoded = codecs.read(NARROW, WIDE, codecs.write(WIDE, (1, 2**32 + 5)))

    assert decoded.rows.to_pylist() == [{"id": 1, "n": 5}]


@pytest.mark.parametrize("format_name", ["avro", "csv"])
def test_columns_that_change_their_places(format_name):
    """Messages that do not name their columns are read by place: types that fit show the wrong values."""
    before = columns(id=LongType(), name=StringType(), city=StringType())
    after = columns(id=LongType(), city=StringType(), code=StringType())
    codecs = CODECS[format_name]

    decoded = codecs.read(after, before, codecs.write(before, (1, "Ann", "Rome")))

    assert decoded.rows.to_pylist() == [{"id": 1, "city": "Ann", "code": "Rome"}]


def test_a_renamed_column_in_avro_with_a_registry():
    """A reader's schema with an alias finds the field under its old name."""
    fields = [
        {"name": "id", "type": ["null", "long"]},
        {"name": "amount", "aliases": ["n"], "type": ["null", "int"], "default": None},
    ]
    reader = json.dumps({"type": "record", "name": "record", "namespace": "org.apache.flink.avro.generated", "fields": fields})  # fmt: skip
    new = columns(id=LongType(), amount=IntegerType())
    avro = Codecs(avro_confluent.FORMAT)

    for written in (NARROW, new):
        messages = avro.write(written, batch(written, (1, 5)))
        decoded = avro.read(new, messages, avro.writing(written).schema, reader)
        assert rows_of(decoded) == [(1, 5)]


def test_a_renamed_column_in_protobuf_with_a_registry():
    """A reader's schema finds the field by its number."""
    new = columns(id=LongType(), amount=IntegerType())
    proto = Codecs(proto_registry.FORMAT)
    reader = proto.writing(new).schema

    for written in (NARROW, new):
        messages = proto.write(written, batch(written, (1, 5)))
        decoded = proto.read(new, messages, proto.writing(written).schema, reader)
        assert rows_of(decoded) == [(1, 5)]


@pytest.mark.parametrize("format_name", ["avro-confluent", "json", "json-registry", "proto-registry"])  # fmt: skip
def test_a_column_in_the_middle(format_name):
    """Where names decide, a column may come and go anywhere."""
    before = columns(id=LongType(), gone=StringType(), name=StringType())
    after = columns(new=StringType(), id=LongType(), name=StringType())
    codecs = CODECS[format_name]

    decoded = codecs.read(after, before, codecs.write(before, (1, "x", "a")))

    assert rows_of(decoded) == [(None, 1, "a")]
