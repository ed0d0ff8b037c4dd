"""Print the table that a topic holds, or its changes, without writing a program.

For example:
  show --topic users --schema "user_id BIGINT, region STRING" --primary-key user_id
  show --topic users --schema "user_id BIGINT, region STRING" --primary-key user_id --changelog
  show --topic page_views --schema "user_id BIGINT, page_id BIGINT" --append
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_upsert_kafka.cli.raw_messages import raw_messages
from pyspark_upsert_kafka.cli.spark import local_spark
from pyspark_upsert_kafka.core.errors import OptionError, shown
from pyspark_upsert_kafka.core.options import read_options
from pyspark_upsert_kafka.core.properties import client_properties
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.format_catalog import format_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CHANGE = "_change_type STRING"
_POSITION = "_timestamp TIMESTAMP, _partition INT, _offset BIGINT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``show``."""
    add = parser.add_argument
    add("--topic", required=True, help="the topic")
    add(
        "--bootstrap-servers",
        metavar="HOST:PORT",
        default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or "localhost:9092",
        help="address of Kafka (default: $KAFKA_BOOTSTRAP_SERVERS, or localhost:9092)",
    )
    add(
        "--schema", metavar="COLUMNS", help='columns of the table, such as "id BIGINT, name STRING"'
    )
    add("--primary-key", metavar="COLUMNS", help='columns of the message key, such as "id"')
    add("--key-format", metavar="FORMAT", default="json", help="default: %(default)s")
    add("--value-format", metavar="FORMAT", default="json", help="default: %(default)s")
    add("--limit", metavar="N", type=int, default=20, help="rows at most (default: %(default)s)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--changelog", action="store_true", help="print every change, deletes too, not the table"
    )
    what.add_argument(
        "--append", action="store_true", help="print every message as a row: the topic has no key"
    )
    add(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_option,
        help="any other option of the connector (docs/options.md); may be repeated",
    )
    add(
        "--spark-log",
        metavar="FILE",
        type=Path,
        default=Path(os.devnull),
        help="file for Spark's own log (default: discarded)",
    )


def run(given: argparse.Namespace) -> None:
    """Prints the table.

    Raises:
        OptionError: The schema or the key is missing; the first message is shown as a hint.
    """
    options = _options(given)
    if sys.stderr.isatty():  # it may have to wait for a broker
        sys.stderr.write(f"Reading topic {given.topic!r} at {given.bootstrap_servers} ...\n")
    if not given.schema or not (given.primary_key or given.append):
        raise OptionError(_missing_schema_message(given.topic, options))
    plan = read_options(options, format_options, stream=False)
    with local_spark(given.spark_log) as spark:
        table, order = _table(spark, given, options)
        # A wrong key is reported by the connector, before Spark complains that it cannot sort by it.
        table_to_read(table.schema, plan)
        table.orderBy(*order).show(given.limit, truncate=False)


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, but is {text!r}")
    return name, value


def _options(given: argparse.Namespace) -> dict[str, str]:
    """The connector's options."""
    options = {
        "topic": given.topic,
        "properties.bootstrap.servers": given.bootstrap_servers,
        "value.format": given.value_format,
        "read.mode": "append",
    }
    if not given.append:
        options["read.mode"] = "changelog" if given.changelog else "snapshot"
        options["key.format"] = given.key_format
        options["primary-key"] = given.primary_key or ""
    return {**options, **dict(given.option)}


def _table(
    spark: SparkSession, given: argparse.Namespace, options: dict[str, str]
) -> tuple[DataFrame, list[str]]:
    """The table and the columns to sort it by: its key, or the position of messages."""
    schema, order = given.schema, ["_partition", "_offset"]
    if given.changelog:
        schema = f"{_CHANGE}, {schema}, {_POSITION}"
    elif given.append:
        schema = f"{schema}, {_POSITION}"
    else:
        order = [f"`{name.strip()}`" for name in given.primary_key.split(",")]
    return spark.read.format("upsert-kafka").schema(schema).options(**options).load(), order


def _missing_schema_message(topic: str, options: dict[str, str]) -> str:
    """Says that schema and key are needed, with the first message of the topic as a hint."""
    properties = client_properties(
        {name.lower(): value for name, value in options.items()}, group_start=False
    )
    advice = (
        "A topic does not say what its columns are, nor which of them make the key: give both, for "
        'example --schema "id BIGINT, name STRING" --primary-key id'
    )
    first = next(raw_messages(properties, topic), None)
    if first is None:
        return f"{advice}\nTopic {topic!r} has no message yet."
    return (
        f"{advice}\nThe first message of topic {topic!r}:\n"
        f"  key    {shown(first.key)}\n  value  {shown(first.value)}"
    )
