"""Metadata of a message, and the columns that show it (contract 1.1; Flink's ``METADATA FROM``)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_ERROR = StructType(
    [
        StructField("stage", StringType()),
        StructField("message", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)

CHANGE_TYPE = "change-type"
ERROR = "error"

TYPES: dict[str, tuple[DataType, ...]] = {
    "topic": (StringType(),),
    "partition": (IntegerType(), LongType()),
    "offset": (LongType(),),
    "timestamp": (TimestampType(), TimestampNTZType()),
    "timestamp-type": (StringType(),),
    "headers": (MapType(StringType(), BinaryType()),),
    "header-list": (ArrayType(_HEADER),),
    "leader-epoch": (IntegerType(), LongType()),
    CHANGE_TYPE: (StringType(),),
    ERROR: (_ERROR,),
}
"""Metadata key -> the types that hold it without loss, the usual one first."""

RESERVED = {
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_timestamp_type": "timestamp-type",
    "_headers": "header-list",
    "_leader_epoch": "leader-epoch",
    "_change_type": CHANGE_TYPE,
    "_error": ERROR,
}
"""Reserved column name -> metadata key."""

WRITABLE = ("topic", "timestamp", "headers", "header-list", CHANGE_TYPE)
"""Metadata that a sink takes from the row; the rest it ignores."""

_PHYSICAL = "none"


@dataclass(frozen=True)
class MetadataColumn:
    """A column of the table that shows or sets metadata of the message."""

    name: str
    key: str
    type: DataType


def metadata_columns(
    schema: StructType, named: tuple[tuple[str, str], ...], *, all_named_exist: bool
) -> tuple[MetadataColumn, ...]:
    """The metadata columns among those of the schema.

    Args:
        schema: All columns of the table.
        named: Options ``metadata.<column>``: column in lower case and metadata key.
        all_named_exist: Whether each of these columns must be in the schema.

    Raises:
        OptionError: A ``metadata.<column>`` names no metadata key.
        SchemaError: It names no column, or a column has a type that cannot hold its metadata.
    """
    keys = dict(named)
    allowed = [*(key for key in TYPES if key != ERROR), _PHYSICAL]
    for column, key in keys.items():
        if key not in allowed:
            raise OptionError(
                f"Invalid value for option 'metadata.{column}': expected one of "
                f"{', '.join(repr(name) for name in allowed)}, but is {key!r}."
            )
    by_lower = {field.name.lower() for field in schema}
    missing = [column for column in keys if column not in by_lower]
    if missing and all_named_exist:
        raise SchemaError(
            f"Option 'metadata.{missing[0]}' names a column that is not in the table's schema. "
            f"Its columns: {', '.join(schema.names)}."
        )
    found = []
    for field in schema:
        key = keys.get(field.name.lower(), RESERVED.get(field.name.lower(), _PHYSICAL))
        if key != _PHYSICAL:
            found.append(_checked(field, key))
    return tuple(found)


def _checked(field: StructField, key: str) -> MetadataColumn:
    if not any(_same(field.dataType, allowed) for allowed in TYPES[key]):
        types = " or ".join(allowed.simpleString().upper() for allowed in TYPES[key])
        raise SchemaError(
            f"Column {field.name!r} shows the metadata {key!r}, which is {types}, but has the type "
            f"{field.dataType.simpleString().upper()}. Change its type, or make it an ordinary column "
            f"with 'metadata.{field.name}' = 'none'."
        )
    return MetadataColumn(field.name, key, field.dataType)


def _same(one: DataType, other: DataType) -> bool:
    """Equal types, whatever is nullable in them."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        return one.names == other.names and all(
            _same(a.dataType, b.dataType) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return _same(one.elementType, other.elementType)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return _same(one.keyType, other.keyType) and _same(one.valueType, other.valueType)
    return type(one) is type(other)
