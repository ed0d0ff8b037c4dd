"""What the arguments of ``show`` ask for: a table, and how it is read."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.cli.arguments import default_servers, given_options, text_of
from pyspark_upsert_kafka.cli.raw_messages import raw_messages
from pyspark_upsert_kafka.cli.show.arguments import prints_changes
from pyspark_upsert_kafka.core.errors import OptionError, shown
from pyspark_upsert_kafka.core.options import ReadOptions, read_options
from pyspark_upsert_kafka.core.options.properties import client_properties
from pyspark_upsert_kafka.core.table.cdc_formats import CDC_FORMATS
from pyspark_upsert_kafka.core.table.metadata import METADATA
from pyspark_upsert_kafka.core.table.spark_columns import spark_columns
from pyspark_upsert_kafka.format_catalog import format_named, format_options
from pyspark_upsert_kafka.without_spark.request import Request, checked_request

_ADVICE = (
    "A topic does not say what its columns are, nor which of them make the key: give both, for "
    'example --schema "id BIGINT, name STRING" --primary-key id, or --ddl with a CREATE TABLE statement.'
)


def request_of(given: argparse.Namespace) -> Request:
    """What the arguments ask for.

    Raises:
        OptionError: An option is wrong, or columns or key are missing; then the error shows the topic's first message.
        SchemaError: Columns, key or types do not fit.
    """
    raw = connector_options(given)
    has_key = not {"primary-key", "key.fields"}.isdisjoint(raw)
    is_cdc = raw.get("value.format") in CDC_FORMATS
    needs_key = raw["read.mode"] == "snapshot" if is_cdc else raw["read.mode"] != "append"
    key_is_missing = needs_key and not has_key
    # Options in a statement are not among them, but its columns and key are.
    knows_columns = given.schema or "ddl" in raw or _has_schema(raw["value.format"])
    if not knows_columns or (key_is_missing and "ddl" not in raw):
        raise OptionError(_first_message_hint(raw))
    if {"topic", "topic-pattern", "path", "ddl"}.isdisjoint(raw):
        raise OptionError(
            "Which topic is shown? Give --topic, or --ddl with a CREATE TABLE statement."
        )
    options = read_options(raw, format_options, stream=False)
    return checked_request(_schema(given, raw, options), options)


def connector_options(given: argparse.Namespace) -> dict[str, str]:
    """The connector's options: ``--option`` wins over other arguments, these over a statement, and that over defaults."""
    named = {
        name: value
        for name, value in {
            "topic": given.topic,
            "primary-key": given.primary_key,
            "key.format": given.key_format,
            "value.format": given.value_format,
            "read.mode": "changelog" if given.changelog else "append" if given.append else None,
        }.items()
        if value is not None
    }
    if given.at is not None:
        named |= {
            "scan.bounded.mode": "timestamp",
            "scan.bounded.timestamp-millis": str(given.at),
        }
    if given.ddl is not None:
        named["ddl"] = statement_in(given.ddl)
    options = given_options(given, named)
    default_mode = "changelog" if prints_changes(given) else "snapshot"
    return {**_defaults({**_declared(options.get("ddl")), **options}, default_mode), **options}


def _declared(statement: str | None) -> Mapping[str, str]:
    """The options that a statement has."""
    if statement is None:
        return {}
    from pyspark_upsert_kafka.core.ddl import table_definition

    return table_definition(statement).options


def _defaults(known: Mapping[str, str], default_mode: str) -> dict[str, str]:
    mode = known.get("read.mode", default_mode)
    needs_key_format = mode != "append" and known.get("value.format") not in CDC_FORMATS
    defaults = {
        "properties.bootstrap.servers": default_servers(),
        "value.format": "json",
        "read.mode": mode,
        **({"key.format": "json"} if needs_key_format else {}),
    }
    # Of the options that a statement has, only the mode is given beside it too.
    return {
        name: value for name, value in defaults.items() if name not in known or name == "read.mode"
    }


def statement_in(text: str) -> str:
    """The statement itself, or what is in the file of that name.

    Raises:
        OptionError: The file cannot be read.
    """
    # A statement may be longer than a path may be, and a file's name may have a parenthesis.
    if "(" in text and not os.path.isfile(text):  # noqa: PTH113 - pathlib raises for a long text
        return text
    return text_of(text, "--ddl")


def _has_schema(value_format: str) -> bool:
    return format_named(value_format, "value").columns is not None


def _schema(given: argparse.Namespace, raw: Mapping[str, str], options: ReadOptions) -> StructType:
    """The columns of the table; changes and messages also say what happened, when and where."""
    if given.schema:
        columns = spark_columns(given.schema)
    else:
        from pyspark_upsert_kafka.source.planning.schema_inference import inferred_schema

        columns = inferred_schema(raw)
    if options.mode == "snapshot":
        return columns
    before = [] if options.mode == "append" else _missing(columns, "change-type")
    after = _missing(columns, "timestamp", "partition", "offset")
    if options.error_mode == "column":
        after += _missing(columns, "error")
    return StructType([*before, *columns, *after])


def _missing(columns: StructType, *keys: str) -> list[StructField]:
    """The reserved columns of these metadata keys that are not among the columns."""
    names = {name.lower() for name in columns.names}
    wanted = [METADATA[key] for key in keys]
    return [
        StructField(str(each.column), each.types[0]) for each in wanted if each.column not in names
    ]


def _first_message_hint(raw: Mapping[str, str]) -> str:
    """The error for missing columns or a missing key, with the first message of the topic as a hint."""
    topic = raw.get("topic")
    if topic is None:
        return f"{_ADVICE}\nAnd name the topic: --topic."
    first = next(raw_messages(client_properties(dict(raw), group_start=False), topic), None)
    if first is None:
        return f"{_ADVICE}\nTopic {topic!r} has no message yet."
    return (
        f"{_ADVICE}\nThe first message of topic {topic!r}:\n"
        f"  key    {shown(first.key)}\n  value  {shown(first.value)}"
    )
