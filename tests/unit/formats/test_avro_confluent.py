"""One schema made of several: each type is defined once, where it is used first."""

from __future__ import annotations

import json

import pytest

from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro_confluent import with_definitions

INT = {"name": "n", "type": "int"}
ZIP = {"type": "fixed", "name": "Zip", "size": 4}
ADDRESS = {"type": "record", "name": "a.Address", "fields": [{"name": "zip", "type": ZIP}]}
LIST = {
    "type": "record",
    "name": "b.List",
    "fields": [INT, {"name": "next", "type": ["null", "List"]}],
}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED"]}


def record(*kinds, name="c.Row"):
    """A record with a field of each of these types."""
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(kinds)]
    return {"type": "record", "name": name, "fields": fields}


@pytest.mark.parametrize(
    ("schema", "others", "expected"),
    [
        (
            record("a.Address", "a.Address"),
            [ADDRESS],
            record(record(ZIP, name="a.Address") | {"fields": [{"name": "zip", "type": ZIP}]}, "a.Address"),
        ),
        (
            record("a.Zip", {"type": "array", "items": "a.Address"}),
            [ADDRESS],
            record(
                {"type": "fixed", "name": "a.Zip", "size": 4},
                {"type": "array", "items": ADDRESS | {"fields": [{"name": "zip", "type": "a.Zip"}]}},
            ),
        ),
        (
            record({"type": "map", "values": ["null", "b.List"]}, {"type": "b.List"}),
            [LIST],
            record({"type": "map", "values": ["null", LIST]}, "b.List"),
        ),
        (record("Colour", name="Row"), [COLOUR], record(COLOUR, name="Row")),
        (
            record("Middle", name="c.Row"),
            [COLOUR | {"namespace": "c"}, record("Colour", "Colour", name="c.Middle")],
            record(record(COLOUR | {"namespace": "c"}, "c.Colour", name="c.Middle")),
        ),
        (
            record("c.One", "c.Two"),
            [record("a.Zip", name="c.One"), record("a.Zip", name="c.Two"), ADDRESS],
            record(
                record({"type": "fixed", "name": "a.Zip", "size": 4}, name="c.One"),
                record("a.Zip", name="c.Two"),
            ),
        ),
        (record("int"), [ADDRESS], record("int")),
        ("a.Zip", [ADDRESS], {"type": "fixed", "name": "a.Zip", "size": 4}),
        (["null", "a.Zip"], [ADDRESS], ["null", {"type": "fixed", "name": "a.Zip", "size": 4}]),
    ],
    ids=["once", "inner first", "itself", "no namespace", "own namespace", "shared", "none", "name", "union"],
)  # fmt: skip
def test_a_schema_of_several(schema, others, expected):
    """It means what one text with all definitions means."""
    joined = with_definitions(json.dumps(schema), [json.dumps(other) for other in others])

    assert parse_schema(joined) == parse_schema(expected)


def test_what_is_beside_a_type_is_kept():
    """Defaults, logical types and documentation are the schema's own."""
    field = {"name": "d", "type": {"type": "int", "logicalType": "date"}, "default": 0, "doc": "x"}
    row = {"type": "record", "name": "Row", "fields": [field], "doc": "y"}

    assert json.loads(with_definitions(json.dumps(row), [])) == row | {"namespace": ""}
