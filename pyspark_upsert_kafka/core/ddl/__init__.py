"""Flink's ``CREATE TABLE``: its columns, key, watermark and options.

Only sqlglot's tokenizer is used of sqlglot: none of its dialects knows Flink's statement (``METADATA`` is refused by
each of them), and what is not understood must be refused with its place, never guessed. It is loaded when
a statement is read, not before.
"""

from pyspark_upsert_kafka.core.ddl.cursor import Tokens
from pyspark_upsert_kafka.core.ddl.definition import (
    TableDefinition,
    create_tables,
    definition_of,
    table_definition,
    watermark_of,
)

__all__ = [
    "TableDefinition",
    "Tokens",
    "create_tables",
    "definition_of",
    "table_definition",
    "watermark_of",
]
