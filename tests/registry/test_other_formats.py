"""JSON and Protobuf over a real registry, and against messages that plain libraries write and read."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_class
from tests.local_registry import Registry
from tests.unit.formats.json.codecs import batch, columns
from tests.unit.formats.listed import Listed, good_rows
from tests.unit.formats.protobuf.codecs import descriptor_set

USER = columns(id=LongType(), name=StringType())
BOTH = pytest.mark.parametrize("name", ["json-registry", "proto-registry"])


def spec(name: str, url: str, schema: StructType, topic: str, given: dict[str, Any]) -> CodecSpec:
    """The value of a topic, with options by their names."""
    options = {option.name: option.default for option in format_named(name, "value").options}
    address = next(o for o in format_named(name, "value").options if o.name == "url").parse(url)
    options |= {"url": address, **given}
    return CodecSpec(schema, "value", options, (topic,), frozenset({"id"}))


def encoder(name: str, url: str, schema: StructType, topic: str, **given: Any) -> Listed:
    """The encoder of the value of a topic."""
    return Listed(format_named(name, "value").encoder(spec(name, url, schema, topic, given)))


def decoder(name: str, url: str, schema: StructType, topic: str, **given: Any) -> Decoder:
    """The decoder of the value of a topic."""
    return format_named(name, "value").decoder(spec(name, url, schema, topic, given))


def registered(registry: Registry, message: bytes) -> dict[str, Any]:
    """What the registry says of the schema that a message names."""
    assert message[0] == 0
    answer: dict[str, Any] = registry.ask("GET", f"/schemas/ids/{number_of(message)}")
    return answer


def number_of(message: bytes) -> int:
    """The id of the schema that a message names."""
    return int.from_bytes(message[1:5], "big")


def message_type(text: str, name: str) -> type[Message]:
    """A message of a ``.proto`` text in the Protobuf runtime."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_set(text).file:
        pool.AddSerializedFile(file.SerializeToString())
    found: type[Message] = message_class(pool.FindMessageTypeByName(name))
    return found


SCHEMA = columns(
    id=LongType(), price=DoubleType(), tags=ArrayType(StringType()), at=TimestampType(),
    points=MapType(StringType(), columns(x=DoubleType(), y=StringType())),
)  # fmt: skip
ROWS = (
    (1, 12.5, ["a", "b"], 1_700_000_000_000_000, {"p": (0.5, None)}),
    (2, None, None, None, None),
)


def test_any_reader_understands_json(registry, topic):
    """A plain parser reads the messages, and a plain validator finds them to fit the registered schema."""
    messages = encoder("json-registry", registry.url, SCHEMA, topic).encode(batch(SCHEMA, *ROWS))

    answer = registered(registry, messages[0])
    assert answer["schemaType"] == "JSON"
    documents = [json.loads(message[5:]) for message in messages]
    for document in documents:
        jsonschema.validate(document, json.loads(answer["schema"]))
    assert documents[0] == {
        "id": 1, "price": 12.5, "tags": ["a", "b"], "at": "2023-11-14 22:13:20Z",
        "points": {"p": {"x": 0.5, "y": None}},
    }  # fmt: skip
    assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1]
    decoded = decoder("json-registry", registry.url, SCHEMA, topic).decode(messages)
    assert (decoded.rows, decoded.errors) == (batch(SCHEMA, *ROWS), {})


def test_any_reader_understands_protobuf(registry, topic):
    """The Protobuf runtime reads the messages by what protoc makes of the registered schema."""
    messages = encoder("proto-registry", registry.url, SCHEMA, topic).encode(batch(SCHEMA, *ROWS))

    answer = registered(registry, messages[0])
    assert answer["schemaType"] == "PROTOBUF"
    row = message_type(answer["schema"], "io.confluent.protobuf.generated.Row")
    assert [message[5:6] for message in messages] == [b"\0", b"\0"]
    assert [MessageToDict(row.FromString(message[6:])) for message in messages] == [
        {
            "id": "1", "price": 12.5, "tags": ["a", "b"], "at": "2023-11-14T22:13:20Z",
            "points": {"p": {"x": 0.5}},
        },
        {"id": "2"},
    ]  # fmt: skip
    decoded = decoder("proto-registry", registry.url, SCHEMA, topic).decode(messages)
    assert (decoded.rows, decoded.errors) == (batch(SCHEMA, *ROWS), {})


