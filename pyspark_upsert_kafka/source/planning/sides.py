"""The two sides of messages that are read, key and value, each with its format."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.format_catalog import side_of
from pyspark_upsert_kafka.formats.codec import Side


def key_side(table: Table, options: ReadOptions) -> Side | None:
    """The key's format and columns; None = the key is not read."""
    if options.table.key_format is None:
        return None
    return side_of(options.table, "key", table.key_message, table.required("key"))


def value_side(table: Table, options: ReadOptions) -> Side:
    """The value's format and columns; a key column may be missing there, since the key has it."""
    schema = StructType(
        [
            StructField(field.name, field.dataType, field.nullable or field in table.key)
            for field in table.value
        ]
    )
    return side_of(options.table, "value", schema, table.required("value"))


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
