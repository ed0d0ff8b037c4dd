"""The arguments of commands that connect to Kafka."""

from __future__ import annotations

import argparse
import os


def default_servers() -> str:
    """The address of Kafka where nothing names one."""
    return os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or "localhost:9092"


def add_connection_arguments(parser: argparse.ArgumentParser, *, or_ddl: bool = False) -> None:
    """Adds ``--bootstrap-servers`` and ``--option``.

    Args:
        parser: The command's.
        or_ddl: Whether a ``--ddl`` may name the address too; then there is no other default yet.
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
    """Adds an argument that may be repeated and takes an option of the connector; its name is in lower case."""
    parser.add_argument(
        name,
        metavar="NAME=VALUE",
        dest="option",
        action="append",
        default=[],
        type=_option,
        help=what,
    )


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, but is {text!r}")
    return name.lower(), value
