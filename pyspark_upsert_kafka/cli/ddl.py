"""Print a Python program that does the same as Flink's CREATE TABLE statements.

A secret in a WITH clause is not printed: it is replaced by a reference to an environment variable.

For example:
  python -m pyspark_upsert_kafka ddl page_views.sql
  python -m pyspark_upsert_kafka ddl - < page_views.sql
"""

from __future__ import annotations

import argparse
import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
)

from pyspark_upsert_kafka.cli.arguments import text_of
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.connector.schema_inference import ddl_schema
from pyspark_upsert_kafka.core.ddl.definition import TableDefinition, create_tables, definition_of
from pyspark_upsert_kafka.core.ddl.spark_columns import columns_as_ddl, name_as_ddl
from pyspark_upsert_kafka.core.ddl.tokens import Tokens
from pyspark_upsert_kafka.core.masking import has_literal_secret
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.given import options_of

_IMPORTS = {
    "StructType(": "from pyspark.sql.types import *",
    " col(": "from pyspark.sql.functions import col",
    "upsert_sink(": "from pyspark_upsert_kafka import upsert_sink",
}
_TAKEN = frozenset({"spark", "col", "upsert_sink"})
"""Names that the code has already."""

_SESSION = "spark = SparkSession.builder.getOrCreate()\n"


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
    tables = [table_code(each, ddl_schema(options_of(each))) for each in definitions]
    echo(program(tables).rstrip())


def program(tables: Sequence[str]) -> str:
    """The code of some tables, with what they need before it."""
    imports = ["from pyspark.sql import SparkSession"]
    imports += [line for word, line in _IMPORTS.items() if any(word in table for table in tables)]
    return "\n\n".join(["\n".join(imports), _SESSION, *tables])


def table_code(definition: TableDefinition, schema: StructType) -> str:
    """The code that reads a table as a stream, and a hint how to write it.

    Args:
        definition: The table.
        schema: The columns of its reader.
    """
    name = _identifier(definition.name)
    event_time = _time_without_zone(definition)
    if event_time is not None:  # the messages have what the statement says
        kinds = {event_time: TimestampNTZType()}
        schema = StructType(
            [StructField(c.name, kinds.get(c.name, c.dataType), c.nullable) for c in schema]
        )
    lines = [f"{name}_options = {{", *_options(definition.options), "}", f"{name} = ("]
    lines += ['    spark.readStream.format("upsert-kafka")', f"    .schema({_schema(schema)})"]
    lines += [f"    .options(**{name}_options)", "    .load()"]
    if event_time is not None:
        lines.append(
            "    # withWatermark takes no time without a zone; here it is in the session's."
        )
        cast = f'col({_quoted(name_as_ddl(event_time))}).cast("timestamp")'
        lines.append(f"    .withColumn({_quoted(event_time)}, {cast})")
    if definition.watermark is not None:
        column, delay = definition.watermark
        lines.append(f"    .withWatermark({_quoted(name_as_ddl(column))}, {_quoted(delay)})")
    lines.append(")")
    is_written = definition.options.get("value.format") not in CDC_FORMATS
    if is_written and definition.options.get("read.mode") != "append":
        lines += _writing(name, definition)
    return "\n".join(lines) + "\n"


def _time_without_zone(definition: TableDefinition) -> str | None:
    """The watermark's column if it is a TIMESTAMP without a zone."""
    if definition.watermark is None:
        return None
    column = definition.watermark[0]
    is_local = isinstance(definition.columns[column].dataType, TimestampNTZType)
    return column if is_local else None


def _options(options: Mapping[str, str]) -> Iterator[str]:
    """The options, a secret as a reference to an environment variable."""
    for name, value in options.items():
        shown = value
        if has_literal_secret({name: value}):
            yield "    # A secret is not printed: set this variable, wherever the query runs."
            shown = f"${{env:{re.sub(r'[^a-zA-Z0-9]', '_', name).upper()}}}"
        yield f"    {_quoted(name)}: {_quoted(shown)},"


def _writing(name: str, definition: TableDefinition) -> Iterator[str]:
    dropped = ", ".join(map(_quoted, sorted(definition.virtual)))
    rows = f"rows.drop({dropped})" if dropped else "rows"
    yield "# To write a stream of rows with these columns to the table:"
    yield f'#   {rows}.writeStream.outputMode("update").option("checkpointLocation", "...")'
    yield f"#       .foreachBatch(upsert_sink({name}_options)).start()"


def _identifier(name: str) -> str:
    """A name for a variable.

    >>> _identifier("page views"), _identifier("class"), _identifier("2nd")
    ('page_views', 'class_', 'table_2nd')
    """
    word = re.sub(r"\W", "_", name)
    if not word.isidentifier():
        word = f"table_{word}"
    return f"{word}_" if keyword.iskeyword(word) or word in _TAKEN else word


def _quoted(text: str) -> str:
    """A text as Python writes it, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _schema(schema: StructType) -> str:
    """The columns as Spark's DDL, or where that cannot say NOT NULL, as types."""
    if any(_has_required_elements(field.dataType) for field in schema):
        return repr(schema)
    return _quoted(columns_as_ddl(schema))


def _has_required_elements(kind: DataType) -> bool:
    """Whether elements of an array or values of a map are NOT NULL, which Spark's DDL has no word for."""
    if isinstance(kind, ArrayType):
        return not kind.containsNull or _has_required_elements(kind.elementType)
    if isinstance(kind, MapType):
        return not kind.valueContainsNull or _has_required_elements(kind.valueType)
    return isinstance(kind, StructType) and any(
        _has_required_elements(field.dataType) for field in kind
    )
