"""``debezium-avro-confluent``: Debezium's envelopes in Avro whose messages name their schema in a registry."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from pyspark.sql.types import LongType, StringType

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.table.changes import Kind
from pyspark_upsert_kafka.format_catalog import format_named, format_options
from pyspark_upsert_kafka.formats.change_format import ChangeDecoder, ChangeSpec
from pyspark_upsert_kafka.formats.codec import CodecSpec
from tests.unit.formats.cdc.decoding import rows_of
from tests.unit.formats.json.codecs import columns

NAME = "debezium-avro-confluent"
ROW = columns(id=LongType(), name=StringType())
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "name", "type": ["null", "string"], "default": None},
    ],
}
SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "db", "type": "string"}]}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.people",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
SCHEMA = fastavro.parse_schema(ENVELOPE)


def message(op: str, before: Any = None, after: Any = None) -> bytes:
    """A message; rows are (id, name)."""
    rows = [None if row is None else {"id": row[0], "name": row[1]} for row in (before, after)]
    body = io.BytesIO()
    datum = {"op": op, "before": rows[0], "after": rows[1], "source": {"db": "shop"}}
    fastavro.schemaless_writer(body, SCHEMA, datum)
    return b"\0\0\0\0\7" + body.getvalue()


MESSAGES = [
    message("r", None, (1, "Ada")),
    message("u", (1, "Ada"), (2, "Ada L.")),
    b"",
    message("d", (2, "Ada L.")),
    message("t"),
    message("x"),
    b"{}",
]


@pytest.fixture
def url(registry: Any) -> str:
    """A registry that knows the schema."""
    registry.answers["/schemas/ids/7"] = [(200, {"schema": json.dumps(ENVELOPE)})]
    address: str = registry.url
    return address


def decoder(url: str, *key: str) -> ChangeDecoder:
    """The decoder, of upserts with a key and of images without one."""
    options = {option.name: option.read({"url": url}) for option in format_options(NAME, "value")}
    compiled = format_named(NAME, "value").changes
    assert compiled is not None
    value = CodecSpec(ROW, "value", options, ("people",))
    return compiled(ChangeSpec(value, bool(key), key))


def test_rows_before_and_after_each_change(url: str) -> None:
    """As with debezium-json; fields without a column are skipped."""
    found = decoder(url).decode(MESSAGES)
    assert rows_of(found) == [
        (0, Kind.INSERT, 1, "Ada"),
        (1, Kind.UPDATE_PREIMAGE, 1, "Ada"),
        (1, Kind.UPDATE_POSTIMAGE, 2, "Ada L."),
        (3, Kind.DELETE, 2, "Ada L."),
    ]
    assert found.passed_over == {4: "a truncate of the table ('op' is 't')"}
    assert sorted(found.errors) == [5, 6]
    assert found.errors[5] == 'unknown "op" value "x", expected one of c, r, u, d, t'


def test_upserts_and_deletes_of_a_key(url: str) -> None:
    """As with debezium-json; an update of the key is both."""
    assert rows_of(decoder(url, "id").decode(MESSAGES)) == [
        (0, Kind.UPSERT, 1, "Ada"),
        (1, Kind.DELETE, 1, None),
        (1, Kind.UPSERT, 2, "Ada L."),
        (3, Kind.DELETE, 2, None),
    ]


def test_many_messages(url: str) -> None:
    """The vectorised path gives the same."""
    one, many = (decoder(url, "id").decode(MESSAGES * times) for times in (1, 100))
    assert [row[1:] for row in rows_of(many)] == [row[1:] for row in rows_of(one)] * 100


def test_the_registry_is_needed() -> None:
    """Without its address the format is refused when the query is planned."""
    options = {option.name: option.read({}) for option in format_options(NAME, "value")}
    check = format_named(NAME, "value").check_decoder
    assert check is not None
    with pytest.raises(OptionError, match=r"'value\.debezium-avro-confluent\.url'"):
        check(CodecSpec(ROW, "value", options, ("people",)))
