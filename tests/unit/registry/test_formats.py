"""The formats that have a registry, by their names: what each registers, reads and refuses, with its own options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import DateType, LongType, StringType, StructType, TimestampNTZType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import EncodeError, OptionError, SchemaError
from pyspark_upsert_kafka.formats.codec import CodecSpec, Format
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import Listed

ROW = columns(id=LongType(), name=StringType())
REGISTERED = {
    "avro-confluent": ("AVRO", "record", b"\x02\x02\x02a"),
    "avro-registry": ("AVRO", "record", b"\x02\x02\x02a"),
    "json-registry": ("JSON", "Record", b'{"id":1,"name":"a"}'),
    "proto-registry": ("PROTOBUF", "message Row", b"\x00\x08\x01\x12\x01a"),
}
"""The type of each format's schemas, a part of the one that is registered, and a message behind its id."""

NAMES = pytest.mark.parametrize("name", REGISTERED)


def spec(format_: Format, url: str, table: StructType = ROW, **given: str) -> CodecSpec:
    """The value of the topic ``orders``."""
    prefix = f"value.{format_.name}."
    texts = {(prefix + name).lower(): text for name, text in {"url": url, **given}.items()}
    options = {option.name: option.read(texts, prefix) for option in format_.options}
    return CodecSpec(table, "value", options, ("orders",), frozenset({"id"}))


@NAMES
def test_what_is_written_and_read(registry, name):
    """The derived schema is registered with its type, and messages that name its id are read back."""
    kind, part, message = REGISTERED[name]
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 7})]
    format_ = format_named(name, "value")
    it = spec(format_, registry.url)

    messages = Listed(format_.encoder(it)).encode(batch(ROW, (1, "a")))

    body = registry.asked[0].body
    assert part in body["schema"]
    assert body.get("schemaType", "AVRO") == kind
    assert messages == [b"\0\0\0\0\7" + message]
    registry.schema(7, body["schema"], schemaType=kind)
    assert format_.decoder(it).decode(messages).rows.to_pylist() == [{"id": 1, "name": "a"}]


@NAMES
def test_a_subject_in_a_context(registry, name):
    """Rows are read by the ids of the context that gives the columns."""
    kind, _, message = REGISTERED[name]
    registry.answers["/subjects/%3A.staging%3Aorders/versions"] = [(200, {"id": 7})]
    format_ = format_named(name, "value")
    it = spec(format_, registry.url, subject=":.staging:orders")
    Listed(format_.encoder(it)).encode(batch(ROW, (1, "a")))
    text = registry.asked[0].body["schema"]
    registry.schema(7, "of the default context", schemaType=kind)
    registry.schema("7?subject=%3A.staging%3A", text, schemaType=kind)

    decoded = format_.decoder(it).decode([b"\0\0\0\0\7" + message])

    assert decoded.rows.to_pylist() == [{"id": 1, "name": "a"}]


@NAMES
def test_messages_of_the_other_formats(registry, name):
    """They cannot be decoded, with the type of their schema; its neighbours are read."""
    format_ = format_named(name, "value")
    kind = REGISTERED[name][0]
    others = sorted({"AVRO", "JSON", "PROTOBUF"} - {kind})
    for number, other in enumerate(others):
        registry.schema(number, "{}", schemaType=other)

    messages = [b"\0\0\0\0" + bytes([number]) for number in range(len(others))]
    decoded = format_.decoder(spec(format_, registry.url)).decode(messages)

    said = {"AVRO": "an Avro schema", "JSON": "a JSON Schema", "PROTOBUF": "a Protobuf schema"}
    assert dict(decoded.errors) == {
        number: f"Schema id {number} is of the type {other}, not {said[kind]}."
        for number, other in enumerate(others)
    }


@NAMES
def test_columns_of_the_newest_schema(registry, name):
    """A format derives a schema from columns, which gives these columns; that of a key may be in the key."""
    format_ = format_named(name, "value")
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 7})]
    it = spec(format_, registry.url)
    format_.encoder(it).encode(batch(ROW, (1, "a")))
    text = registry.asked[0].body["schema"]
    registry.version("orders-value", "latest", text, schemaType=REGISTERED[name][0])
    assert format_.columns is not None

    found = format_.columns(spec(format_, registry.url, StructType()), None)

    assert found is not None
    assert found.simpleString() == ROW.simpleString()
    assert [field.nullable for field in found] == [False, True]


