"""The Spark columns that a JSON Schema means, where it says plainly of each property which type it has.

That is so of schemas derived from columns, here or by Kafka Connect, and of most that people write. A schema
that leaves a choice (``anyOf``, ``$ref``, a list of types, ...) is refused: the columns are then for the user to say.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
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
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.json_registry.derive import DECIMAL_TITLE

_BY_CONNECT_TYPE: dict[object, type[DataType]] = {
    "float32": FloatType,
    "float64": DoubleType,
    "int16": ShortType,
    "int32": IntegerType,
    "int64": LongType,
    "int8": ByteType,
}
_BY_TYPE: dict[object, type[DataType]] = {
    "boolean": BooleanType,
    "integer": LongType,
    "number": DoubleType,
    "string": StringType,
}
_NULL = {"type": "null"}
_MOST_DIGITS = 38


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
            return _struct(schema, "")
        except _UnclearError as why:
            raise SchemaError(f"{origin}: {why}. Give the columns by .schema(...).") from None
        except RecursionError:
            raise SchemaError(f"{origin} is nested too deep.") from None
    raise SchemaError(
        f"{origin} does not say which properties a message has. Give the columns by .schema(...)."
    )


class _UnclearError(Exception):
    """A schema does not say which type something has."""


def _struct(schema: dict[str, Any], path: str) -> StructType:
    properties = schema["properties"]
    required = schema.get("required")
    names = sorted(properties, key=lambda name: _index(properties[name]))
    fields = []
    for name in names:
        kind, nullable = _type(properties[name], path + name)
        present = isinstance(required, list) and name in required
        fields.append(StructField(name, kind, nullable or not present))
    return StructType(fields)


def _index(schema: object) -> int:
    index = schema.get("connect.index") if isinstance(schema, dict) else None
    return index if isinstance(index, int) else 0


def _type(schema: object, path: str) -> tuple[DataType, bool]:
    """The type, and whether it may be NULL."""
    if not isinstance(schema, dict):
        raise _UnclearError(f"it does not say which type {path!r} has")
    branches = schema.get("oneOf")
    if isinstance(branches, list) and len(branches) == 2 and _NULL in branches:
        other = branches[1 - branches.index(_NULL)]
        return _type(other, path)[0], True
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, path), False
    if kind == "array" and "items" in schema:
        return ArrayType(*_type(schema["items"], f"{path}[]")), False
    return _simple(schema, path), False


def _object(schema: dict[str, Any], path: str) -> DataType:
    if isinstance(schema.get("properties"), dict):
        return _struct(schema, f"{path}.")
    if isinstance(schema.get("additionalProperties"), dict):
        return MapType(StringType(), *_type(schema["additionalProperties"], f"{path}{{}}"))
    raise _UnclearError(f"it does not say which properties {path!r} has")


def _simple(schema: dict[str, Any], path: str) -> DataType:
    kind, connect_type = schema.get("type"), schema.get("connect.type")
    is_number = kind in ("number", "integer")
    if is_number and isinstance(connect_type, str) and connect_type in _BY_CONNECT_TYPE:
        return _BY_CONNECT_TYPE[connect_type]()
    if kind == "number" and schema.get("title") == DECIMAL_TITLE:
        return _decimal(schema.get("connect.parameters"), path)
    if kind == "string" and connect_type == "bytes":
        return BinaryType()
    if isinstance(kind, str) and kind in _BY_TYPE:
        return _BY_TYPE[kind]()
    raise _UnclearError(f"it does not say in one word which type {path!r} has")


def _decimal(parameters: object, path: str) -> DecimalType:
    try:
        scale = int(parameters["scale"])  # type: ignore[index]
        precision = int(parameters.get("connect.decimal.precision", _MOST_DIGITS))  # type: ignore[attr-defined]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise _UnclearError(f"it does not say which scale {path!r} has") from None
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        raise _UnclearError(f"Spark has no DECIMAL({precision}, {scale}), the type of {path!r}")
    return DecimalType(precision, scale)
