"""Rows to messages and back with a registry between: what is asked, when, and what is said."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections import Counter
from typing import Any

import fastavro
import pytest
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import BrokerError, EncodeError, OptionError, SchemaError
from pyspark_upsert_kafka.registry.framing import id_bytes
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import good_rows
from tests.unit.registry.avro_confluent_codecs import FORMAT, decoder, encoder, spec

ROW = columns(id=LongType(), name=StringType())
DERIVED = (
    '{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":['
    '{"name":"id","type":"long"},{"name":"name","type":["null","string"],"default":null}]}'
)
RECORD = {"type": "record", "name": "r"}
NOBODY = "http://127.0.0.1:1"


def record(**kinds: Any) -> dict[str, Any]:
    """A record with these fields."""
    return RECORD | {"fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}


def message(schema_id: int, schema: Any, datum: Any) -> bytes:
    """A message as the serializers of a registry write it."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), datum)
    return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()


def read(decoded: Any) -> list[tuple[Any, ...]]:
    """The rows of messages that can all be read."""
    assert not decoded.errors
    return [tuple(row.values()) for row in good_rows(decoded).to_pylist()]


# Writing


def test_what_is_written(registry):
    """The prefix with the id, and the datum; the derived schema is that of Flink, byte by byte."""
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 258})]
    write = encoder(registry.url, ROW, required=frozenset({"id"})).encode

    assert write(batch(ROW, (1, "a"), (2, None))) == [
        b"\x00\x00\x00\x01\x02\x02\x02\x02a",
        b"\x00\x00\x00\x01\x02\x04\x00",
    ]
    assert [asked.body for asked in registry.asked] == [{"schema": DERIVED}]


def test_the_id_is_asked_for_once(registry):
    """By all encoders and batches of a process, and not before there is a row to write."""
    registry.answers["/subjects/orders-key/versions"] = [(200, {"id": 1})]
    key = columns(id=LongType())
    writes = [encoder(registry.url, key, side="key").encode for _ in range(3)]
    assert registry.asked == []

    for write in writes * 2:
        write(batch(key, (1,)))

    assert registry.paths() == ["/subjects/orders-key/versions"]


def test_a_given_schema_is_written_as_it_stands(registry):
    """The registry gets its text, and the messages follow it."""
    schema = json.dumps(record(name="string", id="long"), indent=1)
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 1})]
    write = encoder(registry.url, ROW, options={"schema": schema}).encode

    assert write(batch(ROW, (1, "a"))) == [b"\0\0\0\0\1\x02a\x02"]
    assert registry.asked[0].body == {"schema": schema}
    with pytest.raises(EncodeError, match="name"):
        write(batch(ROW, (1, None)))


def test_timestamps_of_a_derived_schema(registry):
    """They are registered and written as Flink's milliseconds; a finer one is refused with the remedy."""
    registry.answers["/subjects/orders-value/versions"] = [(200, {"id": 1})]
    schema = columns(at=TimestampNTZType())
    write = encoder(registry.url, schema).encode
    moment = dt.datetime(1970, 1, 1, 0, 0, 0, 7000)  # noqa: DTZ001 - a local one

    assert write(batch(schema, (moment,))) == [b"\0\0\0\0\1\x02\x0e"]
    assert '"logicalType":"timestamp-millis"' in registry.asked[0].body["schema"]
    with pytest.raises(EncodeError, match=r"finer than milli.*'value.avro-confluent.schema', with"):
        write(batch(schema, (moment.replace(microsecond=7001),)))


def test_a_schema_that_must_be_registered(registry):
    """Without ``auto.register.schemas`` it is looked up, and told of when it is not there."""
    write = encoder(
        registry.url, ROW, options={"auto.register.schemas": "false", "subject": "a/b"}
    ).encode

    with pytest.raises(
        SchemaError, match=r"not registered under the subject 'a/b'.*auto\.register"
    ):
        write(batch(ROW, (1, "a")))
    registry.answers["/subjects/a%2Fb"] = [(200, {"id": 7, "version": 1})]

    assert write(batch(ROW, (1, "a")))[0].startswith(id_bytes(7))
    assert set(registry.paths()) == {"/subjects/a%2Fb"}


@pytest.mark.parametrize(
    ("status", "said"),
    [(409, "is not compatible with those under the subject 'orders-value'"), (422, "cannot take")],
)
def test_a_schema_that_the_registry_refuses(registry, status, said):
    """The error holds the registry's own reason."""
    reason = {"error_code": status, "message": "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1"}
    registry.answers["/subjects/orders-value/versions"] = [(status, reason)]

    with pytest.raises(SchemaError, match=f"{said}.*READER_FIELD_MISSING"):
        encoder(registry.url, ROW).encode(batch(ROW, (1, "a")))


def test_two_tasks_that_register_at_the_same_time(registry):
    """A registry may refuse the one that comes second; the schema is there then."""
    refusal = {"error_code": 409, "message": "An artifact of that name already exists"}
    registry.answers["/subjects/orders-value/versions"] = [(409, refusal)]
    registry.answers["/subjects/orders-value"] = [(200, {"id": 3, "version": 1})]

    assert encoder(registry.url, ROW).encode(batch(ROW, (1, "a")))[0].startswith(id_bytes(3))


def test_topics_of_which_each_would_have_its_subject():
    """A writer to several topics is told to name the subject, when planned."""
    with pytest.raises(OptionError, match=r"'value\.avro-confluent\.subject' is required"):
        encoder(NOBODY, ROW, topics=("a", "b"))


# Reading


