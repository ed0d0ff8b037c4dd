"""Avro schemas: what is understood, and in which words the rest is refused."""

from __future__ import annotations

import json
import pickle

import pytest

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro.avro_types import (
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

ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}


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
        ("[" * 100_000, "The Avro schema is wrong: it is nested too deep"),
        (5, "is wrong: no type '5' was defined before"),
        ({}, 'is wrong: No "type" property: {}'),
        ('"text"', "is wrong: no type 'text' was defined before"),
        (field("text"), "is wrong: no type 'text' was defined before"),
        (field({"type": "array", "items": field("S")}), 'is wrong: The name "R" is already in use'),
        (field({"type": "array", "items": "x.S"}), "is wrong: no type 'x.S' was defined before"),
        (field({"type": "map"}), "is wrong: 'values' of a type 'map' is missing"),
        (field({"type": "array"}), "is wrong: 'items' of a type 'array' is missing"),
        ({"type": "record", "name": "R"}, "is wrong: 'fields' of 'R' is missing"),
        ({"type": "fixed", "name": "F", "size": "4"}, "is wrong: 'size' of 'F' must be a number of bytes, but is '4'"),
        (field([]), "is wrong: a union needs a branch"),
        (field(["int", ["null"]]), "is wrong: Unions cannot contain other unions"),
        (field(["int", "long", "int"]), "is wrong: int type already in Union"),
        (record({"name": "a-b", "type": "int"}), "is wrong: 'a-b', a field of 'R', is no name"),
        (record({"type": "int"}), "is wrong: Fields must have a non-empty name"),
        (record({"name": "a"}), "is wrong: 'type' of the field 'a' is missing"),
        (record("a"), "is wrong: Not a valid field: a"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "is wrong: Field name a already in use"),
        (record(name="a..b"), "is wrong: '', part of the name 'a..b', is no name"),
        ({"type": "fixed", "name": "F", "size": -1}, "Fixed Schema requires a valid positive integer for size property"),
        ({"type": "fixed", "name": "F", "size": 1 << 63}, f"'size' of 'F' is no number of bytes: {1 << 63}"),
        ({"type": "fixed", "name": "F", "size": True}, "'size' of 'F' is no number of bytes: true"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "the symbol 'A' of the enum 'E' occurs 2 times"),
        ({"type": "enum", "name": "E"}, "'symbols' of the enum 'E' must be a list of strings"),
        ({"type": "fixed", "name": "F", "size": 1, "namespace": 5}, "is wrong: The namespace property must be a string"),
        ({"type": "fixed", "name": "int", "size": 1}, "is wrong: int is a reserved type name"),
        ({"type": "fixed", "name": "a.", "size": 1}, "is wrong: '', part of the name 'a.', is no name"),
        (field([ENUM, "E"]), "is wrong: E type already in Union"),
        ({"type": ["null", {"type": "x" * 999}]}, "x..."),
        ({"type": "enum", "name": "E", "symbols": "A"}, "'symbols' of the enum 'E' must be a list of strings"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "the default 'B' is none of the symbols of the enum 'E'"),
    ],
    ids=lambda case: str(case)[:40],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_origin(source, why):
    """The text names where the schema comes from, and what was seen or expected there."""
    with pytest.raises(SchemaError) as error:
        parse_schema(source)
    assert why in str(error.value)
    with pytest.raises(SchemaError, match=r"^The schema in 'value\.avro\.schema' is "):
        parse_schema(source, "The schema in 'value.avro.schema'")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (["null", record({"name": "member0", "type": "int"}, name="M")], Union((Primitive("null"), Record("org.M", (Field("member0", Primitive("int")),))))),
        (ENUM | {"namespace": None}, Enum("org.E", ("A",))),
        ({"type": "array", "items": "int", "logicalType": "date"}, Array(Primitive("int"))),
        ({"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": "2"}, Fixed("org.F", 2)),
        ({"type": "string", "avro.java.string": "String", "declared": 1}, Primitive("string")),
    ],
    ids=lambda case: str(case)[:50],
)  # fmt: skip
def test_what_says_nothing_is_passed_over(kind, expected):
    """Properties that are null, of others, or do not fit what they stand in."""
    schema = parse_schema(record({"name": "f", "type": kind, "order": "ignore"}, namespace="org"))
    assert schema.type.fields[0].type == expected


def test_an_error_is_a_record():
    """What is defined in it is in its namespace."""
    within = record({"name": "e", "type": ENUM}, {"name": "f", "type": "a.E"}, namespace="a")
    fields = (Field("e", Enum("a.E", ("A",))), Field("f", Enum("a.E", ("A",))))
    assert parse_schema(within | {"type": "error"}).type == Record("a.R", fields)


def test_a_text_and_its_json_are_the_same_schema():
    """A schema may come as the text in an option, or parsed from a registry's answer."""
    declared = field(["null", "string"])
    assert parse_schema(json.dumps(declared)) == parse_schema(declared)


def test_a_schema_travels():
    """Schemas are compiled by the driver and by its workers."""
    schema = parse_schema(field("int"))
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert pickle.loads(pickle.dumps(schema)).type.fields[0].default is NO_DEFAULT


@pytest.mark.parametrize("name", ["com.my-shop.R", "com.3m.v1-2.R"])
@pytest.mark.parametrize("kind", ["record", "enum", "fixed"])
def test_what_java_lets_stand_in_a_namespace(name: str, kind: str) -> None:
    """It looks at names alone; a dash is common. Data of such a schema are read, also by a name that stands elsewhere in it."""
    of = {
        "record": {"fields": [field_("x", "int")]},
        "enum": {"symbols": ["A"]},
        "fixed": {"size": 1},
    }
    defined = {"type": kind, "name": name, **of[kind]}
    again = {"type": "array", "items": name}
    parsed = parse_schema(record(field_("a", defined), field_("b", again), name="com.my-shop.Top"))
    assert parsed.type.name == "com.my-shop.Top"
    assert parsed.type.fields[0].type.name == name
    space, _, simple = name.rpartition(".")
    apart = {**defined, "name": simple, "namespace": space}
    assert parse_schema(apart) == parse_schema(defined)
    for wrong in ("a-b", "x.a-b", "a b.R", "a..R", "a\n.R"):
        with pytest.raises(SchemaError, match="is no name"):
            parse_schema({**defined, "name": wrong})


def field_(name: str, kind: object) -> dict[str, object]:
    """A field of a record."""
    return {"name": name, "type": kind}
