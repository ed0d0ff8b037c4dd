"""JSON with a schema registry: after its prefix a message is what the format ``json`` reads and writes.

A schema is registered for what is written. Reading needs none: a message is read by its columns, once it is
sure that its id is that of a JSON Schema.

JSON Schema and columns: the schema that columns mean where none is given, and the columns that a schema means.

The schema of columns is that of Confluent's Flink, where values are the same:

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

A schema gives columns where it says plainly of each property which type it has. That is so of schemas derived from
columns, here or by Kafka Connect, and of most that people write. One that leaves a choice (``anyOf``, ``$ref``, a
list of types, ...) is refused: the user then has to give the columns.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
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
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats import json as json_format
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Records, RecordType
from pyspark_upsert_kafka.formats.json import OPTIONS
from pyspark_upsert_kafka.formats.prefixes import PrefixedDecoder, PrefixedEncoder
from pyspark_upsert_kafka.formats.registry_format import (
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    SeenRecords,
    of_newest_schema,
)


def decoder(spec: CodecSpec, _: RegisteredSchema | None) -> SchemaDecoder:
    """What reads one side.

    Raises:
        SchemaError: JSON cannot carry a column.
        OptionError: Two options contradict each other.
    """
    json_format.check(spec)

    seen = SeenRecords(spec)

    def of_schema(schema: RegisteredSchema, prefix_length: int) -> Decoder:
        seen.add(*_titles(schema))
        return PrefixedDecoder(json_format.decoder(spec), prefix_length)

    return of_schema


def encoder(spec: CodecSpec, given: RegisteredSchema | None) -> SchemaEncoder:
    """What writes one side; the given schema is registered as it stands, and not compared with the columns.

    Raises:
        SchemaError: JSON cannot carry a column, or the given schema is no JSON.
        OptionError: Two options contradict each other.
    """
    json_format.check(spec)
    if given:
        _parsed(given)

    def with_prefix(prefix: bytes) -> Encoder:
        return PrefixedEncoder(json_format.encoder(spec), prefix)

    return SchemaEncoder(given.text if given else _derived(spec), with_prefix)


def columns(schema: RegisteredSchema, spec: CodecSpec, _: str | None) -> StructType:
    """The columns that a JSON Schema gives.

    Raises:
        SchemaError: It is no JSON Schema, or does not say for each property which type it has.
    """
    parsed = _parsed(schema)
    found = columns_of(parsed, schema.origin)
    return of_newest_schema(found, with_default(parsed), spec.required)


def records(schema: RegisteredSchema) -> Records:
    """The title of a schema, and its properties.

    Raises:
        SchemaError: It is no JSON.
    """
    parsed = _parsed(schema)
    if not isinstance(parsed, dict):
        return Records((RecordType(""),))
    title, properties = parsed.get("title"), parsed.get("properties")
    fields = frozenset(properties) if isinstance(properties, dict) and properties else None
    return Records((RecordType(title if isinstance(title, str) else "", fields),))


def _titles(schema: RegisteredSchema) -> list[str]:
    """The title of a schema that need not be understood: a message is read by the columns."""
    with suppress(SchemaError):
        return [each.name for each in records(schema).all]
    return []


def _parsed(schema: RegisteredSchema) -> object:
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{schema.origin} is not JSON: {error}.") from None


def _derived(spec: CodecSpec) -> str:
    """Always in the same words: some registries give each text an id of its own."""
    return json.dumps(derived_schema(spec.schema, spec.required), separators=(",", ":"))


Json = dict[str, Any]

_DECIMAL_TITLE = "org.apache.kafka.connect.data.Decimal"

# Confluent's serializers for Python and .NET want a title.
_TITLE = "Record"

_NUMBERS: dict[type[DataType], str] = {
    ByteType: "int8",
    DayTimeIntervalType: "int64",
    DoubleType: "float64",
    FloatType: "float32",
    IntegerType: "int32",
    LongType: "int64",
    ShortType: "int16",
}
_BY_CONNECT_TYPE: dict[object, type[DataType]] = {
    name: kind for kind, name in _NUMBERS.items() if kind is not DayTimeIntervalType
}
_OTHERS: dict[type[DataType], Json] = {
    BinaryType: {"type": "string", "connect.type": "bytes"},
    BooleanType: {"type": "boolean"},
    VariantType: {},
}
_BY_TYPE: dict[object, type[DataType]] = {
    "boolean": BooleanType,
    "integer": LongType,
    "number": DoubleType,
    "string": StringType,
}
_MOST_DIGITS = 38
_LONGEST = 300


def derived_schema(columns: StructType, required: frozenset[str]) -> Json:
    """The schema of messages with these columns.

    Args:
        columns: The columns, all of types that the format ``json`` carries.
        required: Those that are never null, whatever the columns say: the primary key.
    """
    return {"title": _TITLE, **_object_schema(columns, required)}


def _object_schema(columns: StructType, required: frozenset[str] = frozenset()) -> Json:
    properties: Json = {}
    for index, field in enumerate(columns.fields):
        kind = _schema_of(field.dataType)
        nullable = field.nullable and field.name not in required
        properties[field.name] = (_or_null(kind) if nullable else kind) | {"connect.index": index}
    present = [field.name for field in columns if not field.nullable or field.name in required]
    schema = {"type": "object", "properties": properties}
    return schema | {"required": present} if present else schema


def _schema_of(kind: DataType) -> Json:
    """The schema of what is not null."""
    if isinstance(kind, StructType):
        return _object_schema(kind)
    if isinstance(kind, ArrayType):
        items = _schema_of(kind.elementType)
        return {"type": "array", "items": _or_null(items) if kind.containsNull else items}
    if isinstance(kind, MapType):
        values = _schema_of(kind.valueType)
        values = _or_null(values) if kind.valueContainsNull else values
        return {"type": "object", "connect.type": "map", "additionalProperties": values}
    return _simple_schema(kind)


def _simple_schema(kind: DataType) -> Json:
    if isinstance(kind, DecimalType):
        digits = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        decimal = {"title": _DECIMAL_TITLE, "connect.type": "bytes", "connect.parameters": digits}
        return {"type": "number", **decimal}
    if type(kind) in _NUMBERS:
        return {"type": "number", "connect.type": _NUMBERS[type(kind)]}
    return dict(_OTHERS.get(type(kind), {"type": "string"}))


def _or_null(kind: Json) -> Json:
    return {"oneOf": [{"type": "null"}, kind]} if kind else kind


def columns_of(schema: object, origin: str) -> StructType:
    """The columns of an object's schema: in the order of ``connect.index``, else in its own.

    Args:
        schema: The schema, parsed.
        origin: Where it comes from, for errors.

    Raises:
        SchemaError: It is not the schema of an object, or does not say which type a property has.
    """
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        try:
            return _struct(schema, ())
        except _UnclearError as why:
            raise SchemaError(f"{origin}: {why}. Give the columns by .schema(...).") from None
        except RecursionError:
            raise SchemaError(f"{origin} is nested too deep.") from None
    raise SchemaError(
        f"{origin} does not say which properties a message has. Give the columns by .schema(...)."
    )


def with_default(schema: Any) -> list[str]:
    """The properties of an object's schema that have a default."""
    properties: Json = schema["properties"]
    return [name for name, of in properties.items() if isinstance(of, dict) and "default" in of]


