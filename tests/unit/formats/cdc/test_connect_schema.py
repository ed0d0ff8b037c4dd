"""Connect's schemas, from JSON and from Avro."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.formats.cdc.connect_schema import (
    ConnectSchema,
    connect_schema,
    parse_connect_schema,
)
from pyspark_upsert_kafka.formats.cdc.debezium_avro import connect_schema_of_avro
from pyspark_upsert_kafka.formats.cdc.semantic_types import default_type
from pyspark_upsert_kafka.formats.decoding import UnreadableError


def test_a_schema_has_what_the_converter_wrote():
    """Type, name, parameters, and whether it may be null."""
    text = (
        b'{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        b'"parameters":{"scale":"2","connect.decimal.precision":"10","odd":3},"default":"AA==","field":"balance"}'
    )

    found = parse_connect_schema(text)

    assert found == ConnectSchema(
        "bytes",
        "org.apache.kafka.connect.data.Decimal",
        {"scale": "2", "connect.decimal.precision": "10"},
        optional=True,
    )


def test_no_schema_is_no_schema():
    """The converter writes ``null`` for a value without one."""
    assert parse_connect_schema(b"null") is None


def test_schemas_have_parts():
    """Fields by name, items, keys and values."""
    found = connect_schema(
        {
            "type": "struct",
            "fields": [
                {"type": "array", "items": {"type": "int32"}, "field": "a"},
                {
                    "type": "map",
                    "keys": {"type": "string"},
                    "values": {"type": "double"},
                    "field": "m",
                },
            ],
        }
    )

    assert [*found.fields] == ["a", "m"]
    assert found.fields["a"].items == ConnectSchema("int32")
    assert found.fields["m"].keys == ConnectSchema("string")
    assert found.fields["m"].items == ConnectSchema("double")


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({}, "'schema' is no Connect schema: it has no 'type'"),
        ([], "it has no 'type'"),
        ({"type": 3}, "it has no 'type'"),
        ({"type": "struct"}, "'fields' of a struct is no array"),
        ({"type": "struct", "fields": [3]}, "'schema.fields[0]' is no Connect schema"),
        ({"type": "struct", "fields": [{"type": "int8"}]}, "has no 'field'"),
        ({"type": "array"}, "'schema.items' is no Connect schema"),
        ({"type": "map", "values": {"type": "int8"}}, "'schema.keys' is no Connect schema"),
    ],
)
def test_what_is_no_schema_is_refused(declared, why):
    """The error says which part."""
    with pytest.raises(UnreadableError) as error:
        connect_schema(declared)

    assert why in str(error.value)


declared = st.recursive(
    st.none() | st.integers() | st.sampled_from(["int32", "struct", "array", "map", "string"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "parameters",
                    "fields",
                    "items",
                    "keys",
                    "values",
                    "field",
                    "optional",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(declared)
def test_any_json_is_a_schema_or_refused(value):
    """Nothing else happens, and each schema means a column."""
    try:
        found = connect_schema(json.loads(json.dumps(value)))
    except UnreadableError:
        return
    default_type(found)


VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "small", "type": {"type": "int", "connect.type": "int16"}},
        {
            "name": "born",
            "type": [
                "null",
                {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"},
            ],
            "default": None,
        },
        {
            "name": "balance",
            "type": {
                "type": "bytes",
                "scale": 2,
                "precision": 10,
                "connect.version": 1,
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "logicalType": "decimal",
            },
        },
        {
            "name": "credit",
            "type": {
                "type": "record",
                "name": "VariableScaleDecimal",
                "namespace": "io.debezium.data",
                "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
                "connect.version": 1,
                "connect.name": "io.debezium.data.VariableScaleDecimal",
            },
        },
        {"name": "limit", "type": "io.debezium.data.VariableScaleDecimal"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "named", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "any", "type": ["string", "long"]},
        {"name": "mood", "type": {"type": "enum", "name": "Mood", "symbols": ["A"]}},
        {"name": "parent", "type": ["null", "Value"], "default": None},
    ],
    "connect.name": "shop.public.customers.Value",
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.customers",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ],
    "connect.version": 1,
    "connect.name": "shop.public.customers.Envelope",
}


def test_an_avro_schema_of_connect_is_the_same_schema():
    """Properties, unions with null, types named after they were declared, by their short names too."""
    found = connect_schema_of_avro(ENVELOPE)

    before, after = found.fields["before"], found.fields["after"]
    assert found.name == "shop.public.customers.Envelope"
    assert before == after
    assert dict(before.fields) == dict(after.fields)
    fields = after.fields
    assert after.optional
    assert fields["id"] == ConnectSchema("int32")
    assert fields["small"] == ConnectSchema("int16")
    assert fields["born"] == ConnectSchema("int32", "io.debezium.time.Date", optional=True)
    assert fields["balance"].parameters["scale"] == "2"
    assert fields["limit"] == fields["credit"]
    assert fields["limit"].name == "io.debezium.data.VariableScaleDecimal"
    assert fields["tags"].items == ConnectSchema("string")
    assert fields["named"].items == ConnectSchema("int64", optional=True)
    assert fields["named"].keys == ConnectSchema("string")
    assert fields["mood"].type == "string"
    assert fields["any"].type == fields["parent"].type == "unknown"
    assert default_type(after).simpleString() == (
        "struct<id:int,small:smallint,born:date,balance:decimal(10,2),credit:decimal(38,18),limit:decimal(38,18),"
        "tags:array<string>,named:map<string,bigint>,any:string,mood:string,parent:string>"
    )
