"""The columns of a table whose user gives none: those that the schema of its formats gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from pyspark.sql.types import (
    DataType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import (
    FORMATS,
    format_named,
    format_options,
    side_of,
)
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.metadata import ALL_METADATA, CHANGE_TYPE, metadata_columns
from pyspark_upsert_kafka.core.options.catalog import DDL, DDL_COLUMNS, EVENT_TIME, OPTIONS
from pyspark_upsert_kafka.core.options.given import given_options
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.values import ReadOptions, TableOptions

_NO_SCHEMA = (
    "The table has no schema: a Kafka topic does not say what its columns are. Give one, for "
    "example .schema('id BIGINT, name STRING, _change_type STRING'), or schema='id BIGINT, name STRING' for read_table."
)


def inferred_schema(raw: Mapping[str, str]) -> StructType:
    """The columns of the table that a reader's options describe, given by a user or by `given_options`.

    Spark asks before it says whether a batch or a stream is read. So it is a changelog unless an option
    says otherwise, and in a changelog only columns of the primary key keep their NOT NULL.

    Raises:
        SchemaError: Nothing says what the columns are.
        OptionError: An option is wrong.
        BrokerError: The schema registry does not answer, or refuses.
    """
    given = {name.lower(): value for name, value in raw.items()}
    if not given.keys().isdisjoint({DDL.name, DDL_COLUMNS.name}):
        return ddl_schema(given_options(raw))
    name = OPTIONS["value.format"].read(given)
    if name not in FORMATS or format_named(name, "value").columns is None:
        raise SchemaError(_NO_SCHEMA)
    stream = OPTIONS["read.mode"].read(given) != "snapshot"
    options = read_options(raw, format_options, stream=stream)
    value = _schema_columns("value", options.table, record_names=options.record_names)
    if value is None:
        raise SchemaError(_NO_SCHEMA)
    key = _key_columns(options.table, value)
    of_key = {field.name.lower() for field in key}
    columns = [*key, *(field for field in value if field.name.lower() not in of_key)]
    return _as_read(columns, options)


def ddl_schema(given: Mapping[str, str]) -> StructType:
    """The columns of a table that a statement defines, as a reader shows them.

    Args:
        given: The options, with those of the statement among them.

    Raises:
        OptionError: An option is wrong.
        SchemaError: A metadata column has a type that cannot hold it.
    """
    stream = OPTIONS["read.mode"].read(given) != "snapshot"
    options = read_options(given, format_options, stream=stream)
    in_ddl = options.table.ddl_columns or StructType()
    columns = metadata_columns(in_ddl, options.table.metadata, reading=True)
    missing = {column.name for column in columns if ALL_METADATA[column.key].nullable}
    changes = any(column.key == CHANGE_TYPE for column in columns)
    fields = [
        StructField(field.name, _shown_type(field), field.nullable or field.name in missing)
        for field in in_ddl
    ]
    return _as_read(fields, options, shows_changes=changes)


def _shown_type(field: StructField) -> DataType:
    """Its declared type, but for the watermark's column: Spark has watermarks of TIMESTAMP only."""
    is_local = isinstance(field.dataType, TimestampNTZType) and EVENT_TIME in field.metadata
    return TimestampType() if is_local else field.dataType


def _as_read(
    columns: list[StructField], options: ReadOptions, *, shows_changes: bool = False
) -> StructType:
    """The columns with NULL where a reader cannot promise more, and the change column where one is needed."""
    columns = [_with_nulls(field, options) for field in columns]
    if options.mode == "changelog" and options.emit_deletes and not shows_changes:
        columns.append(StructField("_change_type", StringType()))
    return StructType(columns)


def _schema_columns(
    side: Literal["key", "value"],
    table: TableOptions,
    only: str | None = None,
    record_names: tuple[str, ...] = (),
) -> StructType | None:
    """The columns that the schema of one side gives; None when it has none."""
    prefix = table.key_prefix if side == "key" else ""
    required = frozenset(name.removeprefix(prefix) for name in table.primary_key)
    found = side_of(table, side, StructType(), required)
    spec = replace(found.spec, record_names=record_names)
    return None if found.format.columns is None else found.format.columns(spec, only)


def _key_columns(table: TableOptions, value: StructType) -> list[StructField]:
    """Columns of the primary key that the value does not hold, in the order of the key."""
    in_value = {field.name.lower(): field for field in value}
    wanted = [
        name
        for name in table.primary_key
        if name.lower() not in in_value or not table.value_holds_key
    ]
    if not wanted:
        return []
    in_key = _columns_in_key(table)
    # A key of another format has no types of its own; the value may know of the column.
    known = {**in_value, **in_key}
    for name in wanted:
        if name.lower() not in known:
            raise SchemaError(
                f"Column {name!r} of the primary key is in no schema. Columns of the key: "
                f"[{_names(in_key)}]; columns of the value: [{_names(in_value)}]. Give the columns by "
                ".schema(...)."
            )
    return [known[name.lower()] for name in wanted]


def _columns_in_key(table: TableOptions) -> dict[str, StructField]:
    """Columns that the key's schema says, under their names in the table, by these in lower case."""
    if table.key_format is None:
        return {}
    names = [name.removeprefix(table.key_prefix) for name in table.primary_key]
    only = names[0] if len(names) == 1 else None
    columns = _schema_columns("key", table, only)
    return {
        (table.key_prefix + field.name).lower(): StructField(
            table.key_prefix + field.name, field.dataType, field.nullable
        )
        for field in columns or ()
    }


def _names(fields: Mapping[str, StructField]) -> str:
    return ", ".join(field.name for field in fields.values())


def _with_nulls(field: StructField, options: ReadOptions) -> StructField:
    """The column, NOT NULL only where a reader can keep that promise; see ``table_to_read``."""
    key = {name.lower() for name in options.table.primary_key}
    kept = options.mode != "changelog" or field.name.lower() in key
    nullable = field.nullable or not kept or options.bad_messages_become == "column"
    return StructField(field.name, field.dataType, nullable)
