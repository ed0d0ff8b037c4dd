"""JSON behind a schema's id: what is registered, written and read, and which columns a schema gives."""

from __future__ import annotations

import datetime as dt
import json
import math
import time
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.json_registry import FORMAT, columns_of, derived_schema
from tests.laws import law
from tests.unit.formats.json.codecs import batch, columns, encoder, required, seen
from tests.unit.formats.json.codecs import decoder as plain_decoder
from tests.unit.formats.json.corpus import messages, schemas, values
from tests.unit.formats.registry_codecs import PREFIX, Codecs, rows_of

JSON = Codecs(FORMAT)
USER = columns(id=LongType(), name=StringType())
NOBODY = frozenset[str]()


def number(connect_type: str) -> dict[str, str]:
    """A number of that type in Kafka Connect."""
    return {"type": "number", "connect.type": connect_type}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (BooleanType(), {"type": "boolean"}),
        (ByteType(), number("int8")),
        (ShortType(), number("int16")),
        (IntegerType(), number("int32")),
        (LongType(), number("int64")),
        (FloatType(), number("float32")),
        (DoubleType(), number("float64")),
        (StringType(), {"type": "string"}),
        (BinaryType(), {"type": "string", "connect.type": "bytes"}),
        (DateType(), {"type": "string"}),
        (TimestampType(), {"type": "string"}),
        (TimestampNTZType(), {"type": "string"}),
        (DayTimeIntervalType(), number("int64")),
        (VariantType(), {}),
        (DecimalType(10, 2), {
            "type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
            "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
        }),
        (ArrayType(LongType(), containsNull=False), {"type": "array", "items": number("int64")}),
        (ArrayType(StringType()), {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "string"}]}}),
        (MapType(StringType(), LongType(), valueContainsNull=False), {
            "type": "object", "connect.type": "map", "additionalProperties": number("int64"),
        }),
        (required(x=DoubleType()), {
            "type": "object", "properties": {"x": {**number("float64"), "connect.index": 0}},
            "required": ["x"],
        }),
    ],
)  # fmt: skip
def test_the_schema_of_a_type(kind: DataType, expected: dict[str, Any]):
    """As Confluent's Flink has it, but for dates and timestamps, which are texts here."""
    derived = derived_schema(required(c=kind), NOBODY)

    assert derived["properties"] == {"c": {**expected, "connect.index": 0}}


def test_what_may_be_null():
    """It is one of null and its type; columns of the primary key, and those that are NOT NULL, must be there."""
    schema = StructType([*columns(id=LongType(), name=StringType()), *required(at=LongType())])

    assert derived_schema(schema, frozenset({"id"})) == {
        "title": "Record",
        "type": "object",
        "properties": {
            "id": {**number("int64"), "connect.index": 0},
            "name": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
            "at": {**number("int64"), "connect.index": 2},
        },
        "required": ["id", "at"],
    }


EVERYTHING = columns(
    number=LongType(), ratio=DoubleType(), price=DecimalType(10, 2), text=StringType(),
    data=BinaryType(), day=DateType(), at=TimestampType(), local=TimestampNTZType(),
    took=DayTimeIntervalType(), tags=ArrayType(StringType()), points=MapType(StringType(), LongType()),
    within=columns(flag=BooleanType()), anything=VariantType(),
)  # fmt: skip
_MOMENT = dt.datetime(2026, 1, 31, 12, 30, 0, 5, dt.timezone.utc)
_ROW = (
    -(2**63), 0.1, Decimal("-12.50"), "é", b"\0\xff", dt.date(2026, 1, 31), _MOMENT, _MOMENT.replace(tzinfo=None),
    dt.timedelta(seconds=1), ["a", None], {"x": 1, "y": None}, {"flag": True}, None,
)  # fmt: skip


@pytest.mark.parametrize("row", [_ROW, (None,) * len(_ROW)])
@pytest.mark.parametrize("options", [{}, {"timestamp-format.standard": "ISO-8601"}])
def test_messages_fit_the_schema_that_is_registered(row, options):
    """A validator has nothing to say against what is written."""
    writing = JSON.writing(EVERYTHING, options=options)
    (message,) = JSON.write(EVERYTHING, batch(EVERYTHING, row), options=options)

    assert message.startswith(PREFIX)
    jsonschema.validate(json.loads(message[5:]), json.loads(writing.schema))


