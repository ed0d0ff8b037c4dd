"""The Spark columns that an Avro schema means."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from tests.unit.formats.avro.codecs import columns_of
from tests.unit.formats.avro.writing import decimal, field, logical, record
from tests.unit.formats.json.codecs import columns, required

INT, LONG, TEXT = IntegerType(), LongType(), StringType()

TYPES = [
    ("boolean", BooleanType()),
    ("int", INT),
    ("long", LONG),
    ("float", FloatType()),
    ("double", DoubleType()),
    ("string", TEXT),
    ("bytes", BinaryType()),
    (logical("int", "date"), DateType()),
    (logical("int", "time-millis"), INT),
    (logical("long", "time-micros"), LONG),
    (logical("long", "timestamp-millis"), TimestampType()),
    (logical("long", "timestamp-micros"), TimestampType()),
    (logical("long", "timestamp-nanos"), LONG),
    (logical("long", "local-timestamp-millis"), TimestampNTZType()),
    (logical("long", "local-timestamp-micros"), TimestampNTZType()),
    (logical("string", "uuid"), TEXT),
    (logical("string", "date"), TEXT),
    (decimal(10, 2), DecimalType(10, 2)),
    (decimal(38, 0, "fixed", name="f", size=16), DecimalType(38, 0)),
    (decimal(38, 0, "fixed", name="f", size=2), BinaryType()),
    ({"type": "fixed", "name": "f", "size": 3}, BinaryType()),
    ({"type": "enum", "name": "e", "symbols": ["A"]}, TEXT),
    ({"type": "array", "items": "int"}, ArrayType(INT, containsNull=False)),
    ({"type": "array", "items": ["null", "int"]}, ArrayType(INT)),
    ({"type": "map", "values": "int"}, MapType(TEXT, INT, valueContainsNull=False)),
    ({"type": "map", "values": ["int", "null"]}, MapType(TEXT, INT)),
    (record(field("a", "int"), name="inner"), required(a=INT)),
    (["int"], INT),
    (["int", "long"], LONG),
    (["double", "float"], DoubleType()),
]

REFUSED = [
    (["int", "string"], "a union of several types"),
    (["null", "int", "string"], "a union of several types"),
    ("null", "nothing but null"),
    (decimal(39, 0), "a decimal of 39 digits"),
    (["null", "r"], "the record 'r' within itself"),
]


@pytest.mark.parametrize(("avro", "kind"), TYPES)
def test_types(avro, kind):
    """A field is of the type that Spark's own reader gives it, and NOT NULL without a null."""
    assert columns_of(record(field("c", avro))) == StructType(
        [StructField("c", kind, nullable=False)]
    )


@pytest.mark.parametrize("avro", [["null", "int"], ["int", "null"], ["null", "int", "long"]])
def test_unions_with_null(avro):
    """A union with null, on whichever side, is a nullable column of the rest."""
    (column,) = columns_of(record(field("c", avro)))

    assert column.nullable
    assert column.dataType == (LONG if "long" in avro else INT)


def test_the_order_of_the_fields_is_kept():
    """Columns stand as the fields do."""
    schema = record(field("b", "int"), field("a", "int"))

    assert columns_of(schema).names == ["b", "a"]


def test_what_was_derived_means_the_same_columns():
    """From columns to a schema and back nothing changes, where the types are Avro's own."""
    schema = columns(
        a=INT, b=TEXT, c=ArrayType(columns(d=DecimalType(9, 3))), e=MapType(TEXT, DateType())
    )
    keys = frozenset({"a"})

    back = columns_of(derived_schema(schema, keys, legacy_timestamps=False))

    assert back == StructType([StructField("a", INT, nullable=False), *schema.fields[1:]])


@pytest.mark.parametrize(("avro", "what"), REFUSED)
def test_types_without_a_column(avro, what):
    """What Spark has no type for is refused with the field and a way out."""
    with pytest.raises(SchemaError) as error:
        columns_of(record(field("c", avro)))
    assert str(error.value) == (
        f"Field 'c' of the Avro schema is {what}, for which Spark has no type. Give the columns by "
        ".schema(...)."
    )


def test_only_a_record_has_columns():
    """The fields of a record are the columns; nothing else has names for them."""
    with pytest.raises(SchemaError, match="must be a record"):
        columns_of('"string"')