def test_a_message_of_another_writer(registry, topic):
    """One within others, of a schema that refers to another subject, as Confluent's serializers write it."""
    address = 'syntax = "proto3"; package shop; message Address { string zip = 1; }'
    text = """
        syntax = "proto3";
        package shop;
        import "address.proto";
        import "confluent/meta.proto";
        message First { map<string, string> more = 1; }
        message Second {
          option (confluent.message_meta) = { doc: "not the first" };
          message User { int64 id = 1; Address at = 2; optional string name = 3; }
        }
    """
    registry.register(f"{topic}-address", address, schemaType="PROTOBUF")
    where = {"name": "address.proto", "subject": f"{topic}-address", "version": 1}
    number = registry.register(f"{topic}-value", text, schemaType="PROTOBUF", references=[where])
    whole = text.replace('import "address.proto";', "message Address { string zip = 1; }")
    whole = whole.replace('import "confluent/meta.proto";', "").replace(
        'option (confluent.message_meta) = { doc: "not the first" };', ""
    )
    user = ParseDict({"id": 5, "at": {"zip": "8001"}}, message_type(whole, "shop.Second.User")())
    schema = columns(id=LongType(), name=StringType(), at=columns(zip=StringType()))

    message = b"\0" + number.to_bytes(4, "big") + b"\x04\x02\x00" + user.SerializeToString()
    decoded = decoder("proto-registry", registry.url, schema, topic).decode([message])

    assert decoded.rows.to_pylist() == [{"id": 5, "name": None, "at": {"zip": "8001"}}]
    found = format_named("proto-registry", "value").columns
    assert found is not None
    given = spec("proto-registry", registry.url, schema, topic, {"message-name": "User"})
    assert found(given, None).simpleString() == (
        "struct<id:bigint,at:struct<zip:string>,name:string>"
    )


@BOTH
def test_a_schema_that_grows(registry, topic, name):
    """Messages of the older and the newer schema stand side by side in one batch."""
    newer = columns(id=LongType(), name=StringType(), email=StringType())
    first = encoder(name, registry.url, USER, topic).encode(batch(USER, (1, "a")))
    second = encoder(name, registry.url, newer, topic).encode(batch(newer, (2, "b", "b@c.org")))

    for schema in (USER, newer):
        decoded = decoder(name, registry.url, schema, topic).decode([*second, *first])
        names = [(row["id"], row["name"]) for row in decoded.rows.to_pylist()]
        assert (names, decoded.errors) == ([(2, "b"), (1, "a")], {})
    assert decoded.rows.column("email").to_pylist() == ["b@c.org", None]
    assert number_of(first[0]) != number_of(second[0])


@BOTH
def test_writers_that_meet_in_one_subject(registry, topic, name):
    """A schema that is there already has one id, whoever wrote it; without leave to register it must be there."""
    rows = batch(USER, (1, "a"), (2, None))
    alone = encoder(name, registry.url, USER, topic, **{"auto.register.schemas": False})
    with pytest.raises(SchemaError, match=f"not registered under the subject '{topic}-value'"):
        alone.encode(rows)

    first = encoder(name, registry.url, USER, topic).encode(rows)

    assert alone.encode(rows) == first
    # An address of another text is asked anew.
    assert encoder(name, f"{registry.url}/", USER, topic).encode(rows) == first
    assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1]


@pytest.mark.parametrize(
    ("name", "kind", "schema"),
    [
        ("json-registry", "AVRO", '{"type": "record", "name": "r", "fields": []}'),
        ("json-registry", "PROTOBUF", 'syntax = "proto3"; message User { int64 id = 1; }'),
        ("proto-registry", "AVRO", '{"type": "record", "name": "r", "fields": []}'),
        ("proto-registry", "JSON", '{"type": "object", "properties": {}}'),
    ],
)
def test_a_schema_of_another_type(registry, topic, name, kind, schema):
    """It is told by its type, as the fault of the messages that name it; likewise an unknown id."""
    number = registry.register(topic, schema, schemaType=kind)
    good = encoder(name, registry.url, USER, topic).encode(batch(USER, (1, "a")))
    heads = [b"\0" + each.to_bytes(4, "big") for each in (number, 2**31 - 1)]

    decoded = decoder(name, registry.url, USER, topic).decode([heads[0], *good, heads[1]])

    assert good_rows(decoded).to_pylist() == [{"id": 1, "name": "a"}]
    assert decoded.errors[0].startswith(f"Schema id {number} is of the type {kind}, not a")
    assert decoded.errors[2].startswith(f"Schema id {2**31 - 1} is not in the schema registry")
