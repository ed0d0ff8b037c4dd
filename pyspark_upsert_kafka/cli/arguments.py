"""The arguments that several commands have, and what those of a table say of it: its options, its columns, and how it is read.

The others are the address of Kafka, options of the connector, and a file with SQL.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named, format_options
from pyspark_upsert_kafka.connector.read_request import Request, checked_request
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS, METADATA
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.pages import page

_SERVERS = "properties.bootstrap.servers"


def _default_servers() -> str:
    """The address of Kafka where no argument or statement names one."""
    return os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or "localhost:9092"


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say which table is meant: its topic, columns, key and formats, and whether it is one."""
    add = parser.add_argument
    add("--topic", help="the topic; --ddl may name it")
    add("--schema", metavar="COLUMNS", help='columns of the table, as in "id BIGINT, name STRING"')
    add(
        "--ddl",
        metavar="FILE",
        help="Flink's CREATE TABLE statement: a file (- for standard input), or the text itself",
    )
    add("--primary-key", metavar="COLUMNS", help='columns of the message key, as in "id"')
    add("--key-format", metavar="FORMAT", help="default: that of --ddl, or json")
    add("--value-format", metavar="FORMAT", help="default: that of --ddl, or json")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--changelog", action="store_true", help="read every change, deletes too, not the table"
    )
    what.add_argument(
        "--append", action="store_true", help="read every message as a row: the topic has no key"
    )


def add_connection_arguments(parser: argparse.ArgumentParser, *, or_ddl: bool = False) -> None:
    """Adds ``--bootstrap-servers`` and ``--option``.

    Args:
        parser: The command's.
        or_ddl: Whether the command has ``--ddl``, whose statement may name the address too: then the argument has no default.
    """
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT",
        default=None if or_ddl else _default_servers(),
        help=f"address of Kafka (default: {'that of --ddl, ' if or_ddl else ''}$KAFKA_BOOTSTRAP_SERVERS, or localhost:9092)",
    )
    add_option_argument(
        parser,
        "--option",
        f"any other option of the connector ({page('options.md')}); may be repeated",
    )


def add_option_argument(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Adds an argument that takes an option of the connector, and may be repeated.

    Its value is in ``given.option``, a list of names in lower case with their values.

    Args:
        parser: The command's.
        name: The argument's, such as ``--option``.
        what: What its help says.
    """
    parser.add_argument(
        name,
        metavar="NAME=VALUE",
        dest="option",
        action="append",
        default=[],
        type=_option,
        help=what,
    )


def given_options(given: argparse.Namespace, options: Mapping[str, str]) -> dict[str, str]:
    """The options of the connector that a command has from its arguments.

    Args:
        given: The arguments, with those of `add_connection_arguments`.
        options: What the command's other arguments mean; ``--option`` wins over these.
    """
    servers = {} if given.bootstrap_servers is None else {_SERVERS: given.bootstrap_servers}
    return {**servers, **options, **dict(given.option)}


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, but is {text!r}")
    return name.lower(), value


def text_of(file: str, of_option: str = "") -> str:
    """The text of a file; ``-`` is standard input.

    Args:
        file: Its path.
        of_option: The option that names it, for errors, if an option does.

    Raises:
        OptionError: The file cannot be read, or is no text.
    """
    if file == "-":
        return sys.stdin.read()
    named = f"The file {file!r} of {of_option}" if of_option else f"The file {file!r}"
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OptionError(f"{named} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"{named} is not UTF-8.") from None


_ADVICE = (
    "A topic does not say what its columns are, nor which of them make the key: give both, for "
    'example --schema "id BIGINT, name STRING" --primary-key id, or --ddl with a CREATE TABLE statement.'
)


class UnknownColumnsError(OptionError):
    """No argument says what the columns are, or which of them make the key."""


def table_options(
    given: argparse.Namespace,
    default_mode: str | Callable[[Mapping[str, str]], str],
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The connector's options: ``--option`` wins over other arguments, these over a statement, and that over defaults.

    Args:
        given: The arguments, with those of `add_table_arguments` and `add_connection_arguments`.
        default_mode: How the table is read if nothing says it; or what says it of all other options.
        more: What the command's other arguments mean.
    """
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
    if given.ddl is not None:
        named["ddl"] = statement_in(given.ddl)
    options = given_options(given, {**named, **(more or {})})
    known = {**_declared(options.get("ddl")), **options}
    mode = default_mode if isinstance(default_mode, str) else default_mode(known)
    return {**_defaults(known, mode), **options}


def checked_options(
    given: argparse.Namespace, raw: Mapping[str, str], *, stream: bool = False
) -> ReadOptions:
    """The options of `table_options`, checked.

    Args:
        given: The arguments.
        raw: The options.
        stream: Whether they are those of a stream.

    Raises:
        OptionError: An option is wrong, or there is no topic.
        UnknownColumnsError: Columns or key are missing.
    """
    has_key = not {"primary-key", "key.fields"}.isdisjoint(raw)
    is_cdc = raw.get("value.format") in CDC_FORMATS
    needs_key = raw["read.mode"] == "snapshot" if is_cdc else raw["read.mode"] != "append"
    key_is_missing = needs_key and not has_key
    # Options in a statement are not among them, but its columns and key are.
    knows_columns = given.schema or "ddl" in raw or _has_schema(raw["value.format"])
    if not knows_columns or (key_is_missing and "ddl" not in raw):
        raise UnknownColumnsError(_ADVICE)
    if {"topic", "topic-pattern", "path", "ddl"}.isdisjoint(raw):
        raise OptionError("Which topic? Give --topic, or --ddl with a CREATE TABLE statement.")
    return read_options(raw, format_options, stream=stream)


def checked_table(
    given: argparse.Namespace, raw: Mapping[str, str], options: ReadOptions
) -> Request:
    """The table that is read with these options.

    Raises:
        OptionError: An option contradicts the columns.
        SchemaError: Columns, key or types do not fit.
        BrokerError: The columns come from a schema registry, which does not answer.
    """
    return checked_request(_schema(given, raw, options), options)


def _declared(statement: str | None) -> Mapping[str, str]:
    """The options that a statement has."""
    if statement is None:
        return {}
    from pyspark_upsert_kafka.core.ddl.definition import table_definition

    return table_definition(statement).options


def _defaults(known: Mapping[str, str], default_mode: str) -> dict[str, str]:
    mode = known.get("read.mode", default_mode)
    needs_key_format = mode != "append" and known.get("value.format") not in CDC_FORMATS
    defaults = {
        "properties.bootstrap.servers": _default_servers(),
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
        from pyspark_upsert_kafka.connector.schema_inference import inferred_schema

        columns = inferred_schema(raw)
    if options.mode == "snapshot":
        return columns
    before = [] if options.mode == "append" else _missing(columns, "change-type")
    after = _missing(columns, "timestamp", "partition", "offset")
    if options.bad_messages_become == "column":
        after += _missing(columns, "error")
    return StructType([*before, *columns, *after])


def _missing(columns: StructType, *keys: str) -> list[StructField]:
    """The reserved columns of these metadata keys that are not among the columns."""
    names = {name.lower() for name in columns.names}
    wanted = [METADATA[key] for key in keys]
    return [
        StructField(str(each.column), each.types[0]) for each in wanted if each.column not in names
    ]