def test_each_message_is_read_by_its_own_schema(registry):
    """Fields come and go between schemas; the columns take what is there."""
    first, second = record(id="long", gone="string"), record(name="string", id="int", more="double")
    registry.schema(1, first)
    registry.schema(2, second)
    messages = [
        message(2, second, {"name": "b", "id": 2, "more": 1.5}),
        message(1, first, {"id": 1, "gone": "x"}),
    ]

    assert read(decoder(registry.url, ROW).decode(messages)) == [(2, "b"), (1, None)]


def test_a_readers_schema(registry):
    """Its defaults and aliases stand between what is written and the columns."""
    written = record(number="int")
    registry.schema(1, written)
    fields = [
        {"name": "id", "type": "long", "aliases": ["number"]},
        {"name": "name", "type": "string", "default": "nobody"},
    ]
    reader = json.dumps(RECORD | {"fields": fields})

    read_it = decoder(registry.url, ROW, options={"schema": reader}).decode

    assert read(read_it([message(1, written, {"number": 5})])) == [(5, "nobody")]


def test_a_schema_is_asked_for_once(registry):
    """By all decoders and batches of a process, and not before a message names it."""
    registry.schema(1, record(id="long"))
    reads = [decoder(registry.url, ROW).decode for _ in range(3)]
    assert registry.asked == []

    for read_it in reads * 2:
        assert read(read_it([message(1, record(id="long"), {"id": 3})] * 99)) == [(3, None)] * 99

    assert registry.paths() == ["/schemas/ids/1"]


def test_a_schema_of_several(registry):
    """What it refers to is fetched, and what that refers to."""
    zip_code = {"type": "fixed", "name": "a.Zip", "size": 4}
    address = RECORD | {"name": "a.Address", "fields": [{"name": "zip", "type": "a.Zip"}]}
    registry.schema(1, record(id="long", at="a.Address"), references=[
        {"name": "a.Address", "subject": "address", "version": 3},
    ])  # fmt: skip
    registry.version("address", 3, address, references=[
        {"name": "a.Zip", "subject": "zip", "version": 1},
    ])  # fmt: skip
    registry.version("zip", 1, zip_code)
    whole = record(id="long", at=address | {"fields": [{"name": "zip", "type": zip_code}]})

    read_it = decoder(registry.url, columns(id=LongType(), at=StructType([StructField("zip", StringType())]))).decode  # fmt: skip
    bad = read_it([message(1, whole, {"id": 1, "at": {"zip": b"8001"}})])
    assert "at.zip" in bad.errors[0]
    assert read(decoder(registry.url, columns(id=LongType())).decode([
        message(1, whole, {"id": 1, "at": {"zip": b"8001"}}),
    ])) == [(1,)]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (None, "Schema id 9 is not in the schema registry .*HTTP 404"),
        ({"schema": "{}", "schemaType": "JSON"}, "Schema id 9 is of the type JSON, not an Avro"),
        ({"schema": "message R {}", "schemaType": "PROTOBUF"}, "of the type PROTOBUF"),
        ({"schema": json.dumps(record(id="string"))}, "id"),
        ({"schema": "{nonsense"}, "not JSON"),
        (
            {"schema": '"X"', "references": [{"name": "X", "subject": "x", "version": 2}]},
            "Schema id 9 refers to version 2 of the subject 'x', which is not there",
        ),
        (
            {"schema": '{"type": 1', "references": [{"name": "X", "subject": "there", "version": 1}]},
            "not JSON",
        ),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_had_or_used(registry, schema, said):
    """It is the fault of the messages that name it, and of no others."""
    good = record(id="long")
    registry.schema(1, good)
    registry.version("there", 1, '"int"')
    if schema is not None:
        registry.answers["/schemas/ids/9"] = [(200, schema)]
    messages = [message(1, good, {"id": 1}), id_bytes(9) + b"\2", message(1, good, {"id": 3})]

    decoded = decoder(registry.url, ROW).decode(messages)

    assert decoded.rows.column("id").to_pylist() == [1, None, 3]
    assert list(decoded.errors) == [1]
    with pytest.raises(SchemaError, match=said):
        raise SchemaError(decoded.errors[1])


def test_messages_of_ids_that_the_registry_does_not_know(registry):
    """Each id is asked for once, and the first ones once more, whatever the number of messages, batches and decoders."""
    messages = [id_bytes(10_000 + number) + b"\2" for number in range(300)] * 2

    for _ in range(2):
        decoded = decoder(registry.url, ROW).decode(messages)
        assert len(decoded.errors) == len(messages)

    asked = Counter(path for path in registry.paths() if "?" not in path)
    assert sorted(asked.values()) == [1] * 290 + [2] * 10


def test_a_registry_that_gives_no_schema_is_no_fault_of_a_message(registry):
    """The query fails; the next one finds the registry up again."""
    schema = record(id="long")
    registry.answers["/schemas/ids/1"] = [(501, b"")]
    read_it = decoder(registry.url, ROW).decode
    messages = [message(1, schema, {"id": 1})]
    with pytest.raises(BrokerError, match="HTTP 501"):
        read_it(messages)
    registry.schema(1, schema)

    assert read(read_it(messages)) == [(1, None)]


# Planning


@pytest.mark.parametrize("compile_codec", [FORMAT.decoder, FORMAT.encoder])
@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        (columns(v=VariantType()), {}, "VARIANT"),
        (ROW, {"schema": "{"}, "not JSON"),
        (columns(id=StringType()), {"schema": json.dumps(record(id="double"))}, "id"),
        (columns(id=IntegerType(), x=DoubleType()), {"schema": '"int"'}, "column"),
    ],
)
def test_what_cannot_go_well_is_refused_when_planned(compile_codec, schema, options, said):
    """Types and schemas are held against each other without a registry."""
    with pytest.raises(SchemaError, match=said):
        compile_codec(spec({"url": NOBODY, **options}, schema))
