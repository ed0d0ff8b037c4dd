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
INTERVAL DAY TO SECOND      long of microseconds, as in Spark's ``SchemaConverters``
ARRAY, MAP with STRING keys array, map
STRUCT                      record
=========================== ======================================================================

What may be NULL is a union of null and its type. Within arrays and maps Flink writes milliseconds with either mapping,
and so does this connector. The types are this connector's own only where Flink has none: for a TIMESTAMP_LTZ with the
legacy mapping or within arrays and maps, and for an interval.
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

DERIVED = "The schema derived from the columns"
"""Where a schema comes from, for errors."""

NAMESPACE = "org.apache.flink.avro.generated"

TimestampTypes = dict[type[DataType], str]
"""The logical type of each kind of timestamp."""

_LEGACY: TimestampTypes = dict.fromkeys((TimestampType, TimestampNTZType), "timestamp-millis")
_PRECISE: TimestampTypes = {
    TimestampType: "timestamp-micros",
    TimestampNTZType: "local-timestamp-micros",
}
_WITHIN_PRECISE: TimestampTypes = {
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
    columns: StructType, path: Path, required: frozenset[str], timestamps: TimestampTypes
) -> Json:
    """A nested record is named after the fields around it, as in Flink's ``convertToSchema``."""
    fields: list[Json] = []
    for field in columns.fields:
        avro = _type(field.dataType, (*path, field.name), timestamps)
        if field.nullable and field.name not in required:
            fields.append({"name": field.name, "type": ["null", avro], "default": None})
        else:
            fields.append({"name": field.name, "type": avro})
    return {"type": "record", "name": "_".join(("record", *path)), "fields": fields}


def _type(column: DataType, path: Path, timestamps: TimestampTypes) -> str | Json:
    """The type of what is not null."""
    if isinstance(column, StructType):
        return _record(column, path, frozenset(), timestamps)
    if isinstance(column, ArrayType):
        items = _type(column.elementType, path, _within(timestamps))
        return {"type": "array", "items": _or_null(items, column.containsNull)}
    if isinstance(column, MapType):
        _check_key(column, path)
        values = _type(column.valueType, path, _within(timestamps))
        return {"type": "map", "values": _or_null(values, column.valueContainsNull)}
    simple = _simple(column, timestamps)
    if simple is None:
        raise SchemaError(
            f"Unsupported to derive Schema for type: {column.simpleString().upper()} (column "
            f"{'.'.join(path)!r})."
        )
    return simple


def _within(timestamps: TimestampTypes) -> TimestampTypes:
    """Those of elements and values."""
    return _WITHIN_PRECISE if timestamps is _PRECISE else timestamps


def _simple(column: DataType, timestamps: TimestampTypes) -> str | Json | None:
    if isinstance(column, DecimalType):
        decimal = {"logicalType": "decimal", "precision": column.precision, "scale": column.scale}
        return {"type": "bytes", **decimal}
    if type(column) in timestamps:
        return {"type": "long", "logicalType": timestamps[type(column)]}
    if isinstance(column, DayTimeIntervalType):
        return {"type": "long", "spark.sql.catalyst.type": column.simpleString()}
    return _SIMPLE.get(type(column))


def _or_null(avro: str | Json, nullable: bool) -> str | Json | list[str | Json]:
    return ["null", avro] if nullable else avro


def _check_key(column: MapType, path: Path) -> None:
    """The wording is Flink's."""
    if not isinstance(column.keyType, StringType):
        raise SchemaError(
            "Avro format doesn't support non-string as key type of map. The key type is: "
            f"{column.keyType.simpleString().upper()} (column {'.'.join(path)!r})."
        )


def refuse_not_null(columns: StructType, required: frozenset[str], side: str) -> None:
    """Refuses NOT NULL where a message cannot tell whether its writer had it too.

    A column that may be NULL takes one byte more in a message, and nothing else in the message tells the two apart.
    This connector writes all columns but the primary key as columns that may be NULL: whether Spark knows that a column
    has no nulls depends on the query that made it.

    Args:
        columns: The columns that are read with a derived schema.
        required: Those that no writer leaves NULL.
        side: ``key`` or ``value``, for the error.

    Raises:
        SchemaError: A column, or what is within one, is NOT NULL.
    """
    if side == "key":
        return
    for field in columns.fields:
        sure = field.nullable or field.name in required
        path = _first_not_null(field.dataType, field.name) if sure else field.name
        if path is not None:
            raise SchemaError(
                f"Column {path!r} is NOT NULL, and a message of format 'avro' does not tell whether its "
                "writer knew that: it could be read wrong. Make it nullable, as this connector and "
                f"Flink write it by default, or say what the messages are with '{side}.avro.schema'."
            )


def _first_not_null(column: DataType, path: str) -> str | None:
    """The path of the first thing within a type that is NOT NULL; None = there is none."""
    if isinstance(column, StructType):
        within = [
            (field.nullable, field.dataType, f"{path}.{field.name}") for field in column.fields
        ]
    elif isinstance(column, ArrayType):
        within = [(column.containsNull, column.elementType, f"{path}[]")]
    elif isinstance(column, MapType):
        within = [(column.valueContainsNull, column.valueType, f"{path}{{}}")]
    else:
        return None
    for nullable, inner, name in within:
        found = _first_not_null(inner, name) if nullable else name
        if found is not None:
            return found
    return None
