"""The table of `merge_sink` in the session: its columns, how it is made and changed.

Before it can hold a batch it may need columns and wider types; values are written in exactly its types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from pyspark_upsert_kafka.connector.lakehouse.merge_settings import SchemaChanges, TableName
from pyspark_upsert_kafka.core.column_changes import (
    AddedColumn,
    WidenedColumn,
    field_named,
    needed,
)
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted, type_as_ddl
from pyspark_upsert_kafka.core.ddl.types import types_within
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def conformed(column: Column, kind: DataType, wanted: DataType) -> Column:
    """A value in the type of the table, which can hold it: structs by the names of their fields, in the table's order.

    A field that the value does not have is NULL.

    Args:
        column: The value.
        kind: Its type.
        wanted: The type of the table.
    """
    from pyspark.sql import functions as f

    if kind.simpleString() == wanted.simpleString():
        return column
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        fields = f.struct(*(_field(column, kind, field) for field in wanted))
        return f.when(column.isNotNull(), fields)
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        element, wanted_element = kind.elementType, wanted.elementType
        return f.transform(column, lambda each: conformed(each, element, wanted_element))
    if isinstance(kind, MapType) and isinstance(wanted, MapType):
        return f.map_from_arrays(
            conformed(f.map_keys(column), ArrayType(kind.keyType), ArrayType(wanted.keyType)),
            conformed(f.map_values(column), ArrayType(kind.valueType), ArrayType(wanted.valueType)),
        )
    return column.cast(wanted)


def _field(column: Column, kind: StructType, wanted: StructField) -> Column:
    from pyspark.sql import functions as f

    found = field_named(wanted.name, kind)
    if found is None:
        return f.lit(None).cast(wanted.dataType).alias(wanted.name)
    return conformed(column.getField(found.name), found.dataType, wanted.dataType).alias(
        wanted.name
    )


ENGINE_ERRORS = (PySparkException, Py4JError, ValueError)
"""What a statement raises that the engine refuses. PySpark cannot name all errors of Delta Lake: a ValueError says so."""

_NO_TABLE = "DELTA_MISSING_DELTA_TABLE"
"""What Delta Lake says of a path where nothing is yet."""

_CATALOG = "spark.sql.catalog."
_ENGINES = {"iceberg": "iceberg", "delta": "delta", "unitycatalog": "delta", "databricks": "delta"}
"""Words in the class of a catalog, and whose tables it makes."""

_PROPERTIES = {"iceberg": {"format-version": "2", "write.merge.mode": "merge-on-read"}, "delta": {}}
_WIDENING = {"delta": {"delta.enableTypeWidening": "true"}}
"""What lets a table change types; tables of Iceberg can always do so."""


def fitting_columns(
    session: SparkSession,
    table: TableName,
    wanted: Callable[[StructType], StructType],
    schema: SchemaChanges,
    properties: Mapping[str, str],
) -> StructType:
    """The columns of a table that can hold a batch; it is created or changed first, if it has to be.

    Args:
        session: The session.
        table: The table.
        wanted: The columns that it must have, by those that it has.
        schema: Whether it may be changed.
        properties: Its properties, if it is created.

    Raises:
        OptionError: It is not known what kind of table the catalog makes.
        SchemaError: The table cannot hold a column, or the engine refuses to change it.
    """
    there = _columns_of(session, table)
    if there is None:
        _create(session, table, wanted(StructType()), schema, properties)
        there = _columns_of(session, table) or StructType()
    columns = wanted(there)
    lacking = _lacking(columns, there)
    if not lacking:
        return there
    _check_allowed(table, lacking, schema)
    _change(session, table, lacking, columns)
    return _columns_of(session, table) or StructType()


def _lacking(columns: StructType, there: StructType) -> list[AddedColumn | WidenedColumn]:
    """What a table needs to hold the columns of a batch.

    Raises:
        SchemaError: A new column has no type, because it is NULL in all rows.
    """
    found = list(needed(columns, there))
    for each in found:
        if isinstance(each, AddedColumn) and _has_void(each.type):
            raise SchemaError(
                f"merge_sink: column {'.'.join(each.path)!r} is {type_as_ddl(each.type)}, which no table can store: cast it."
            )
    return found


def _has_void(kind: DataType) -> bool:
    return isinstance(kind, NullType) or any(map(_has_void, types_within(kind)))


def _columns_of(session: SparkSession, table: TableName) -> StructType | None:
    """The columns of a table as it is now; None = there is no such table."""
    if not _exists(session, table):
        return None
    if not table.is_path:
        session.catalog.refreshTable(table.sql)  # a catalog may remember it as it was
    return session.table(table.sql).schema


def _exists(session: SparkSession, table: TableName) -> bool:
    try:
        return session.catalog.tableExists(table.sql)
    except PySparkException as error:
        if table.is_path and _NO_TABLE in str(error):
            return False
        raise


def _create(
    session: SparkSession,
    table: TableName,
    columns: StructType,
    schema: SchemaChanges,
    given: Mapping[str, str],
) -> None:
    """Makes a table, unless somebody else has just made it."""
    _lacking(columns, StructType())  # each has a type that a table can store
    engine = _engine(session, table)
    widening = _WIDENING.get(engine, {}) if schema is SchemaChanges.EVOLVE else {}
    properties = {**_PROPERTIES[engine], **widening, **given}
    session.sql(_create_statement(table.sql, columns, engine, properties))


def _engine(session: SparkSession, table: TableName) -> str:
    if table.is_path:
        return "delta"
    named = session.conf.get(f"{_CATALOG}{table.parts[0]}", None) if len(table.parts) > 1 else None
    catalog = session.catalog.currentCatalog() if named is None else table.parts[0]
    class_ = named or session.conf.get(f"{_CATALOG}{catalog}", None) or ""
    engine = engine_of(class_, str(session.conf.get("spark.sql.sources.default", "")))
    if engine is None:
        raise OptionError(
            f"merge_sink: there is no table {str(table)!r}, and the catalog {catalog!r} ({class_ or 'of Spark itself'}) does not "
            "say whether it makes tables of Iceberg or of Delta Lake. Create the table first: CREATE TABLE ... USING iceberg, "
            "or USING delta."
        )
    return engine


def engine_of(class_: str, default: str) -> str | None:
    """Whose tables a catalog makes; None = it is not known.

    Args:
        class_: The class of the catalog, as Spark's options name it.
        default: ``spark.sql.sources.default``.

    >>> engine_of("org.apache.iceberg.spark.SparkCatalog", "parquet"), engine_of("", "parquet")
    ('iceberg', None)
    """
    for word, engine in _ENGINES.items():
        if word in class_.lower():
            return engine
    return default if default in _PROPERTIES else None


def _check_allowed(
    table: TableName, changes: Sequence[AddedColumn | WidenedColumn], schema: SchemaChanges
) -> None:
    """Checks that a table may be changed as it has to be, to hold all columns of a batch."""
    for change in changes:
        if isinstance(change, AddedColumn):
            if schema is SchemaChanges.FIXED:
                raise SchemaError(
                    f"merge_sink: the table {str(table)!r} has no column {change}. Add it with ALTER TABLE, leave it out of "
                    "the stream, or set schema = 'evolve'."
                )
        elif change.wider is None:
            raise SchemaError(
                f"merge_sink: column {_as_seen(change)} {str(table)!r}, which cannot hold it and cannot be widened to it: cast the "
                "column in the stream."
            )
        elif schema is SchemaChanges.FIXED:
            raise SchemaError(
                f"merge_sink: column {_as_seen(change)} {str(table)!r}, which cannot hold it. Change the table with ALTER TABLE, cast "
                "the column in the stream, or set schema = 'evolve'."
            )


def _as_seen(change: WidenedColumn) -> str:
    return (
        f"{'.'.join(change.path)!r} is {type_as_ddl(change.seen)} in the changes and {type_as_ddl(change.there)} in the "
        "table"
    )


def _change(
    session: SparkSession,
    table: TableName,
    changes: Sequence[AddedColumn | WidenedColumn],
    wanted: StructType,
) -> None:
    """Adds and widens columns, unless somebody else has changed the table so that it can hold what is wanted."""
    added = [each for each in changes if isinstance(each, AddedColumn)]
    statements: dict[str, str] = {}
    if added:
        statements[_add_statement(table.sql, added)] = ", ".join(map(str, added))
    for each in changes:
        if isinstance(each, WidenedColumn) and each.wider is not None:
            wider = type_as_ddl(each.wider)
            statements[_widen_statement(table.sql, each.path, wider)] = (
                f"{_as_seen(each)} {str(table)!r}"
            )
    try:
        for statement in statements:
            session.sql(statement)
    except ENGINE_ERRORS as error:
        there = _columns_of(session, table) or StructType()
        if not list(needed(wanted, there)):
            return
        raise SchemaError(_refused(table, statements)) from error


def _refused(table: TableName, statements: Mapping[str, str]) -> str:
    return (
        f"merge_sink: the table {str(table)!r} cannot be changed for {'; '.join(statements.values())}. The engine refused: "
        f"{'; '.join(statements)}. Its own error is in the error before this one. A table of Delta Lake changes types once "
        "it has the property 'delta.enableTypeWidening' = 'true'."
    )


def _create_statement(
    table: str, columns: StructType, provider: str, properties: Mapping[str, str]
) -> str:
    """The statement that makes a table unless it is there; no column of it is NOT NULL."""
    nullable = columns.toNullable()
    declared = ", ".join(
        f"{quoted(field.name)} {type_as_ddl(field.dataType)}" for field in nullable
    )
    made = f"CREATE TABLE IF NOT EXISTS {table} ({declared}) USING {provider}"
    listed = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())
    return f"{made} TBLPROPERTIES ({listed})" if listed else made


def _text(value: str) -> str:
    """A text in Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _add_statement(table: str, columns: Iterable[AddedColumn]) -> str:
    """The statement that adds columns to a table."""
    added = ", ".join(f"{_path(each.path)} {type_as_ddl(each.type)}" for each in columns)
    return f"ALTER TABLE {table} ADD COLUMNS ({added})"


def _widen_statement(table: str, path: Sequence[str], type_: str) -> str:
    """The statement that gives a column another type."""
    return f"ALTER TABLE {table} ALTER COLUMN {_path(path)} TYPE {type_}"


def _path(path: Sequence[str]) -> str:
    return ".".join(map(quoted, path))
