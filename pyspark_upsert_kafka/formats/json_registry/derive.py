"""The JSON Schema that columns mean when none is given: that of Confluent's Flink, where values are the same.

====================== ============================================ ==================================
Spark                  JSON Schema                                  ``connect.type``
====================== ============================================ ==================================
BOOLEAN                boolean
BYTE, SHORT, INT, LONG number                                       int8, int16, int32, int64
FLOAT, DOUBLE          number                                       float32, float64
DECIMAL(p, s)          number, titled as Connect's ``Decimal``      bytes
STRING                 string
BINARY                 string                                       bytes
DATE, TIMESTAMP,       string
TIMESTAMP_NTZ
INTERVAL DAY TO SECOND number                                       int64
ARRAY                  array
MAP with STRING keys   object with ``additionalProperties``         map
STRUCT                 object
VARIANT                anything
====================== ============================================ ==================================

What may be NULL is ``oneOf`` null and its type; what may not is ``required``. Confluent's Flink writes dates
and timestamps as numbers; here they are the texts of the format ``json``, and the schema says so.
Source: https://docs.confluent.io/cloud/current/flink/reference/serialization.html
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
    VariantType,
)

Json = dict[str, Any]

DECIMAL_TITLE = "org.apache.kafka.connect.data.Decimal"

_TITLE = "Record"
"""Confluent's serializers for Python and .NET want one."""

_NUMBERS: dict[type[DataType], str] = {
    ByteType: "int8",
    DayTimeIntervalType: "int64",
    DoubleType: "float64",
    FloatType: "float32",
    IntegerType: "int32",
    LongType: "int64",
    ShortType: "int16",
}
_OTHERS: dict[type[DataType], Json] = {
    BinaryType: {"type": "string", "connect.type": "bytes"},
    BooleanType: {"type": "boolean"},
    VariantType: {},
}


def derived_schema(columns: StructType, required: frozenset[str]) -> Json:
    """The schema of messages with these columns.

    Args:
        columns: The columns, all of types that the format ``json`` carries.
        required: Those that are never null, whatever the columns say: the primary key.
    """
    return {"title": _TITLE, **_object(columns, required)}


def _object(columns: StructType, required: frozenset[str] = frozenset()) -> Json:
    properties: Json = {}
    for index, field in enumerate(columns.fields):
        kind = _type(field.dataType)
        nullable = field.nullable and field.name not in required
        properties[field.name] = (_or_null(kind) if nullable else kind) | {"connect.index": index}
    present = [field.name for field in columns if not field.nullable or field.name in required]
    schema = {"type": "object", "properties": properties}
    return schema | {"required": present} if present else schema


def _type(kind: DataType) -> Json:
    """The schema of what is not null."""
    if isinstance(kind, StructType):
        return _object(kind)
    if isinstance(kind, ArrayType):
        items = _type(kind.elementType)
        return {"type": "array", "items": _or_null(items) if kind.containsNull else items}
    if isinstance(kind, MapType):
        values = _type(kind.valueType)
        values = _or_null(values) if kind.valueContainsNull else values
        return {"type": "object", "connect.type": "map", "additionalProperties": values}
    return _simple(kind)


def _simple(kind: DataType) -> Json:
    if isinstance(kind, DecimalType):
        digits = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        decimal = {"title": DECIMAL_TITLE, "connect.type": "bytes", "connect.parameters": digits}
        return {"type": "number", **decimal}
    if type(kind) in _NUMBERS:
        return {"type": "number", "connect.type": _NUMBERS[type(kind)]}
    return dict(_OTHERS.get(type(kind), {"type": "string"}))


def _or_null(kind: Json) -> Json:
    return {"oneOf": [{"type": "null"}, kind]} if kind else kind
