"""Columns and schemas: the columns that a schema means, the schema that columns mean, and which field is which column.

The columns of a schema are those of Spark's own ``SchemaConverters.toSqlType``. The schema of columns, when none is given, is that
of Flink's ``AvroSchemaConverter``:

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

from collections.abc import Iterable
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
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_types import (
    LOGICAL_COLUMNS,
    NULL,
    PLAIN_COLUMNS,
    Array,
    AvroType,
    LeafSchema,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    logical_of,
    plain_name,
)

_MOST_DIGITS = 38

_MOST_COLUMNS = 100_000
"""The number of fields that a schema may have in all, a record counted each time it occurs: records within records multiply."""

_WIDER = {frozenset({"int", "long"}): LongType(), frozenset({"float", "double"}): DoubleType()}


def columns_of(schema: Schema, only: str | None = None) -> StructType:
    """The columns of a record schema: in its order, nullable where it has a union with null.

    Args:
        schema: The schema.
        only: Name of the only column, where the schema is not that of a record.

    Raises:
        SchemaError: It is not the schema of a record, or Spark has no type for a field.
    """
    top = schema.type
    if _count(top, {}) > _MOST_COLUMNS:
        raise SchemaError(
            f"The Avro schema has more than {_MOST_COLUMNS} fields in all, those of records within "
            "records counted each time. Give the columns by .schema(...)."
        )
    if isinstance(top, Record):
        return _columns(top, "")
    if only is None:
        raise SchemaError(
            "An Avro schema that gives the columns must be a record; this one is not. Give the "
            "columns by .schema(...)."
        )
    return StructType([_column(only, top, only)])


def _count(avro: AvroType, known: dict[str, int]) -> int:
    """How many types there are within a type; each record is counted once and kept."""
    if isinstance(avro, Record):
        if avro.name not in known:
            known[avro.name] = 1 + sum(_count(field.type, known) for field in avro.fields)
        return known[avro.name]
    if isinstance(avro, Union):
        return sum(_count(branch, known) for branch in avro.branches)
    if isinstance(avro, Array | Map):
        return 1 + _count(avro.items if isinstance(avro, Array) else avro.values, known)
    return 1


def _columns(record: Record, path: str) -> StructType:
    return StructType([_column(f.name, f.type, path + f.name) for f in record.fields])


def _column(name: str, avro: AvroType, path: str) -> StructField:
    column, nullable = _type(avro, path)
    return StructField(name, column, nullable)


def _type(avro: AvroType, path: str) -> tuple[DataType, bool]:
    """The type, and whether it may be NULL."""
    if isinstance(avro, Union):
        some = tuple(branch for branch in avro.branches if branch != NULL)
        return _of_branches(some, path), NULL in avro.branches
    if isinstance(avro, Array):
        return ArrayType(*_type(avro.items, f"{path}[]")), False
    if isinstance(avro, Map):
        return MapType(StringType(), *_type(avro.values, f"{path}{{}}")), False
    if isinstance(avro, Record):
        return _columns(avro, f"{path}."), False
    if isinstance(avro, Reference):
        raise _refused(path, f"the record {avro.name!r} within itself")
    return _leaf(avro, path), False


def _of_branches(branches: tuple[AvroType, ...], path: str) -> DataType:
    if len(branches) == 1:
        return _type(branches[0], path)[0]
    types = frozenset(branch.type for branch in branches if isinstance(branch, Primitive))
    if len(types) != len(branches) or types not in _WIDER:
        raise _refused(path, "a union of several types")
    return _WIDER[types]


def _leaf(avro: LeafSchema, path: str) -> DataType:
    logical = logical_of(avro)
    if logical and logical.precision > _MOST_DIGITS:
        raise _refused(path, f"a decimal of {logical.precision} digits")
    if avro == NULL:
        raise _refused(path, "nothing but null")
    plain = plain_name(avro)
    column = LOGICAL_COLUMNS[logical.name][plain] if logical else PLAIN_COLUMNS[plain]
    if logical and isinstance(column, DecimalType):
        return DecimalType(logical.precision, logical.scale)
    return column


def _refused(path: str, what: str) -> SchemaError:
    return SchemaError(
        f"Field {path!r} of the Avro schema is {what}, for which Spark has no type. Give the columns "
        "by .schema(...)."
    )


class NamesInSchema:
    """The fields that columns have in a schema.

    A column has the field of exactly its name, else the only one that differs in case alone. A field that has exactly the
    name of another column belongs to that column.

    Args:
        fields: The names of the fields.
        columns: The names of all columns.
    """

    def __init__(self, fields: Iterable[str], columns: Iterable[str]) -> None:
        self._fields = frozenset(fields)
        self._free: dict[str, list[str]] = {}
        for field in self._fields.difference(columns):
            self._free.setdefault(field.lower(), []).append(field)

    def of(self, column: str) -> str | None:
        """The name of a column's field; None = it has none."""
        if column in self._fields:
            return column
        free = self._free.get(column.lower(), [])
        return free[0] if len(free) == 1 else None


