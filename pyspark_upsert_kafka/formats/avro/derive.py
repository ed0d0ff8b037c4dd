"""The Avro schema that columns mean when none is given: that of Flink's ``AvroSchemaConverter``.

=========================== ======================================================================
Spark                       Avro
=========================== ======================================================================
BOOLEAN                     boolean
BYTE, SHORT, INT            int
LONG                        long
FLOAT, DOUBLE               float, double
STRING                      string
BINARY                      bytes
DECIMAL(p, s)               bytes, decimal(p, s)
DATE                        int, date
TIMESTAMP, TIMESTAMP_NTZ    long, timestamp-millis by the legacy mapping; else
TIMESTAMP                   long, timestamp-micros; within arrays and maps timestamp-millis
TIMESTAMP_NTZ               the same of a local-timestamp
INTERVAL DAY TO SECOND      long of microseconds, as Spark's ``SchemaConverters`` has it
ARRAY, MAP with STRING keys array, map
STRUCT                      record
=========================== ======================================================================

What may be NULL is a union of null and its type. Within arrays and maps Flink writes milliseconds by either
mapping, and these bytes are Flink's. Only where Flink knows no mapping is this one its own: by the legacy
mapping Flink has no TIMESTAMP_LTZ, within arrays and maps neither, and it has no intervals at all.
"""

from __future__ import annotations

from typing import Any

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
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError

Json = dict[str, Any]

Path = tuple[str, ...]

NAMESPACE = "org.apache.flink.avro.generated"

Timestamps = dict[type[DataType], str]
"""The logical type of each kind of timestamp."""

_LEGACY: Timestamps = dict.fromkeys((TimestampType, TimestampNTZType), "timestamp-millis")
_PRECISE: Timestamps = {
    TimestampType: "timestamp-micros",
    TimestampNTZType: "local-timestamp-micros",
}
_WITHIN_PRECISE: Timestamps = {
    TimestampType: "timestamp-millis",
    TimestampNTZType: "local-timestamp-millis",
}
_SIMPLE: dict[type[DataType], str | Json] = {
    BinaryType: "bytes",
    BooleanType: "boolean",
    ByteType: "int",
    DateType: {"type": "int", "logicalType": "date"},
    DoubleType: "double",
    FloatType: "float",
    IntegerType: "int",
    LongType: "long",
    ShortType: "int",
    StringType: "string",
}


def derived_schema(
    columns: StructType, required: frozenset[str], *, legacy_timestamps: bool
) -> dict[str, Any]:
    """The schema of messages with these columns.

    Args:
        columns: The columns.
        required: Those that are never null, whatever the columns say: the primary key.
        legacy_timestamps: Whether all timestamps are ``timestamp-millis``.

    Raises:
        SchemaError: Avro has no type for a column.
    """
    record = _record(columns, (), required, _LEGACY if legacy_timestamps else _PRECISE)
    return {"type": "record", "name": record["name"], "namespace": NAMESPACE, **record}


def _record(
    columns: StructType, path: Path, required: frozenset[str], timestamps: Timestamps
) -> Json:
    """As ``convertToSchema`` has it: a nested record bears the names of the fields around it."""
    fields: list[Json] = []
    for field in columns.fields:
        kind = _type(field.dataType, (*path, field.name), timestamps)
        if field.nullable and field.name not in required:
            fields.append({"name": field.name, "type": ["null", kind], "default": None})
        else:
            fields.append({"name": field.name, "type": kind})
    return {"type": "record", "name": "_".join(("record", *path)), "fields": fields}


def _type(kind: DataType, path: Path, timestamps: Timestamps) -> str | Json:
    """The type of what is not null."""
    if isinstance(kind, StructType):
        return _record(kind, path, frozenset(), timestamps)
    if isinstance(kind, ArrayType):
        items = _type(kind.elementType, path, _within(timestamps))
        return {"type": "array", "items": _or_null(items, kind.containsNull)}
    if isinstance(kind, MapType):
        _check_key(kind, path)
        values = _type(kind.valueType, path, _within(timestamps))
        return {"type": "map", "values": _or_null(values, kind.valueContainsNull)}
    simple = _simple(kind, timestamps)
    if simple is None:
        raise SchemaError(
            f"Unsupported to derive Schema for type: {kind.simpleString().upper()} (column "
            f"{'.'.join(path)!r})."
        )
    return simple


def _within(timestamps: Timestamps) -> Timestamps:
    """Those of elements and values."""
    return _WITHIN_PRECISE if timestamps is _PRECISE else timestamps


def _simple(kind: DataType, timestamps: Timestamps) -> str | Json | None:
    if isinstance(kind, DecimalType):
        decimal = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", **decimal}
    if type(kind) in timestamps:
        return {"type": "long", "logicalType": timestamps[type(kind)]}
    if isinstance(kind, DayTimeIntervalType):
        return {"type": "long", "spark.sql.catalyst.type": kind.simpleString()}
    return _SIMPLE.get(type(kind))


def _or_null(kind: str | Json, nullable: bool) -> str | Json | list[str | Json]:
    return ["null", kind] if nullable else kind


def _check_key(kind: MapType, path: Path) -> None:
    """The wording is Flink's."""
    if not isinstance(kind.keyType, StringType):
        raise SchemaError(
            "Avro format doesn't support non-string as key type of map. The key type is: "
            f"{kind.keyType.simpleString().upper()} (column {'.'.join(path)!r})."
        )
