"""The table of `merge_sink` in the session: its columns, and how it is made and changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.table.ddl_text import type_as_ddl
from pyspark_upsert_kafka.lakehouse.column_types import AddedColumn, WidenedColumn, needed
from pyspark_upsert_kafka.lakehouse.settings import SchemaChanges
from pyspark_upsert_kafka.lakehouse.statements import (
    add_statement,
    create_statement,
    widen_statement,
)
from pyspark_upsert_kafka.lakehouse.table_name import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENGINE_ERRORS = (PySparkException, Py4JError, ValueError)
"""What a statement raises that the engine refuses. PySpark cannot name all errors of Delta Lake: a ValueError says so."""

_NO_TABLE = "DELTA_MISSING_DELTA_TABLE"
"""What Delta Lake says of a path where nothing is yet."""

_CATALOG = "spark.sql.catalog."
_ENGINES = {"iceberg": "iceberg", "delta": "delta", "unitycatalog": "delta", "databricks": "delta"}
"""Words in the class of a catalog, and whose tables it makes."""

_PROPERTIES = {"iceberg": {"format-version": "2", "write.merge.mode": "merge-on-read"}, "delta": {}}
_WIDENING = {"delta": {"delta.enableTypeWidening": "true"}}
"""What lets a table change types; tables of Iceberg can always do so."""


def columns_of(session: SparkSession, table: TableName) -> StructType | None:
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


def create(
    session: SparkSession, table: TableName, columns: StructType, schema: SchemaChanges
) -> None:
    """Makes a table, unless somebody else has just made it.

    Raises:
        OptionError: It is not known what kind of table the catalog makes.
        SchemaError: A column has no type, because it is NULL in all rows.
    """
    list(needed(columns, StructType()))
    engine = _engine(session, table)
    widening = _WIDENING.get(engine, {}) if schema is SchemaChanges.EVOLVE else {}
    properties = {**_PROPERTIES[engine], **widening}
    session.sql(create_statement(table.sql, columns, engine, properties))


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


def check_allowed(
    table: TableName, changes: Sequence[AddedColumn | WidenedColumn], schema: SchemaChanges
) -> None:
    """Checks that a table may be changed as it has to be, to hold all columns of a batch.

    Raises:
        SchemaError: It cannot: a column is missing, or its type is too narrow or another one.
    """
    for change in changes:
        if isinstance(change, AddedColumn):
            if schema is SchemaChanges.FIXED:
                raise SchemaError(
                    f"merge_sink: the table {str(table)!r} has no column {change}. Add it with ALTER TABLE, leave it out of "
                    "the stream, or set schema = 'evolve'."
                )
        elif change.wider is None:
            raise SchemaError(
                f"merge_sink: column {change} {str(table)!r}, which cannot hold it and cannot be widened to it: cast the "
                "column in the stream."
            )
        elif schema is SchemaChanges.FIXED:
            raise SchemaError(
                f"merge_sink: column {change} {str(table)!r}, which cannot hold it. Change the table with ALTER TABLE, cast "
                "the column in the stream, or set schema = 'evolve'."
            )


def change(
    session: SparkSession,
    table: TableName,
    changes: Sequence[AddedColumn | WidenedColumn],
    wanted: StructType,
) -> None:
    """Adds and widens columns.

    Args:
        session: The session.
        table: The table.
        changes: What it needs.
        wanted: The columns that it has to hold: if somebody else has changed it so, that is as well.

    Raises:
        SchemaError: The engine refuses it.
    """
    added = [each for each in changes if isinstance(each, AddedColumn)]
    statements: dict[str, str] = {}
    if added:
        statements[add_statement(table.sql, added)] = ", ".join(map(str, added))
    for each in changes:
        if isinstance(each, WidenedColumn) and each.wider is not None:
            wider = type_as_ddl(each.wider)
            statements[widen_statement(table.sql, each.path, wider)] = f"{each} {str(table)!r}"
    try:
        for statement in statements:
            session.sql(statement)
    except _ENGINE_ERRORS as error:
        there = columns_of(session, table) or StructType()
        if not list(needed(wanted, there)):
            return
        raise SchemaError(_refused(table, statements)) from error


def _refused(table: TableName, statements: Mapping[str, str]) -> str:
    return (
        f"merge_sink: the table {str(table)!r} cannot be changed for {'; '.join(statements.values())}. The engine refused: "
        f"{'; '.join(statements)}. Its own error is in the error before this one. A table of Delta Lake changes types once "
        "it has the property 'delta.enableTypeWidening' = 'true'."
    )
