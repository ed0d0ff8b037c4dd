"""Avro schemas: what is understood, and in which words the rest is refused."""

from __future__ import annotations

import json
import pickle

import pytest

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
    Array,
    Enum,
    Field,
    Fixed,
    Logical,
    Primitive,
    Record,
    Reference,
    Union,
)
from pyspark_upsert_kafka.formats.avro.schema import parse_schema


def record(*fields, **more):
    """A record's declaration."""
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def test_names_have_the_namespace_around_them():
    """A name without dots takes the namespace of the definition around it, as do its aliases."""
    inner = {"type": "enum", "name": "E", "symbols": ["A"], "aliases": ["F", "x.G"]}
    other = {"type": "fixed", "name": "other.X", "size": 1}
    schema = parse_schema(
        record(
            {"name": "e", "type": inner, "aliases": ["old"]},
            {"name": "x", "type": other, "default": None},
            {"name": "again", "type": ["null", "org.E", "other.X"]},
            namespace="org",
        )
    )
    enum, fixed = Enum("org.E", ("A",), None, ("org.F", "x.G")), Fixed("other.X", 1)
    assert schema.type == Record(
        "org.R",
        (
            Field("e", enum, NO_DEFAULT, ("old",)),
            Field("x", fixed, None),
            Field("again", Union((Primitive("null"), enum, fixed))),
        ),
    )


def test_a_record_may_stand_within_itself():
    """There it is a reference to its definition."""
    schema = parse_schema(record({"name": "next", "type": {"type": "array", "items": "R"}}))
    assert schema.type.fields[0].type == Array(Reference("R"))
    assert schema.records == {"R": schema.type}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, Logical("date")),
        ({"type": "long", "logicalType": "date"}, None),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, Logical("local-timestamp-nanos")),
        ({"type": "string", "logicalType": "uuid"}, Logical("uuid")),
        ({"type": "string", "logicalType": "unheard-of"}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Logical("decimal", 4, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, Logical("decimal", 4, 0)),
        ({"type": "bytes", "logicalType": "decimal"}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 0}, None),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4}, Logical("decimal", 4, 0)),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 5}, None),
        ({"type": "fixed", "name": "F", "size": 9_999, "logicalType": "decimal", "precision": 38}, Logical("decimal", 38, 0)),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, None),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, Logical("uuid")),
        ({"type": "fixed", "name": "F", "size": 15, "logicalType": "uuid"}, None),
    ],
)  # fmt: skip
def test_logical_types(declared, expected):
    """One that is unknown, ill-formed or on the wrong type is ignored."""
    assert parse_schema(declared).type.logical == expected


def field(kind):
    """A record with a field ``f``."""
    return record({"name": "f", "type": kind})


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{", "The Avro schema is not JSON: Expecting property name"),
        ("[" * 100_000, "The Avro schema is nested too deep."),
        (5, "is wrong at the top level: expected a type, got 5"),
        ({}, "is wrong at the top level: 'type' is missing"),
        ('"text"', "is wrong at the top level: no type 'text' was defined before"),
        (field("text"), "is wrong at f: no type 'text' was defined before"),
        (field({"type": "array", "items": field("S")}), "is wrong at f[]: the name 'R' is defined twice"),
        (field({"type": "array", "items": "x.S"}), "is wrong at f[]: no type 'x.S' was defined before"),
        (field({"type": "map"}), "is wrong at f: 'values' is missing"),
        (field([]), "is wrong at f: a union needs a branch"),
        (field(["int", ["null"]]), "is wrong at f: a union stands directly in a union"),
        (field(["int", "long", "int"]), "is wrong at f: the branch 'int' occurs 2 times"),
        (record({"name": "a-b", "type": "int"}), 'is wrong at the top level: "a-b" is no name'),
        (record({"type": "int"}), "is wrong at the top level: 'name' is missing"),
        (record({"name": "a"}), "is wrong at a: 'type' is missing"),
        (record("a"), "is wrong at the top level: 'fields' must be a list of objects"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "the field 'a' occurs 2 times"),
        (record(name="a..b"), 'is wrong at the top level: "" is no name'),
        ({"type": "fixed", "name": "F", "size": -1}, "'size' must be a number of bytes, got -1"),
        ({"type": "fixed", "name": "F", "size": 1 << 63}, f"'size' must be a number of bytes, got {1 << 63}"),
        ({"type": "fixed", "name": "F", "size": True}, "'size' must be a number of bytes, got true"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "the symbol 'A' occurs 2 times"),
        ({"type": "enum", "name": "E", "symbols": "A"}, "'symbols' must be a list of strings"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "the default 'B' is none of the symbols"),
    ],
    ids=lambda case: str(case)[:40],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(source, why):
    """The text names the field, and what was seen or expected there."""
    with pytest.raises(SchemaError) as error:
        parse_schema(source)
    assert why in str(error.value)


def test_a_text_and_its_json_are_the_same_schema():
    """A schema may come as the text in an option, or parsed from a registry's answer."""
    declared = field(["null", "string"])
    assert parse_schema(json.dumps(declared)) == parse_schema(declared)


def test_a_schema_travels():
    """Schemas are compiled by the driver and by its workers."""
    schema = parse_schema(field("int"))
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert pickle.loads(pickle.dumps(schema)).type.fields[0].default is NO_DEFAULT
