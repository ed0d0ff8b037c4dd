"""Rows to messages and back over a real registry, and against messages of another serializer."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from tests.local_registry import Registry
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import good_rows
from tests.unit.registry.avro_confluent_codecs import decoder, encoder

USER = columns(id=LongType(), name=StringType())
KEY = frozenset({"id"})


def written(registry: Registry, message: bytes) -> Any:
    """What a plain Avro library reads in a message, by the schema that the registry has for it."""
    assert message[0] == 0
    schema = registry.ask("GET", f"/schemas/ids/{int.from_bytes(message[1:5], 'big')}")["schema"]
    return fastavro.schemaless_reader(io.BytesIO(message[5:]), json.loads(schema))


def message(schema_id: int, schema: Any, datum: Any) -> bytes:
    """A message as a plain Avro library writes it."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, datum)
    return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """A record schema."""
    return {"type": "record", "name": name, "fields": list(fields)}


def test_any_reader_understands_what_is_written(registry, topic):
    """The registry knows the schema under the default subject, and the datum follows it."""
    nested = StructType([StructField("x", DoubleType()), StructField("y", StringType())])
    schema = columns(
        id=LongType(),
        price=DecimalType(10, 2),
        tags=ArrayType(StringType()),
        points=MapType(StringType(), nested),
    )
    rows = batch(
        schema,
        (1, Decimal("12.50"), ["a", None], {"p": (0.5, None)}),
        (2, None, None, None),
    )

    messages = encoder(registry.url, schema, topics=(topic,), required=KEY).encode(rows)

    assert [written(registry, each) for each in messages] == [
        {"id": 1, "price": Decimal("12.50"), "tags": ["a", None], "points": {"p": {"x": 0.5, "y": None}}},
        {"id": 2, "price": None, "tags": None, "points": None},
    ]  # fmt: skip
    assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1]
    decoded = decoder(registry.url, schema, topics=(topic,)).decode(messages)
    assert (decoded.rows.to_pylist(), decoded.errors) == (rows.to_pylist(), {})


def test_a_schema_that_grows(registry, topic):
    """Messages of the older and the newer schema stand side by side in one batch."""
    older = columns(id=LongType(), name=StringType())
    newer = columns(id=LongType(), name=StringType(), email=StringType())
    first = encoder(registry.url, older, topics=(topic,), required=KEY).encode(
        batch(older, (1, "a"))
    )
    second = encoder(registry.url, newer, topics=(topic,), required=KEY).encode(
        batch(newer, (2, "b", "b@example.org"))
    )

    for schema in (older, newer):
        decoded = decoder(registry.url, schema).decode([*second, *first])
        names = [(row["id"], row["name"]) for row in decoded.rows.to_pylist()]
        assert (names, decoded.errors) == ([(2, "b"), (1, "a")], {})
    assert decoded.rows.column("email").to_pylist() == ["b@example.org", None]


def test_writers_that_meet_in_one_subject(registry, topic):
    """A schema that is there already has one id, whoever wrote it; equal keys have equal bytes."""
    key = columns(id=LongType())
    here, there = (
        encoder(registry.url + slash, key, side="key", topics=(topic,), required=KEY)
        for slash in ("", "/")
    )
    rows = batch(key, (1,), (2,))

    assert here.encode(rows) == there.encode(rows)
    assert registry.ask("GET", f"/subjects/{topic}-key/versions") == [1]


def test_tasks_that_begin_at_the_same_time(registry, topic):
    """Whoever registers the schema first, all tasks write the same bytes."""
    key = columns(id=LongType())
    with ThreadPoolExecutor(8) as pool:
        written = pool.map(
            lambda writer: writer.encode(batch(key, (1,))),
            [encoder(registry.url + "/" * n, key, side="key", topics=(topic,)) for n in range(8)],
        )
        assert len({tuple(messages) for messages in written}) == 1


def test_a_schema_that_does_not_fit_its_subject(registry, topic):
    """The registry's reason is in the error, and nothing is registered."""
    registry.register(f"{topic}-value", record("user", {"name": "id", "type": "long"}))
    registry.ask("PUT", f"/config/{topic}-value", compatibility="FULL")

    with pytest.raises(SchemaError, match=rf"not compatible.*'{topic}-value'.*HTTP 409.*name"):
        encoder(registry.url, USER, topics=(topic,), required=KEY | {"name"}).encode(
            batch(USER, (1, "a"))
        )

    assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1]


def test_without_leave_to_register(registry, topic):
    """A schema that is not there is an error; one that is there is used."""
    given = {"auto.register.schemas": "false"}
    write = encoder(registry.url, USER, topics=(topic,), required=KEY, options=given).encode
    with pytest.raises(SchemaError, match=f"not registered under the subject '{topic}-value'"):
        write(batch(USER, (1, "a")))
    allowed = encoder(registry.url, USER, topics=(topic,), required=KEY).encode

    assert allowed(batch(USER, (1, "a"))) == write(batch(USER, (1, "a")))


def test_references(registry, topic):
    """A schema that refers to another subject is read as one."""
    address = record("example.Address", {"name": "zip", "type": "string"})
    user = record(
        "example.User", {"name": "id", "type": "long"}, {"name": "at", "type": "example.Address"}
    )
    registry.register(f"{topic}-address", address)
    where = {"name": "example.Address", "subject": f"{topic}-address", "version": 1}
    number = registry.register(f"{topic}-value", user, references=[where])
    whole = fastavro.parse_schema(
        record("example.User", user["fields"][0], {"name": "at", "type": address})
    )
    schema = columns(id=LongType(), at=StructType([StructField("zip", StringType())]))

    decoded = decoder(registry.url, schema).decode(
        [message(number, whole, {"id": 1, "at": {"zip": "8001"}})]
    )

    assert decoded.rows.to_pylist() == [{"id": 1, "at": {"zip": "8001"}}]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("JSON", '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'),
        ("PROTOBUF", 'syntax = "proto3"; message User { int64 id = 1; }'),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_avro(registry, topic, kind, schema):
    """It is told by its type, as the fault of the messages that name it; likewise an unknown id."""
    number = registry.register(topic, schema, schemaType=kind)
    good = encoder(registry.url, USER, topics=(topic,)).encode(batch(USER, (1, "a")))
    heads = [b"\0" + each.to_bytes(4, "big") for each in (number, 2**31 - 1, 0)]

    decoded = decoder(registry.url, USER).decode([heads[0], *good, *heads[1:]])

    assert good_rows(decoded).to_pylist() == [{"id": 1, "name": "a"}]
    assert decoded.errors[0] == f"Schema id {number} is of the type {kind}, not an Avro schema."
    assert decoded.errors[2].startswith(f"Schema id {2**31 - 1} is not in the schema registry")
    assert decoded.errors[3].startswith("Schema id 0 is not in the schema registry")
