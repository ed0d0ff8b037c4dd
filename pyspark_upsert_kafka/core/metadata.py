"""Metadata of a message, and the columns that show it (contract 1.1; Flink's ``METADATA FROM``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

from pyspark_upsert_kafka.core.errors import SchemaError

_HEADER = StructType([StructField("key", StringType(), False), StructField("value", BinaryType())])
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
    "header-list": (ArrayType(_HEADER, containsNull=False),),
    "leader-epoch": (IntegerType(), LongType()),
    CHANGE_TYPE: (StringType(),),
    ERROR: (_ERROR,),
}
"""Metadata key -> the types that hold it without loss, the usual one first; NOT NULL in them is true."""

MAY_BE_NULL = frozenset({"timestamp", "leader-epoch", ERROR})
"""Metadata that not every message has."""

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

PHYSICAL = "none"
"""In place of a metadata key: the column is an ordinary one."""


@dataclass(frozen=True)
class MetadataColumn:
    """A column of the table that shows or sets metadata of the message."""

    name: str
    key: str
    type: DataType


def metadata_columns(
    schema: StructType, named: tuple[tuple[str, str], ...], *, reading: bool
) -> tuple[MetadataColumn, ...]:
    """The metadata columns among those of the schema.

    Args:
        schema: All columns of the table.
        named: Options ``metadata.<column>``: column in lower case and metadata key.
        reading: Whether each of these columns must be in the schema, and NOT NULL in a type be true;
            what is written need not have all columns, and may promise more.

    Raises:
        SchemaError: An option names no column, or a column has a type that cannot hold its metadata.
    """
    keys = {**RESERVED, **dict(named)}
    columns = {field.name.lower(): field for field in schema}
    missing = [column for column, _ in named if column not in columns]
    if missing and reading:
        raise SchemaError(
            f"Option 'metadata.{missing[0]}' names a column that is not in the table's schema. "
            f"Its columns: {', '.join(schema.names)}."
        )
    return tuple(
        _checked(field, keys[name], reading=reading)
        for name, field in columns.items()
        if keys.get(name, PHYSICAL) != PHYSICAL
    )


def _checked(field: StructField, key: str, *, reading: bool) -> MetadataColumn:
    kinds, nullable = _parts(field.dataType)
    known = dict(map(_parts, TYPES[key]))
    if kinds not in known:
        raise SchemaError(
            f"Column {field.name!r} shows the metadata {key!r}, which is "
            f"{' or '.join(map(_shown, TYPES[key]))}, but has the type {_shown(field.dataType)}. "
            f"Change its type, or make it an ordinary column with 'metadata.{field.name}' = 'none'."
        )
    if reading and any(null and not may for null, may in zip(known[kinds], nullable, strict=True)):
        raise SchemaError(
            f"Column {field.name!r} shows the metadata {key!r} and has NOT NULL in its type where a "
            "message may have nothing. Make it nullable."
        )
    return MetadataColumn(field.name, key, field.dataType)


def _shown(type_: DataType) -> str:
    return type_.simpleString().upper()


def _parts(type_: DataType, nullable: bool = True) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
    """What the type is and the types in it are, and for each of them whether it may be NULL."""
    what: Any = type(type_)
    inner: list[tuple[DataType, bool]] = []
    if isinstance(type_, StructType):
        what = tuple(type_.names)
        inner = [(field.dataType, field.nullable) for field in type_]
    elif isinstance(type_, ArrayType):
        inner = [(type_.elementType, type_.containsNull)]
    elif isinstance(type_, MapType):
        inner = [(type_.keyType, False), (type_.valueType, type_.valueContainsNull)]
    parts = [_parts(*each) for each in inner]
    return (
        (what, *(kind for kinds, _ in parts for kind in kinds)),
        (nullable, *(null for _, nulls in parts for null in nulls)),
    )
