"""``python -m pyspark_upsert_kafka {demo, local-kafka, show}``.

Each command declares its arguments and runs; errors of ours, which say everything in a sentence, are
printed as that sentence. Anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyspark_upsert_kafka.cli import demo, local_kafka, show
from pyspark_upsert_kafka.cli.trouble import sentence

_COMMANDS = {"demo": demo, "local-kafka": local_kafka, "show": show}

_INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Descriptions as they are written, and room for names."""

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
        told = sentence(error)
        if told is None:
            raise
        sys.stderr.write(f"{told}\n")
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """What the command line may say."""
    whole = argparse.ArgumentParser(
        prog="python -m pyspark_upsert_kafka",
        description="Kafka topics as tables for PySpark. Try it, run a Kafka, look into a topic.",
        formatter_class=_Layout,
        epilog="'python -m pyspark_upsert_kafka COMMAND --help' tells more about a command.",
    )
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        about = command.__doc__ or ""
        summary = about.splitlines()[0]
        one = commands.add_parser(
            name,
            help=summary[0].lower() + summary[1:].rstrip("."),
            description=about,
            formatter_class=_Layout,
        )
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    return whole
