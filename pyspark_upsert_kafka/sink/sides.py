"""The two sides of messages that are written, key and value, each with its format."""

from __future__ import annotations

from typing import Literal

from pyspark_upsert_kafka.core.options import WriteOptions
from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.format_catalog import side_of
from pyspark_upsert_kafka.formats.codec import Side


def written_side(table: Table, options: WriteOptions, side: Literal["key", "value"]) -> Side:
    """The format and the columns of a side."""
    schema = table.key_message if side == "key" else table.value_message
    # Whether Spark knows a column to hold no nulls is an accident of the query that made it, and the
    # same rows must become the same bytes: only the primary key is sure, and what a DDL declares.
    if table.declared is None:
        schema = schema.toNullable()
    return side_of(options.table, side, schema, table.required(side))


def check_sides(table: Table, options: WriteOptions) -> None:
    """Refuses what no task could write, while the query is planned.

    Raises:
        SchemaError: A format cannot carry a column.
        OptionError: Two options contradict each other.
    """
    written_side(table, options, "key").check_encoder()
    written_side(table, options, "value").check_encoder()
    arrow_schema(table.schema)
