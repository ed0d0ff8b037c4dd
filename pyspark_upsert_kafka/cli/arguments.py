"""The arguments that several commands have: a table, the address of Kafka, options of the connector, and a file with SQL."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark_upsert_kafka.core.errors import OptionError

_SERVERS = "properties.bootstrap.servers"


def default_servers() -> str:
    """The address of Kafka where no argument or statement names one."""
    return os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or "localhost:9092"


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say which table is meant: its topic, columns, key and formats, and whether it is one.

    ``table_request.py`` says what they mean.
    """
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
        default=None if or_ddl else default_servers(),
        help=f"address of Kafka (default: {'that of --ddl, ' if or_ddl else ''}$KAFKA_BOOTSTRAP_SERVERS, or localhost:9092)",
    )
    add_option_argument(
        parser, "--option", "any other option of the connector (docs/options.md); may be repeated"
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
