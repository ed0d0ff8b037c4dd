"""Columns that a DDL declares: rows that are written get the names, types and order of the DDL; it also says which times have no zone."""

from __future__ import annotations

from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.options import VIRTUAL, TableOptions
from pyspark_upsert_kafka.core.table.metadata import MetadataColumn, metadata_columns

_WIDENING: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)
"""Each type holds every value of those before it."""


def as_in_ddl(rows: StructType, options: TableOptions) -> StructType:
    """The columns of rows with the names and types that they have in the DDL, in the order of the rows.

    Those that show or set metadata stay as they are, and without a DDL all do.

    Raises:
        SchemaError: A column is not in the DDL, or the type that it has there cannot hold its values.
    """
    in_ddl = options.ddl_columns
    if in_ddl is None:
        return rows
    metadata = _metadata_names(rows, options)
    known = {field.name.lower(): field for field in in_ddl}
    columns = []
    for field in rows:
        wanted = field if field.name.lower() in metadata else known.get(field.name.lower())
        if wanted is None:
            raise SchemaError(
                f"Column {field.name!r} is not in the DDL, whose columns are: {', '.join(in_ddl.names)}. Leave it "
                "out with drop."
            )
        if not (_holds(field.dataType, wanted.dataType) or _is_local_time(field, wanted)):
            raise SchemaError(
                f"Column {field.name!r} has the type {_shown(field.dataType)}, and in the DDL "
                f"{_shown(wanted.dataType)}: cast it."
            )
        type_ = field.dataType if _is_local_time(field, wanted) else wanted.dataType
        columns.append(StructField(wanted.name, type_))
    return StructType(columns)


def without_virtual(
    metadata: tuple[MetadataColumn, ...], in_ddl: StructType
) -> tuple[MetadataColumn, ...]:
    """The metadata columns but for those that the DDL declares for reading only."""
    virtual = {field.name.lower() for field in in_ddl if field.metadata.get(VIRTUAL)}
    return tuple(column for column in metadata if column.name.lower() not in virtual)


def in_ddl_order(
    physical: tuple[StructField, ...], options: TableOptions
) -> tuple[StructField, ...]:
    """The physical columns in the order of the DDL; one that the rows do not have is NULL in each of them.

    Raises:
        SchemaError: A column is missing that is NOT NULL, or part of the key.
    """
    in_ddl = options.ddl_columns or StructType()
    metadata = _metadata_names(in_ddl, options)
    given = {field.name: field for field in physical}
    columns = [field for field in in_ddl if field.name.lower() not in metadata]
    key = {name.lower() for name in options.primary_key}
    for field in columns:
        if field.name not in given and (not field.nullable or field.name.lower() in key):
            raise SchemaError(
                f"Column {field.name!r} is NOT NULL in the DDL, or part of its key, and the rows do not have it."
            )
    return tuple(given.get(field.name, field) for field in columns)


def local_times(physical: tuple[StructField, ...], in_ddl: StructType | None) -> frozenset[str]:
    """The columns that are TIMESTAMP, and in the messages without a zone."""
    known = {field.name.lower(): field for field in in_ddl or ()}
    return frozenset(
        field.name
        for field in physical
        if field.name.lower() in known and _is_local_time(field, known[field.name.lower()])
    )


def _is_local_time(field: StructField, in_ddl: StructField) -> bool:
    return isinstance(field.dataType, TimestampType) and isinstance(
        in_ddl.dataType, TimestampNTZType
    )


def _metadata_names(schema: StructType, options: TableOptions) -> set[str]:
    """Those of the columns that show or set metadata, in lower case."""
    columns = metadata_columns(schema, options.metadata, reading=False)
    return {column.name.lower() for column in columns}


def _holds(type_: DataType, wanted: DataType) -> bool:
    if _without_not_null(type_) == _without_not_null(wanted):
        return True
    return any(
        type(type_) in types and type(wanted) in types[types.index(type(type_)) :]
        for types in _WIDENING
    )


def _without_not_null(type_: DataType) -> DataType:
    return StructType([StructField("it", type_)]).toNullable()


def _shown(type_: DataType) -> str:
    return type_.simpleString().upper()