@pytest.mark.parametrize("name", ["json-registry", "proto-registry"])
def test_columns_of_another_types_schema(registry, name):
    """They are refused by that type."""
    registry.version("orders-value", "latest", '"int"')
    format_ = format_named(name, "value")
    assert format_.columns is not None

    with pytest.raises(SchemaError, match="'orders-value' is of the type AVRO, not a"):
        format_.columns(spec(format_, registry.url, StructType()), None)


@NAMES
def test_options_bear_its_name(name):
    """Errors show how to give them, under the name by which the format was chosen."""
    format_ = format_named(name, "value")
    without: dict[str, Any] = {option.name: option.default for option in format_.options}

    with pytest.raises(OptionError, match=rf"value\.{name}\.url"):
        format_.decoder(CodecSpec(ROW, "value", without, ("orders",)))


def test_avro_under_its_other_name(registry):
    """What is said of a schema, and of timestamps, names the option as it is given."""
    format_ = format_named("avro-registry", "value")
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 7})]
    with pytest.raises(SchemaError, match=r"'value\.avro-registry\.schema'"):
        format_.encoder(spec(format_, registry.url, schema="{"))
    at = columns(at=TimestampNTZType())
    rows = batch(at, (1,))

    with pytest.raises(EncodeError, match=r"'value\.avro-registry\.schema', with"):
        format_.encoder(spec(format_, registry.url, at)).encode(rows)


def test_a_type_that_protobuf_lacks():
    """It is refused when the query is planned, and no registry is asked."""
    format_ = format_named("proto-registry", "value")
    it = spec(format_, "http://127.0.0.1:1", columns(day=DateType()))

    for compiled in (format_.decoder, format_.encoder):
        with pytest.raises(SchemaError, match="Protobuf has no type for column 'day', DATE"):
            compiled(it)


FOREIGN = {
    "avro-confluent": '{"type":"record","name":"shop.Other","fields":[{"name":"x","type":"long","default":1},{"name":"y","type":"long"}]}',
    "proto-registry": 'syntax = "proto3"; package shop; message Other { int64 x = 1; int64 y = 2; }',
}
FOREIGN_MESSAGES = {"avro-confluent": b"\x02\x04", "proto-registry": b"\0\x08\x01"}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_record_of_another_table(registry, name, caplog, monkeypatch):
    """Its rows of NULL are told once for each schema, also among messages of the table."""
    monkeypatch.setattr(errors, "_warned", set())
    kind, _, message = REGISTERED[name]
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 7})]
    format_ = format_named(name, "value")
    it = spec(format_, registry.url)
    Listed(format_.encoder(it)).encode(batch(ROW, (1, "a")))
    registry.schema(7, registry.asked[0].body["schema"], schemaType=kind)
    registry.schema(8, FOREIGN[name], schemaType=kind)
    own, foreign = b"\0\0\0\0\7" + message, b"\0\0\0\0\x08" + FOREIGN_MESSAGES[name]

    assert not format_.decoder(it).decode([own] * 3).errors
    assert caplog.messages == []
    for _ in range(2):
        decoded = format_.decoder(it).decode([own, foreign, own])
        assert decoded.rows.column("id").to_pylist() == [1, None, 1]

    several, said = caplog.messages
    assert "several record types" in several
    what = "record" if name == "avro-confluent" else "message"
    assert said == (
        f"Schema id 8, the {what} 'shop.Other', has none of the columns 'id', 'name': its messages in 'orders' are rows of NULL. "
        "It has the fields 'x', 'y'. Give each table a topic of its own, or read only its messages: by 'scan.record-names', or 'scan.headers'."
    )


def test_rows_within_an_envelope(registry, caplog, monkeypatch):
    """Messages of Debezium that are read as rows are all NULL, and no other topic or filter would change that."""
    monkeypatch.setattr(errors, "_warned", set())
    sides = [{"name": name, "type": ["null", "string"]} for name in ("before", "after", "op")]
    registry.schema(7, {"type": "record", "name": "Envelope", "fields": sides})
    format_ = format_named("avro-confluent", "value")
    decoder = format_.decoder(spec(format_, registry.url))

    decoder.decode([b"\0\0\0\0\7\0\0\0"])

    (said,) = caplog.messages
    assert "has none of the columns 'id', 'name'" in said
    assert said.endswith("a CDC format reads it, for Avro 'debezium-avro-confluent'.")


