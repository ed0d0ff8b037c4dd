"""Columns of a registry's newest schema: messages of older schemas can be read into them, at any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats import avro_confluent, json_registry, proto_registry
from tests.unit.formats.avro.corpus import written
from tests.unit.formats.registry_codecs import PREFIX, Codecs

AVRO, JSON, PROTO = map(Codecs, (avro_confluent.FORMAT, json_registry.FORMAT, proto_registry.FORMAT))  # fmt: skip
MANY = 100  # messages that make a batch take the vectorised path


def avro_record(name: str, *fields: tuple[str, Any], **default: Any) -> dict[str, Any]:
    """A record; fields with a default have it by name."""
    declared = [
        {"name": each, "type": kind} | ({"default": default[each]} if each in default else {})
        for each, kind in fields
    ]
    return {"type": "record", "name": name, "fields": declared}


def avro_schema(*new: tuple[str, Any], **default: Any) -> str:
    """Orders with an address, lines and a map, each of which may have gained fields."""

    def part(name: str) -> Any:
        return avro_record(name, ("a", "long"), *new, **default)

    fields = [
        ("id", "long"),
        ("at", avro_record("At", ("a", "long"), ("deep", part("Deep")), *new, **default)),
        ("lines", {"type": "array", "items": part("Line")}),
        ("by_name", {"type": "map", "values": part("Value")}),
        *new,
    ]
    return json.dumps(avro_record("Order", *fields, **default))


def json_object(required: list[str], **properties: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": properties, "required": required}


def json_schema(**new: Any) -> str:
    """The same in JSON Schema."""
    number = {"type": "number", "connect.type": "int64"}
    part = json_object(["a", *new], a=number, **new)
    at = json_object(["a", "deep", *new], a=number, deep=part, **new)
    lines = {"type": "array", "items": part}
    by_name = {"type": "object", "additionalProperties": part}
    whole = {"id": number, "at": at, "lines": lines, "by_name": by_name}
    return json.dumps(json_object([*whole, *new], **whole, **new))


def proto_schema(new: str = "") -> str:
    """The same as a ``.proto`` file."""
    part = f"{{ int64 a = 1; {new} }}"
    return f"""
        syntax = "proto3";
        message Order {{
          message Deep {part}
          message Line {part}
          message At {{ int64 a = 1; Deep deep = 2; {new} }}
          int64 id = 1; At at = 2; repeated Line lines = 3; map<string, Line> by_name = 4;
          {new}
        }}
    """


ROW = {
    "id": 7,
    "at": {"a": 1, "deep": {"a": 2}},
    "lines": [{"a": 3}, {"a": 4}],
    "by_name": {"x": {"a": 5}},
}
NEW = ("n", "s")
AVRO_NEW = (("n", "long"), ("s", "string"))


def with_nulls(value: Any) -> Any:
    """What is read of a row: each record has the new fields, which are NULL."""
    if isinstance(value, list):
        return [with_nulls(each) for each in value]
    parts = (
        {name: with_nulls(each) for name, each in value.items()} if type(value) is dict else value
    )
    if type(value) is not dict or "x" in value:
        return parts
    return parts | dict.fromkeys(NEW)


OLD_AVRO = PREFIX + written(json.loads(avro_schema()), ROW)
OLD_JSON = PREFIX + json.dumps(ROW).encode()
EXAMPLES = {
    "avro": (AVRO, avro_schema(), avro_schema(*AVRO_NEW, n=1, s=""), OLD_AVRO),
    "json": (
        JSON,
        json_schema(),
        json_schema(
            n={"type": "number", "connect.type": "int64", "default": 1},
            s={"type": "string", "default": ""},
        ),
        OLD_JSON,
    ),
    "proto": (PROTO, proto_schema(), proto_schema("int64 n = 8; string s = 9;"), None),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("count", [1, MANY])
def test_fields_that_came_are_null_in_older_messages(name: str, count: int) -> None:
    """In the row, in a struct, in a struct within that, in elements and in values of a map."""
    codecs, old, new, message = EXAMPLES[name]
    columns = codecs.columns(new)
    assert all(column.nullable for column in columns if column.name in NEW)
    if message is None:
        old_columns = codecs.columns(old)
        row = pa_row(old_columns)
        (message,) = codecs.write(old_columns, row, old)
    decoded = codecs.read(columns, [message] * count, old)
    assert not decoded.errors
    rows = [
        {**row, "by_name": dict(row["by_name"])}
        for row in decoded.rows.to_pylist(maps_as_pydicts="strict")
    ]
    assert rows == [with_nulls(ROW)] * count


def pa_row(columns: StructType) -> Any:
    """The row in Arrow."""
    import pyarrow as pa

    row = {**ROW, "by_name": [*ROW["by_name"].items()]}  # type: ignore[union-attr]
    return pa.RecordBatch.from_pylist([row], schema=arrow_schema(columns.toNullable()))


def test_what_a_schema_cannot_have_gained_stays_not_null() -> None:
    """A field without a default is in the messages of all compatible schemas; so is what is nullable, as the schema says."""
    schema = avro_schema(("n", "long"), ("s", ["null", "string"]))
    nullable = {column.name: column.nullable for column in AVRO.columns(schema)}
    assert nullable == {**dict.fromkeys((*ROW, "n"), False), "s": True}


def test_columns_of_a_schema_that_is_given_are_its_own() -> None:
    """All messages are read by it, and what they lack has its default."""
    text = avro_schema(*AVRO_NEW, n=1, s="")
    given = AVRO.format.given("value", text)
    assert given is not None
    columns = AVRO.format.columns(given, AVRO.spec(StructType(), {}), None)
    assert not columns["n"].nullable
    decoded = AVRO.read(columns, [OLD_AVRO] * MANY, avro_schema(), text)
    assert not decoded.errors
    assert decoded.rows.column("at").to_pylist()[0] == {
        "a": 1, "deep": {"a": 2, "n": 1, "s": ""}, "n": 1, "s": "",
    }  # fmt: skip
