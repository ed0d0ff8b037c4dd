"""Requests of any kind of schema: what is sent, and what is made of an answer."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.formats.registry_format import Reference, RegisteredSchema
from pyspark_upsert_kafka.registry.access import Access
from pyspark_upsert_kafka.registry.client import id_of_schema, latest_schema, schema_of_id
from tests.unit.registry.fake_registry import FakeRegistry


def access(registry: FakeRegistry) -> Access:
    """The way to it."""
    return Access("value.some-registry.", (registry.url,))


@pytest.mark.parametrize(
    ("type_", "sent"),
    [
        ("AVRO", {"schema": "a schema"}),
        ("JSON", {"schema": "a schema", "schemaType": "JSON"}),
        ("PROTOBUF", {"schema": "a schema", "schemaType": "PROTOBUF"}),
    ],
)
@pytest.mark.parametrize("register", [True, False])
def test_a_schema_that_is_written(registry, type_, sent, register):
    """Its type is sent with it, but for Avro's, which is the default and which old registries do not know."""
    path = "/subjects/s/versions" if register else "/subjects/s"
    registry.answers[path] = [(200, {"id": 5})]

    assert id_of_schema(access(registry), "s", type_, "a schema", register=register) == 5

    assert [asked.body for asked in registry.asked] == [sent]


@pytest.mark.parametrize(
    ("more", "type_"), [({}, "AVRO"), ({"schemaType": "JSON"}, "JSON"), ({"references": None}, "AVRO")]
)  # fmt: skip
def test_a_schema_that_is_read(registry, more, type_):
    """It comes with its type, and with where it is from, for errors."""
    registry.schema(7, "a schema", **more)
    registry.version("s", "latest", "a schema", **more)
    newest = "The newest schema of the subject 's'"

    found = schema_of_id(access(registry), 7, "AVRO")
    assert found == RegisteredSchema("Schema id 7", type_, "a schema")
    found = latest_schema(access(registry), "s", "AVRO")
    assert found == RegisteredSchema(newest, type_, "a schema")


def test_schemas_that_are_referred_to(registry):
    """Each is there once, under the name by which it is referred to, and so are those that it refers to."""
    first = {"name": "first.proto", "subject": "first", "version": 1}
    second = {"name": "second.proto", "subject": "second", "version": 2}
    registry.schema(7, "top", schemaType="PROTOBUF", references=[first, second])
    registry.version("first", 1, "one", references=[second])
    registry.version("second", 2, "two")

    found = schema_of_id(access(registry), 7, "PROTOBUF")

    assert found.references == (Reference("first.proto", "one"), Reference("second.proto", "two"))
    assert len(registry.asked) == 3


def test_references_of_a_schema_of_another_type_are_not_looked_up(registry):
    """The format refuses it by its type: whatever it refers to may be missing, or not for us to see."""
    gone = {"name": "gone.proto", "subject": "gone"}
    registry.schema(7, "top", schemaType="PROTOBUF", references=[gone])

    found = schema_of_id(access(registry), 7, "AVRO")

    assert found == RegisteredSchema("Schema id 7", "PROTOBUF", "top")
    assert len(registry.asked) == 1
