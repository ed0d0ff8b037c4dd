"""The two sides of messages, key and value, each with its columns and its format: as they are read, and as they are written."""

from __future__ import annotations

from typing import Literal

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named, key_format_beside
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import (
    METADATA_OF_FORMATS,
    SCHEMA_IDS,
    Detail,
    check_metadata,
)
from pyspark_upsert_kafka.core.options.values import ReadOptions, TableOptions, WriteOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.change_format import ChangeSpec
from pyspark_upsert_kafka.formats.codec import CodecSpec, Side


def read_key_side(table: Table, options: ReadOptions) -> Side | None:
    """The key's format and columns; None = the key is not read."""
    if options.table.key_format is None:
        return None
    return side_of(options.table, "key", table.key_message, table.required("key"))


def read_value_side(table: Table, options: ReadOptions) -> Side:
    """The value's format and columns; a key column may be missing there, since the key has it."""
    schema = StructType(
        [
            StructField(field.name, field.dataType, field.nullable or field in table.key)
            for field in table.value
        ]
    )
    return side_of(options.table, "value", schema, table.required("value"))


def change_spec(table: Table, options: ReadOptions) -> ChangeSpec | None:
    """What the value's decoder is compiled from where it has a CDC format; None = it has another one."""
    if not options.table.is_cdc:
        return None
    shown = tuple(column.key for column in table.metadata if column.key in METADATA_OF_FORMATS)
    return ChangeSpec(
        read_value_side(table, options).spec,
        is_keyed=table.is_keyed,
        key=tuple(field.name for field in table.key if field in table.value),
        reads_key=options.table.key_format is not None,
        metadata=tuple(dict.fromkeys(shown)),
    )


def written_side(table: Table, options: WriteOptions, side: Literal["key", "value"]) -> Side:
    """The format and the columns of a side."""
    schema = table.key_message if side == "key" else table.value_message
    # Whether Spark knows a column to hold no nulls is an accident of the query that made it, and the
    # same rows must become the same bytes: only the primary key is sure, and what a DDL declares.
    if table.ddl_columns is None:
        schema = schema.toNullable()
    return side_of(options.table, side, schema, table.required(side))


def check_read_sides(table: Table, options: ReadOptions) -> None:
    """Refuses what no task could read, while the query is planned.

    Raises:
        SchemaError: A format cannot carry a column, or does not have the metadata that one shows.
        OptionError: Two options contradict each other.
    """
    check_metadata(table.metadata, options.table.value_format.name)
    for side in (read_key_side(table, options), read_value_side(table, options)):
        if side is not None:
            side.check_decoder()
    # After the formats: of a type that Spark cannot take from Python, their error says more.
    arrow_schema(table.schema)


def check_written_sides(table: Table, options: WriteOptions) -> None:
    """Refuses what no task could write, while the query is planned.

    Raises:
        SchemaError: A format cannot carry a column.
        OptionError: Two options contradict each other.
    """
    written_side(table, options, "key").check_encoder()
    written_side(table, options, "value").check_encoder()
    arrow_schema(table.schema)


def side_of(
    options: TableOptions,
    side: Literal["key", "value"],
    schema: StructType,
    required: frozenset[str] = frozenset(),
) -> Side:
    """A side of a table with the format that the options choose for it.

    Args:
        options: Those of the table.
        side: Which side.
        schema: Its columns.
        required: Those of them that no writer leaves NULL.

    Raises:
        OptionError: No format is chosen, or there is no such format.
    """
    choice = options.key_format if side == "key" else options.value_format
    if choice is None:
        raise OptionError(f"'{side}.format' is missing.")
    spec = CodecSpec(
        schema, side, dict(choice.options), options.topics.names, required, options.properties
    )
    if side == "key":
        return Side(key_format_beside(options.value_format.name, choice.name), spec)
    return Side(format_named(choice.name, side), spec)


def wanted_schema_ids(*sides: Side | None) -> frozenset[Detail]:
    """The headers in which the messages of these sides may name their schemas."""
    return frozenset(
        SCHEMA_IDS[side.spec.side]
        for side in sides
        if side is not None and side.format.with_schema_ids is not None
    )
