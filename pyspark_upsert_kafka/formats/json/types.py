"""Which columns JSON can carry; said once, when a codec is compiled."""

from __future__ import annotations

from collections import Counter

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.simple_types import TEXT_TYPES

_SIMPLE = {*TEXT_TYPES, DayTimeIntervalType, VariantType}


def check_columns(columns: StructType, path: str = "") -> None:
    """Raises SchemaError for a column, or a field inside one, that JSON cannot carry."""
    for name, times in Counter(columns.names).items():
        if times > 1:
            raise SchemaError(
                f"Field {path + name!r} occurs {times} times; the fields of a JSON object need "
                "distinct names."
            )
    for field in columns.fields:
        _check(field.dataType, path + field.name)


def _check(kind: DataType, path: str) -> None:
    if isinstance(kind, StructType):
        check_columns(kind, f"{path}.")
    elif isinstance(kind, ArrayType):
        _check(kind.elementType, f"{path}[]")
    elif isinstance(kind, MapType):
        _check_key(kind, path)
        _check(kind.valueType, f"{path}{{}}")
    elif type(kind) not in _SIMPLE:
        raise SchemaError(_unsupported(kind, path))


def _check_key(kind: MapType, path: str) -> None:
    """As Flink's ``JsonParserToRowDataConverters`` and ``RowDataToJsonConverters`` have it."""
    if type(kind.keyType) is not StringType:
        raise SchemaError(
            "JSON format doesn't support non-string as key type of map. The type is: "
            f"{kind.simpleString()} (column {path!r})."
        )


def _unsupported(kind: DataType, path: str) -> str:
    text = f"JSON format doesn't support the type of column {path!r}: {kind.simpleString()}."
    if isinstance(kind, YearMonthIntervalType):
        text += " Spark cannot exchange it with Python; use a number of months or a STRING."
    return text