FIELDS = {
    "avro-confluent": '{"type":"record","name":"shop.Order","fields":[{"name":"id","type":"long"},{"name":"region","type":"string"},'
    '{"name":"at","type":{"type":"record","name":"shop.Place","fields":[{"name":"zipcode","type":"string"}]}}]}',
    "proto-registry": 'syntax = "proto3"; package shop; message Place { string zipcode = 1; } '
    "message Other { int64 x = 1; } message Order { int64 id = 1; string region = 2; Place at = 3; }",
}
OF_FIELDS = {"avro-confluent": b"\x02\x02a\x02b", "proto-registry": b"\x02\x04\x08\x01\x12\x01a"}
LACKING = "id BIGINT, regoin STRING, nosuch STRING, at STRUCT<zip_code: STRING>"


@pytest.mark.parametrize("name", FIELDS)
def test_single_columns_that_a_schema_has_no_field_for(registry, name, caplog, monkeypatch):
    """They are told once, whichever message of the schema it is, also within a STRUCT, with the fields that are meant."""
    monkeypatch.setattr(errors, "_warned", set())
    format_, kind = format_named(name, "value"), REGISTERED[name][0]
    registry.schema(7, FIELDS[name], schemaType=kind)
    it = spec(format_, registry.url, spark_columns(LACKING))
    what = "record" if name == "avro-confluent" else "message"

    for _ in range(2):
        assert not format_.decoder(it).decode([b"\0\0\0\0\7" + OF_FIELDS[name]] * 2).errors

    (said,) = caplog.messages
    assert said == (
        f"Schema id 7, the {what} 'shop.Order', has no field for 'regoin', 'nosuch', 'at.zip_code', NULL in its messages in 'orders'. "
        "It has 'region', 'at.zipcode'. A column must have the name of its field; if the field is newer than this schema, all is well."
    )


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("id BIGINT, region STRING", {}),
        ("region STRING, more STRING", {"required": frozenset({"more"})}),  # the key has it
        (LACKING, {"watch": lambda _: False}),  # inferred: those of a newer schema
    ],
)
def test_columns_that_a_schema_may_lack(registry, name, table, changes, caplog, monkeypatch):
    """Nothing is said of those of the key, nor of those that are inferred."""
    monkeypatch.setattr(errors, "_warned", set())
    format_ = format_named(name, "value")
    registry.schema(7, FIELDS[name], schemaType=REGISTERED[name][0])
    it = replace(spec(format_, registry.url, spark_columns(table)), **changes)

    format_.decoder(it).decode([b"\0\0\0\0\7" + OF_FIELDS[name]])

    assert caplog.messages == []


RECURSIVE = {
    "avro-confluent": '{"type":"record","name":"shop.Order","fields":[{"name":"id","type":"long"},{"name":"region","type":"string"},'
    '{"name":"either","type":["long","string"]},{"name":"next","type":["null","shop.Order"]}]}',
    "proto-registry": 'syntax = "proto3"; package shop; message Order { int64 id = 1; string region = 2; Order next = 3; }',
}
OF_RECURSIVE = {
    "avro-confluent": b"\x02\x02a\x00\x02\x00",
    "proto-registry": b"\0\x08\x01\x12\x01a",
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_a_schema_whose_fields_are_no_columns(registry, name, caplog, monkeypatch):
    """Columns are told that it has no field for, whatever else it has: where Spark has no type, each table gives its columns."""
    monkeypatch.setattr(errors, "_warned", set())
    format_ = format_named(name, "value")
    registry.schema(7, RECURSIVE[name], schemaType=REGISTERED[name][0])
    it = spec(format_, registry.url, spark_columns("id BIGINT, regoin STRING"))

    assert not format_.decoder(it).decode([b"\0\0\0\0\7" + OF_RECURSIVE[name]]).errors

    (said,) = caplog.messages
    assert "has no field for 'regoin', NULL in its messages in 'orders'. It has 'region'." in said


def test_columns_that_a_given_schema_has_no_field_for(registry, caplog, monkeypatch):
    """A schema that is given for reading is the one that counts, and is named by its option."""
    monkeypatch.setattr(errors, "_warned", set())
    format_ = format_named("avro-confluent", "value")
    registry.schema(7, FIELDS["avro-confluent"])
    given = '{"type":"record","name":"shop.Order","fields":[{"name":"id","type":"long"},{"name":"area","type":"string","default":""}]}'
    it = spec(format_, registry.url, spark_columns("id BIGINT, region STRING"), schema=given)

    format_.decoder(it).decode([b"\0\0\0\0\7" + OF_FIELDS["avro-confluent"]])

    (said,) = caplog.messages
    assert said.startswith(
        "The schema in 'value.avro-confluent.schema', the record 'shop.Order', has no field for 'region'"
    )