_Path = tuple[str, ...]
"""Where a property stands: the parts of its name in an error, which is made when there is one."""


class _UnclearError(Exception):
    """A schema does not say which type something has."""


def _struct(schema: dict[str, Any], path: _Path) -> StructType:
    properties = schema["properties"]
    listed = schema.get("required")
    required = (
        {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else ()
    )
    names = sorted(properties, key=lambda name: _index(properties[name]))
    fields = []
    for name in names:
        kind, nullable = _type(properties[name], (*path, name))
        fields.append(StructField(name, kind, nullable or name not in required))
    return StructType(fields)


def _index(schema: object) -> int:
    index = schema.get("connect.index") if isinstance(schema, dict) else None
    return index if isinstance(index, int) else 0


def _type(schema: object, path: _Path) -> tuple[DataType, bool]:
    """The type, and whether it may be NULL."""
    if not isinstance(schema, dict):
        raise _UnclearError(f"it does not say which type {_shown(path)} has")
    branches = schema.get("oneOf")
    if isinstance(branches, list) and len(branches) == 2:
        others = [branch for branch in branches if not _is_null(branch)]
        if len(others) == 1:
            return _type(others[0], path)[0], True
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, path), False
    if kind == "array" and "items" in schema:
        return ArrayType(*_type(schema["items"], (*path, "[]"))), False
    return _simple(schema, path), False


def _is_null(schema: object) -> bool:
    """Whether a schema is that of null, whatever title or description it has."""
    return isinstance(schema, dict) and schema.get("type") == "null"


def _shown(path: _Path) -> str:
    """The path, cut where it is long."""
    text = "".join(path)
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _object(schema: dict[str, Any], path: _Path) -> DataType:
    if isinstance(schema.get("properties"), dict):
        return _struct(schema, (*path, "."))
    if isinstance(schema.get("additionalProperties"), dict):
        return MapType(StringType(), *_type(schema["additionalProperties"], (*path, "{}")))
    raise _UnclearError(f"it does not say which properties {_shown(path)} has")


def _simple(schema: dict[str, Any], path: _Path) -> DataType:
    kind, connect_type = schema.get("type"), schema.get("connect.type")
    is_number = kind in ("number", "integer")
    if is_number and isinstance(connect_type, str) and connect_type in _BY_CONNECT_TYPE:
        return _BY_CONNECT_TYPE[connect_type]()
    if kind == "number" and schema.get("title") == _DECIMAL_TITLE:
        return _decimal(schema.get("connect.parameters"), path)
    if kind == "string" and connect_type == "bytes":
        return BinaryType()
    if isinstance(kind, str) and kind in _BY_TYPE:
        return _BY_TYPE[kind]()
    raise _UnclearError(f"it does not say in one word which type {_shown(path)} has")


def _decimal(parameters: object, path: _Path) -> DecimalType:
    try:
        scale = int(parameters["scale"])  # type: ignore[index]
        precision = int(parameters.get("connect.decimal.precision", _MOST_DIGITS))  # type: ignore[attr-defined]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise _UnclearError(f"it does not say which scale {_shown(path)} has") from None
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        raise _UnclearError(
            f"Spark has no DECIMAL({precision}, {scale}), the type of {_shown(path)}"
        )
    return DecimalType(precision, scale)


FORMAT = RegistryFormat(
    "json-registry",
    "JSON",
    "a JSON Schema",
    decoder,
    encoder,
    columns,
    records,
    OPTIONS,
    fields=json_format.fields,
    id_is_seen=True,
)

JSON_GLUE = replace(FORMAT, name="json-glue", registry="glue")
"""The same with a registry of AWS Glue."""
