"""``python -m pyspark_upsert_kafka {ddl, demo, local-kafka, replay, show, sql}``.

Each command is a module or package with a docstring (its help), ``add_arguments`` and ``run``. An error
that the user can act on is printed as its message; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyspark_upsert_kafka.cli import ddl, demo, local_kafka, replay, show, sql
from pyspark_upsert_kafka.cli.user_message import user_message

_COMMANDS = {
    "ddl": ddl,
    "demo": demo,
    "local-kafka": local_kafka,
    "replay": replay,
    "show": show,
    "sql": sql,
}

_INTERRUPTED = 130
"""The exit code that shells use for a program that Ctrl-C ended."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions and leaves room for long option names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    given = parser().parse_args(arguments)
    try:
        given.run(given)
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped.\n")
        return _INTERRUPTED
    except Exception as error:
        message = user_message(error)
        if message is None:
            raise
        sys.stderr.write(f"{message}\n")
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    root = argparse.ArgumentParser(
        prog="python -m pyspark_upsert_kafka",
        description="Kafka topics as tables for PySpark. Try it, run a Kafka, look into a topic.",
        formatter_class=_HelpFormatter,
        epilog="'python -m pyspark_upsert_kafka COMMAND --help' tells more about a command.",
    )
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        description = command.__doc__ or ""
        summary = description.splitlines()[0]
        subparser = commands.add_parser(
            name,
            help=summary[0].lower() + summary[1:].rstrip("."),
            description=description,
            formatter_class=_HelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return root
