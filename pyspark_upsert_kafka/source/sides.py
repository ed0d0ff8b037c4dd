"""The two sides of messages that are read, key and value, each with its format."""

from __future__ import annotations

from typing import Literal

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.options import FormatChoice, ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.format_catalog import format_named
from pyspark_upsert_kafka.formats.codec import CodecSpec, Side


def key_side(table: Table, options: ReadOptions) -> Side | None:
    """The key's format and columns; None = the key is not read."""
    choice = options.table.key_format
    return None if choice is None else _side(choice, table.key_message, "key", table, options)


def value_side(table: Table, options: ReadOptions) -> Side:
    """The value's format and columns; a key column may be missing there, since the key has it."""
    schema = StructType(
        [
            StructField(field.name, field.dataType, field.nullable or field in table.key)
            for field in table.value
        ]
    )
    return _side(options.table.value_format, schema, "value", table, options)


def check_sides(table: Table, options: ReadOptions) -> None:
    """Refuses what no task could read, while the query is planned.

    Raises:
        SchemaError: A format cannot carry a column.
        OptionError: Two options contradict each other.
    """
    for side in (key_side(table, options), value_side(table, options)):
        if side is not None:
            side.check_decoder()
    # After the formats: of a type that Spark cannot take from Python, their error says more.
    arrow_schema(table.schema)


def _side(
    choice: FormatChoice,
    schema: StructType,
    side: Literal["key", "value"],
    table: Table,
    options: ReadOptions,
) -> Side:
    topics = options.table.topics.names
    spec = CodecSpec(schema, side, dict(choice.options), topics, table.required(side))
    return Side(format_named(choice.name, side), spec)