@law(60)
@given(data=st.data(), schema=schemas())
def test_it_is_json_behind_a_prefix(data, schema):
    """What the format ``json`` writes and reads, of any schema and any message, good or bad."""
    row = st.tuples(*(values(f.dataType, nullable=f.nullable) for f in schema.fields))
    rows = batch(schema, *data.draw(st.lists(row, max_size=3)))
    many = data.draw(st.lists(messages(schema), max_size=3))

    assert JSON.write(schema, rows) == [PREFIX + each for each in encoder(schema).encode(rows)]
    framed = JSON.read(schema, [PREFIX + each for each in many], "{}")
    assert seen(framed) == seen(plain_decoder(schema).decode(many))


_WITHOUT_A_WAY_BACK = ("date", "timestamp", "interval", "variant")


@law(60)
@given(schema=schemas())
def test_a_derived_schema_gives_its_columns(schema):
    """What columns mean means those columns, where a type of JSON is that of one column alone."""
    assume(not any(word in schema.simpleString() for word in _WITHOUT_A_WAY_BACK))
    derived = json.loads(json.dumps(derived_schema(schema, NOBODY)))

    assert columns_of(derived, "It").jsonValue() == schema.jsonValue()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"a": {"type": "integer"}}, columns(a=LongType())),
        ({"a": {"type": "number"}}, columns(a=DoubleType())),
        ({"a": {"type": "string", "format": "date"}}, columns(a=StringType())),
        ({"b": {"type": "string"}, "a": {"type": "boolean"}}, columns(b=StringType(), a=BooleanType())),
        ({"b": {"type": "string", "connect.index": 1}, "a": {"type": "string", "connect.index": 0}}, columns(a=StringType(), b=StringType())),
        ({"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}}, columns(a=StringType())),
        ({"a": {"type": "object", "additionalProperties": {"type": "integer"}}}, columns(a=MapType(StringType(), LongType(), valueContainsNull=False))),
        ({}, StructType()),
    ],
)  # fmt: skip
def test_columns_of_a_schema(properties, expected):
    """Properties in their order, NULL where older messages may lack them."""
    assert JSON.columns(json.dumps({"type": "object", "properties": properties})) == expected


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array"}, "Schema id 7 does not say which properties a message has"),
        ([], "does not say which properties"),
        ({"properties": {"a": {"$ref": "#/x"}}}, "which type 'a' has"),
        ({"properties": {"a": {"type": ["string", "null"]}}}, "in one word which type 'a' has"),
        ({"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "number"}]}}}, "'a'"),
        ({"properties": {"a": {"oneOf": [{"type": "null"}, {"type": "null"}]}}}, "which type 'a' has"),
        ({"properties": {"a": True}}, "which type 'a' has"),
        ({"properties": {"a": {"type": "array"}}}, "which type 'a' has"),
        ({"properties": {"a": {"type": "object"}}}, "which properties 'a' has"),
        ({"properties": {"a": {"type": "array", "items": {}}}}, r"which type 'a\[\]' has"),
        ({"properties": {"a": {"type": "number", "connect.type": [], "title": "org.apache.kafka.connect.data.Decimal"}}}, "which scale 'a' has"),
        ({"properties": {"a": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": "40"}}}}, "no DECIMAL"),
        ({"properties": {"a": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": math.inf}}}}, "which scale 'a' has"),
    ],
)  # fmt: skip
def test_a_schema_that_leaves_a_choice(schema, message):
    """It is refused, with what to do instead."""
    with pytest.raises(SchemaError, match=message) as error:
        JSON.columns(json.dumps(schema))

    assert "Give the columns by .schema(...)" in str(error.value)


@pytest.mark.parametrize("text", ["no json", "[" * 100_000])
def test_a_schema_that_is_no_json(text):
    """It is refused when it is given, and when it is to give the columns."""
    with pytest.raises(SchemaError, match="Schema id 7 is not JSON"):
        JSON.columns(text)
    with pytest.raises(SchemaError, match=r"'value\.json-registry\.schema' is not JSON"):
        JSON.writing(USER, text)


def test_a_schema_nested_too_deep():
    """It is an error of its own."""
    text = '{"type":"object","properties":{"a":' * 400 + "{}" + "}}" * 400

    with pytest.raises(SchemaError, match=r"nested too deep|not JSON"):
        JSON.columns(text)


def test_a_given_schema_is_registered_as_it_stands():
    """It is not compared with the columns: that takes a validator of JSON Schema."""
    assert JSON.writing(USER, '{"type":  "object"}').schema == '{"type":  "object"}'


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_messages_of_another_kind(kind):
    """They are refused by the type of their schema."""
    with pytest.raises(SchemaError, match=f"Schema id 7 is of the type {kind}, not a JSON Schema"):
        JSON.read(USER, [PREFIX], "{}", kind=kind)


def test_options_of_json():
    """They mean what they mean to the format ``json``."""
    both = {"fail-on-missing-field": True, "ignore-parse-errors": True}
    with pytest.raises(OptionError, match="shouldn't both be true"):
        JSON.read(USER, [], "{}", options=both)
    rows = batch(USER, (1, None))
    assert JSON.write(USER, rows, options={"encode.ignore-null-fields": True}) == [
        PREFIX + b'{"id":1}'
    ]


def test_what_json_cannot_carry():
    """It is refused before anything is read or written."""
    schema = StructType([StructField("m", MapType(LongType(), StringType()))])
    for compiled in (JSON.writing, lambda it: JSON.read(it, [], "{}")):
        with pytest.raises(SchemaError, match="non-string as key type of map"):
            compiled(schema)
    assert rows_of(JSON.read(USER, [PREFIX + b'{"name":"a","more":1}'], "{}")) == [(None, "a")]
    assert list(JSON.read(USER, [PREFIX], "{}").errors) == [0]


@pytest.mark.parametrize(
    ("branches", "kind"),
    [
        ([{"type": "null", "title": "Not included"}, {"type": "string"}], "string"),
        (
            [{"type": "number", "connect.type": "int64"}, {"type": "null", "description": "none"}],
            "bigint",
        ),
        ([{"type": "null"}, {"type": "string"}], "string"),
        ([{"type": "null"}, {"type": "null"}], None),
        ([{"type": "string"}, {"type": "integer"}], None),
        ([{"type": "null"}], None),
        ([True, {"type": "string"}], None),
    ],
)
def test_one_of_null_and_a_type(branches: Any, kind: str | None) -> None:
    """It may be NULL, whatever title or description the null has; as Confluent's own generator of schemas writes it."""
    schema = json.dumps({"type": "object", "properties": {"a": {"oneOf": branches}}})
    if kind is None:
        with pytest.raises(SchemaError, match="which type 'a' has"):
            JSON.columns(schema)
    else:
        assert JSON.columns(schema).simpleString() == f"struct<a:{kind}>"


class _Counted(str):
    """A name that counts how often it is compared with others."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_property_is_looked_for_once_among_those_that_are_required():
    """A schema with many of both costs no more than its bytes; what is no name among them is skipped."""
    names = [_Counted(f"p{at}") for at in range(500)]
    schema = {
        "properties": {str(name): {"type": "string"} for name in names},
        "required": [*names, [], {}, 1],
    }
    found = columns_of(schema, "Schema id 7")
    assert not any(field.nullable for field in found)
    assert _Counted.compared < 5_000


@pytest.mark.alone("asserts how long it takes")
def test_names_are_put_together_where_an_error_shows_them():
    """Not for each property within one that has a long name; and the error shows the beginning."""
    inner = {f"p{at}": {"type": "string"} for at in range(20_000)}
    schema = {"properties": {"x" * 1_000_000: {"type": "object", "properties": inner}}}
    started = time.process_time()
    columns_of(schema, "Schema id 7")
    assert time.process_time() - started < 1
    inner["last"] = {}
    with pytest.raises(SchemaError, match=r"which type 'x{300}…' has"):
        columns_of(schema, "Schema id 7")