_Json = dict[str, Any]
_Path = tuple[str, ...]

DERIVED = "The schema derived from the columns"
"""Where a schema comes from, for errors."""

_NAMESPACE = "org.apache.flink.avro.generated"

_TimestampTypes = dict[type[DataType], str]
"""The logical type of each kind of timestamp."""

_LEGACY: _TimestampTypes = dict.fromkeys((TimestampType, TimestampNTZType), "timestamp-millis")
_PRECISE: _TimestampTypes = {
    TimestampType: "timestamp-micros",
    TimestampNTZType: "local-timestamp-micros",
}
_WITHIN_PRECISE: _TimestampTypes = {
    TimestampType: "timestamp-millis",
    TimestampNTZType: "local-timestamp-millis",
}
_SIMPLE: dict[type[DataType], str | _Json] = {
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
    return {"type": "record", "name": record["name"], "namespace": _NAMESPACE, **record}


def _record(
    columns: StructType, path: _Path, required: frozenset[str], timestamps: _TimestampTypes
) -> _Json:
    """A nested record is named after the fields around it, as in Flink's ``convertToSchema``."""
    fields: list[_Json] = []
    for field in columns.fields:
        avro = _avro_type(field.dataType, (*path, field.name), timestamps)
        if field.nullable and field.name not in required:
            fields.append({"name": field.name, "type": ["null", avro], "default": None})
        else:
            fields.append({"name": field.name, "type": avro})
    return {"type": "record", "name": "_".join(("record", *path)), "fields": fields}


def _avro_type(column: DataType, path: _Path, timestamps: _TimestampTypes) -> str | _Json:
    """The type of what is not null."""
    if isinstance(column, StructType):
        return _record(column, path, frozenset(), timestamps)
    if isinstance(column, ArrayType):
        items = _avro_type(column.elementType, path, _within(timestamps))
        return {"type": "array", "items": _or_null(items, column.containsNull)}
    if isinstance(column, MapType):
        _check_key(column, path)
        values = _avro_type(column.valueType, path, _within(timestamps))
        return {"type": "map", "values": _or_null(values, column.valueContainsNull)}
    simple = _simple(column, timestamps)
    if simple is None:
        raise SchemaError(
            f"Unsupported to derive Schema for type: {column.simpleString().upper()} (column "
            f"{'.'.join(path)!r})."
        )
    return simple


def _within(timestamps: _TimestampTypes) -> _TimestampTypes:
    """Those of elements and values."""
    return _WITHIN_PRECISE if timestamps is _PRECISE else timestamps


def _simple(column: DataType, timestamps: _TimestampTypes) -> str | _Json | None:
    if isinstance(column, DecimalType):
        decimal = {"logicalType": "decimal", "precision": column.precision, "scale": column.scale}
        return {"type": "bytes", **decimal}
    if type(column) in timestamps:
        return {"type": "long", "logicalType": timestamps[type(column)]}
    if isinstance(column, DayTimeIntervalType):
        return {"type": "long", "spark.sql.catalyst.type": column.simpleString()}
    return _SIMPLE.get(type(column))


def _or_null(avro: str | _Json, nullable: bool) -> str | _Json | list[str | _Json]:
    return ["null", avro] if nullable else avro


def _check_key(column: MapType, path: _Path) -> None:
    """The wording is Flink's."""
    if not isinstance(column.keyType, StringType):
        raise SchemaError(
            "Avro format doesn't support non-string as key type of map. The key type is: "
            f"{column.keyType.simpleString().upper()} (column {'.'.join(path)!r})."
        )
