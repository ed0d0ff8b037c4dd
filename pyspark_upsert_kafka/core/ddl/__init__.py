"""Flink's ``CREATE TABLE``: its columns, key, watermark and options.

What is not understood is refused with its place, never guessed. sqlglot, which reads queries (``sql/``), is not used: none of its
dialects knows Flink's statement (each refuses ``METADATA``), and importing it would take longer than all else that is done here.
"""

from pyspark_upsert_kafka.core.ddl.definition import (
    TableDefinition,
    create_tables,
    definition_of,
    table_definition,
    watermark_of,
)
from pyspark_upsert_kafka.core.ddl.tokens import Tokens

__all__ = [
    "TableDefinition",
    "Tokens",
    "create_tables",
    "definition_of",
    "table_definition",
    "watermark_of",
]
