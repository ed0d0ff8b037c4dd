"""Print the Python that means the same as Flink's CREATE TABLE statements.

A secret in a WITH clause is not printed: a reference to an environment variable stands in its place.

For example:
  python -m pyspark_upsert_kafka ddl page_views.sql
  python -m pyspark_upsert_kafka ddl - < page_views.sql
"""

from __future__ import annotations

import argparse

from pyspark_upsert_kafka.cli.python_code import program, table_code
from pyspark_upsert_kafka.cli.script_text import text_of
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.core.ddl import Tokens, create_tables, definition_of
from pyspark_upsert_kafka.core.options import options_of
from pyspark_upsert_kafka.source.planning.schema_inference import declared_schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``ddl``."""
    parser.add_argument(
        "file", metavar="FILE.sql", help="file with CREATE TABLE statements; - reads standard input"
    )


def run(given: argparse.Namespace) -> None:
    """Prints the code.

    Raises:
        OptionError: The file cannot be read, or a statement is not understood; it names line and column.
    """
    statements = create_tables(Tokens(text_of(given.file)))
    definitions = [definition_of(statement) for statement in statements]
    tables = [table_code(each, declared_schema(options_of(each))) for each in definitions]
    echo(program(tables).rstrip())
