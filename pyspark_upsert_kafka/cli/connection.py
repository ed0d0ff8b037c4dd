"""The arguments of commands that connect to Kafka."""

from __future__ import annotations

import argparse
import os


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds ``--bootstrap-servers`` and ``--option``."""
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT",
        default=os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or "localhost:9092",
        help="address of Kafka (default: $KAFKA_BOOTSTRAP_SERVERS, or localhost:9092)",
    )
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_option,
        help="any other option of the connector (docs/options.md); may be repeated",
    )


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, but is {text!r}")
    return name, value
