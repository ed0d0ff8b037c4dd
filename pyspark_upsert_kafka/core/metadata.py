"""Metadata of a message, and the columns that show it: Flink's ``METADATA FROM``. Which of it a CDC format has makes it one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
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
HEADERS = frozenset({"headers", "header-list"})
"""The metadata keys that show or set a message's headers."""

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of a message, in their order."""

PHYSICAL = "none"
"""In place of a metadata key: the column is an ordinary one."""


class Detail(Enum):
    """What a client reads from a message only when it is needed, since it costs as much as the value."""

    TIMESTAMP = "timestamp"
    HEADERS = "headers"
    LEADER_EPOCH = "leader epoch"
    KEY_SCHEMA_ID = "__key_schema_id"
    VALUE_SCHEMA_ID = "__value_schema_id"
    KEY_ID_IS_SEEN = "an id that a key begins with is seen"
    VALUE_ID_IS_SEEN = "an id that a value begins with is seen"


SCHEMA_IDS = {"key": Detail.KEY_SCHEMA_ID, "value": Detail.VALUE_SCHEMA_ID}
"""The values of these headers, by sides: there Confluent's serializers name the schema of a side, if not before its bytes."""

ID_IS_SEEN = {
    Detail.KEY_SCHEMA_ID: Detail.KEY_ID_IS_SEEN,
    Detail.VALUE_SCHEMA_ID: Detail.VALUE_ID_IS_SEEN,
}
"""With one of these a client need not look for the header in messages of the side that begin with an id: nothing else begins so."""

LAST_BYTE_OF_IDS = 1
"""The highest byte that an id of Confluent's registry, or a GUID, begins with."""

IN_HEADERS = frozenset({Detail.HEADERS, *SCHEMA_IDS.values()})
"""For which of them a client reads the headers of messages."""

ALL_DETAILS = frozenset(Detail)


@dataclass(frozen=True)
class Metadata:
    """What a column can show of a message, or set.

    Args:
        key: Its name.
        column: The reserved name of the column that shows it; None = none.
        types: The types that hold it without loss, the usual one first; what is NOT NULL in them is never NULL.
        nullable: Whether some messages have none.
        writable: Whether a sink sets it from the row; other metadata columns of rows are ignored.
        detail: What a client must read from the message for it, beside what it always reads; None = nothing.
    """

    key: str
    column: str | None
    types: tuple[DataType, ...]
    nullable: bool = False
    writable: bool = False
    detail: Detail | None = None


METADATA = {
    metadata.key: metadata
    for metadata in (
        Metadata("topic", "_topic", (StringType(),), writable=True),
        Metadata("partition", "_partition", (IntegerType(), LongType())),
        Metadata("offset", "_offset", (LongType(),)),
        Metadata("timestamp", "_timestamp", (TimestampType(), TimestampNTZType()),
                 nullable=True, writable=True, detail=Detail.TIMESTAMP),
        Metadata("timestamp-type", "_timestamp_type", (StringType(),), detail=Detail.TIMESTAMP),
        Metadata("headers", None, (MapType(StringType(), BinaryType()),),
                 writable=True, detail=Detail.HEADERS),
        Metadata("header-list", "_headers", (ArrayType(_HEADER, containsNull=False),),
                 writable=True, detail=Detail.HEADERS),
        Metadata("leader-epoch", "_leader_epoch", (IntegerType(), LongType()),
                 nullable=True, detail=Detail.LEADER_EPOCH),
        Metadata(CHANGE_TYPE, "_change_type", (StringType(),), writable=True),
        Metadata(ERROR, "_error", (_ERROR,), nullable=True),
    )
}  # fmt: skip
"""All metadata of messages, by key."""

_TIME = (TimestampType(), TimestampNTZType())
_TEXTS = ArrayType(StringType())

