"""The Avro schema that columns mean, as Flink's ``AvroSchemaConverter`` derives it."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
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
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro import FORMAT
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from tests.unit.formats.avro.writing import decimal, logical
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.json.codecs import columns, required

INT, TEXT = IntegerType(), StringType()

ROWS_OF_ROWS = """{
  "type" : "record",
  "name" : "record",
  "namespace" : "org.apache.flink.avro.generated",
  "fields" : [ {
    "name" : "row1",
    "type" : [ "null", {
      "type" : "record",
      "name" : "record_row1",
      "fields" : [ {
        "name" : "a",
        "type" : [ "null", "string" ],
        "default" : null
      } ]
    } ],
    "default" : null
  }, {
    "name" : "row2",
    "type" : [ "null", {
      "type" : "record",
      "name" : "record_row2",
      "fields" : [ {
        "name" : "b",
        "type" : [ "null", "string" ],
        "default" : null
      } ]
    } ],
    "default" : null
  }, {
    "name" : "row3",
    "type" : [ "null", {
      "type" : "record",
      "name" : "record_row3",
      "fields" : [ {
        "name" : "row3",
        "type" : [ "null", {
          "type" : "record",
          "name" : "record_row3_row3",
          "fields" : [ {
            "name" : "c",
            "type" : [ "null", "string" ],
            "default" : null
          } ]
        } ],
        "default" : null
      } ]
    } ],
    "default" : null
  } ]
}"""

TYPES = [
    (BooleanType(), "boolean"),
    (ByteType(), "int"),
    (ShortType(), "int"),
    (INT, "int"),
    (LongType(), "long"),
    (FloatType(), "float"),
    (DoubleType(), "double"),
    (TEXT, "string"),
    (BinaryType(), "bytes"),
    (DecimalType(10, 0), decimal(10, 0)),
    (DecimalType(38, 18), decimal(38, 18)),
    (DateType(), logical("int", "date")),
    (TimestampType(), logical("long", "timestamp-millis")),
    (TimestampNTZType(), logical("long", "timestamp-millis")),
    (
        DayTimeIntervalType(),
        {"type": "long", "spark.sql.catalyst.type": "interval day to second"},
    ),
    (ArrayType(INT), {"type": "array", "items": ["null", "int"]}),
    (ArrayType(INT, containsNull=False), {"type": "array", "items": "int"}),
    (MapType(TEXT, INT), {"type": "map", "values": ["null", "int"]}),
    (MapType(TEXT, INT, valueContainsNull=False), {"type": "map", "values": "int"}),
]

REFUSED = [
    (VariantType(), "Unsupported to derive Schema for type: VARIANT (column 'c.d')."),
    (YearMonthIntervalType(), "INTERVAL YEAR TO MONTH (column 'c.d')."),
    (MapType(INT, TEXT), "non-string as key type of map. The key type is: INT (column 'c.d')."),
]


def derived(schema, *keys, legacy=True):
    """The schema of columns."""
    return derived_schema(schema, frozenset(keys), legacy_timestamps=legacy)


def only_type(kind, **how):
    """The type of a column that is not nullable."""
    (field,) = derived(required(c=kind), **how)["fields"]
    return field["type"]


def test_rows_within_rows():
    """The text of Flink's own test: names, namespace, nulls, defaults, and the order of attributes."""
    schema = columns(row1=columns(a=TEXT), row2=columns(b=TEXT), row3=columns(row3=columns(c=TEXT)))

    assert json.dumps(derived(schema)) == json.dumps(json.loads(ROWS_OF_ROWS))


@pytest.mark.parametrize(("kind", "avro"), TYPES)
def test_types(kind, avro):
    """Every type has one mapping; what may be NULL is a union of null with it."""
    assert only_type(kind) == avro
    assert derived(columns(c=kind))["fields"] == [
        {"name": "c", "type": ["null", avro], "default": None}
    ]


PRECISE = [
    (TimestampType(), "timestamp-micros", "timestamp-millis"),
    (TimestampNTZType(), "local-timestamp-micros", "local-timestamp-millis"),
]


@pytest.mark.parametrize(("kind", "avro", "within"), PRECISE)
def test_precise_timestamps(kind, avro, within):
    """Without the legacy mapping timestamps have microseconds, but in arrays and maps, as Flink's."""
    assert only_type(kind, legacy=False) == logical("long", avro)
    array = ArrayType(columns(a=kind), containsNull=False)
    (field,) = only_type(array, legacy=False)["items"]["fields"]
    assert field["type"] == ["null", logical("long", within)]
    assert only_type(MapType(TEXT, kind, valueContainsNull=False), legacy=False) == {
        "type": "map",
        "values": logical("long", within),
    }


def test_the_primary_key_is_never_null():
    """A key column is no union, whatever the columns say; a field of its name deeper down may be."""
    schema = columns(id=INT, row=columns(id=INT))

    fields = derived(schema, "id")["fields"]

    assert fields[0] == {"name": "id", "type": "int"}
    assert fields[1]["type"][1]["fields"] == [
        {"name": "id", "type": ["null", "int"], "default": None}
    ]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (required(c=INT), "c"),
        (columns(c=required(d=INT)), "c.d"),
        (columns(c=ArrayType(INT, containsNull=False)), "c[]"),
        (columns(c=MapType(TEXT, ArrayType(required(d=INT)))), "c{}[].d"),
    ],
)
def test_a_reader_cannot_know_what_its_writer_took_for_not_null(schema, path):
    """A message of a derived schema looks the same either way, so NOT NULL is refused rather than guessed."""
    with pytest.raises(SchemaError, match=re.escape(f"Column '{path}' is NOT NULL")):
        FORMAT.decoder(codec_spec(FORMAT, schema, "value", {}))

    FORMAT.encoder(codec_spec(FORMAT, schema, "value", {}))
    given = json.dumps(derived_schema(schema, frozenset(), legacy_timestamps=True))
    FORMAT.decoder(codec_spec(FORMAT, schema, "value", {"schema": given}))


def test_what_no_writer_leaves_out_may_be_not_null():
    """The primary key, or what a reader without one declares: every writer has it so."""
    FORMAT.decoder(codec_spec(FORMAT, required(c=INT), "value", {}, required=frozenset("c")))
    FORMAT.decoder(codec_spec(FORMAT, required(c=INT), "key", {}))


def test_records_in_arrays_and_maps_bear_the_field_s_name():
    """A record in a collection is named by the field, as if it stood there itself."""
    row = columns(a=INT)
    schema = columns(list=ArrayType(row), map=MapType(TEXT, ArrayType(row)))

    lists, maps = (field["type"][1] for field in derived(schema)["fields"])

    assert lists["items"][1]["name"] == "record_list"
    assert maps["values"][1]["items"][1]["name"] == "record_map"


@pytest.mark.parametrize(("kind", "message"), REFUSED)
def test_types_without_a_mapping(kind, message):
    """A column that Avro has no type for is refused with its path."""
    with pytest.raises(SchemaError) as error:
        derived(columns(c=columns(d=kind)))
    assert message in str(error.value)


def test_names_that_avro_does_not_know():
    """Flink fails on such a name too."""
    with pytest.raises(SchemaError, match="user id"):
        parse_schema(derived(columns(**{"user id": INT})))
