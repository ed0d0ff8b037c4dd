"""The messages that Amazon's own serializers write (schema-registry-serde 1.1.27): the same are written here, and they are read.

`make glue-messages` records them.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.codec import Side
from tests.unit.formats.listed import Listed
from tests.unit.registry.fake_glue import FakeGlue
from tests.unit.registry.glue_codecs import side

RECORDED = json.loads(Path(__file__).with_name("glue_messages.json").read_text("utf-8"))
FORMATS = {"AVRO": "avro-glue", "JSON": "json-glue", "PROTOBUF": "protobuf-glue"}
EACH = pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["type"] or each["kind"])
COMPRESSIONS = pytest.mark.parametrize("compression", ["NONE", "ZLIB"])


def side_of(recorded: dict[str, Any], glue: FakeGlue, **given: str) -> Side:
    """The table's value; Glue has the schema that Amazon's serializer has registered."""
    glue.schema(UUID(recorded["version"]), recorded["kind"], recorded["registered"])
    glue.answers["GetSchemaByDefinition"] = [(200, glue.versions[recorded["version"]])]
    more = {"message-name": f"shop.{recorded['type']}"} if recorded["type"] else {}
    columns = spark_columns(recorded["columns"])
    return side(FORMATS[recorded["kind"]], columns, glue.url, **given, **more)


def row(recorded: dict[str, Any]) -> pa.RecordBatch:
    """The row that was written."""
    schema = arrow_schema(spark_columns(recorded["columns"]))
    values = {
        name: [(key, number) for key, number in value] if name == "stripes" else value
        for name, value in recorded["row"].items()
    }
    return pa.RecordBatch.from_pylist([values], schema=schema)


@EACH
@COMPRESSIONS
def test_what_amazon_writes_is_read(glue, recorded, compression):
    """Whatever this side would write."""
    message = base64.b64decode(recorded["messages"][compression])

    decoded = side_of(recorded, glue).decoder().decode([message])

    assert decoded.errors == {}
    assert decoded.rows.equals(row(recorded))
    assert glue.asked == [("GetSchemaVersion", {"SchemaVersionId": recorded["version"]})]


@EACH
@COMPRESSIONS
def test_the_bytes_are_those_that_amazon_writes(glue, recorded, compression):
    """What zlib makes of the same depends on its release; all else is equal."""
    expected = base64.b64decode(recorded["messages"][compression])
    it = side_of(recorded, glue, schema=recorded["registered"], compression=compression)

    [message] = Listed(it.encoder()).encode(row(recorded))

    assert message[:18] == expected[:18]
    assert unpacked(message) == unpacked(expected)


def unpacked(message: bytes) -> bytes:
    """What is behind the header."""
    return zlib.decompress(message[18:]) if message[1] else message[18:]