METADATA_OF_FORMATS = {
    key: Metadata(key, None, types, nullable=True)
    for key, types in {
        "value.schema": (StringType(),),
        "value.ingestion-timestamp": _TIME,
        "value.event-timestamp": _TIME,
        "value.source.timestamp": _TIME,
        "value.source.database": (StringType(),),
        "value.source.schema": (StringType(),),
        "value.source.table": (StringType(),),
        "value.source.properties": (MapType(StringType(), StringType()),),
        "value.database": (StringType(),),
        "value.table": (StringType(),),
        "value.primary-key-columns": (_TEXTS,),
        "value.primary-keys": (_TEXTS,),
        "value.pk-names": (_TEXTS,),
        "value.sql-type": (MapType(StringType(), IntegerType()),),
    }.items()
}
"""What CDC formats read beside the row, by key; `CDC_FORMATS` says which of it each format has."""

ALL_METADATA = METADATA | METADATA_OF_FORMATS
"""All metadata that a column can show, by key."""

_RESERVED = {each.column: each.key for each in METADATA.values() if each.column is not None}


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
        reading: Whether the columns are read: then each column that is named must be in the schema, and NOT NULL in a type
            is allowed only where a message always has a value. Rows that are written need not have all columns.

    Raises:
        SchemaError: An option names no column, or a column has a type that cannot hold its metadata.
    """
    keys = {**_RESERVED, **dict(named)}
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


def with_reserved_names(columns: StructType, named: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The columns with a reserved name of which no option says what they are, each with the key of its metadata.

    >>> columns = StructType([StructField(name, LongType()) for name in ("id", "_Offset", "_partition")])
    >>> with_reserved_names(columns, (("_partition", "none"),))
    {'_Offset': 'offset'}
    """
    told = {column for column, _ in named}
    return {
        name: _RESERVED[name.lower()]
        for name in columns.names
        if name.lower() in _RESERVED and name.lower() not in told
    }


def _checked(field: StructField, key: str, *, reading: bool) -> MetadataColumn:
    shape, nullable = _parts(field.dataType)
    types = ALL_METADATA[key].types
    known = dict(map(_parts, types))
    if shape not in known:
        raise SchemaError(
            f"Column {field.name!r} shows the metadata {key!r}, which is "
            f"{' or '.join(map(_shown, types))}, but has the type {_shown(field.dataType)}. "
            f"Change its type, or make it an ordinary column with 'metadata.{field.name}' = 'none'."
        )
    if reading and any(null and not may for null, may in zip(known[shape], nullable, strict=True)):
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
        (what, *(part for shape, _ in parts for part in shape)),
        (nullable, *(null for _, nulls in parts for null in nulls)),
    )


_OF_DEBEZIUM = (
    "value.schema",
    "value.ingestion-timestamp",
    "value.source.timestamp",
    "value.source.database",
    "value.source.schema",
    "value.source.table",
    "value.source.properties",
)

CDC_FORMATS: Mapping[str, tuple[str, ...]] = {
    "canal-json": (
        "value.database",
        "value.table",
        "value.sql-type",
        "value.pk-names",
        "value.ingestion-timestamp",
        "value.event-timestamp",
    ),
    "debezium-avro-confluent": (),
    "debezium-json": _OF_DEBEZIUM,
    "maxwell-json": (
        "value.database",
        "value.table",
        "value.primary-key-columns",
        "value.ingestion-timestamp",
    ),
    "ogg-json": (
        "value.table",
        "value.primary-keys",
        "value.ingestion-timestamp",
        "value.event-timestamp",
    ),
}
"""Their names, and the metadata that each of them reads; keys and types are Flink's."""

DEBEZIUM_FORMATS = ("debezium-avro-confluent", "debezium-json")
"""Those that Kafka Connect's converters write."""


def check_metadata(columns: Iterable[MetadataColumn], value_format: str) -> None:
    """Raises SchemaError for a column that shows metadata of another format."""
    known = CDC_FORMATS.get(value_format, ())
    for column in columns:
        if column.key in METADATA_OF_FORMATS and column.key not in known:
            has = ", ".join(map(repr, known)) if known else "none of its own"
            raise SchemaError(
                f"Column {column.name!r} shows the metadata {column.key!r}, which the format '{value_format}' does not "
                f"have: it has {has}."
            )
