"""``python -m pyspark_upsert_kafka {ddl, demo, doctor, local-kafka, replay, show, sql}``.

Each command is a module or package with a docstring (its help), ``add_arguments`` and ``run``. An error
that the user can act on is printed as its message; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from pyspark.errors import PySparkException

from pyspark_upsert_kafka.cli.terminal import drop_output, interrupts, open_standard_error
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import printable

_COMMANDS = ("ddl", "demo", "doctor", "local-kafka", "replay", "show", "sql")
"""Each command is in the module of the same name."""

_INTERRUPTED = 130
"""The exit code that shells use for a program that Ctrl-C ended."""

_CLOSED_PIPE = 141
"""The exit code that shells use for a program that SIGPIPE ended."""


# What Spark appends: SQLSTATE, the plan, the JVM's stack.
_END = r"(?=\n+ ?SQLSTATE:|\n+\s+at |\n+JVM stacktrace|\n+=== |\n+== SQL|\Z)"

_FROM_WORKER = re.compile(
    rf"^(?:Caused by: )?{re.escape(errors.__name__)}\.\w+: (.+?){_END}", re.DOTALL | re.MULTILINE
)

_FROM_SPARK = re.compile(r"\s*(?:\[[\w.]+\] )?(.+?)(?= SQLSTATE:|\n\n|\Z)", re.DOTALL)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions and leaves room for long option names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


class _Parser(argparse.ArgumentParser):
    """Prints an error and where help is, without the list of all arguments, which would push the error out of sight."""

    def error(self, message: str) -> NoReturn:
        """Ends with exit code 2, as the standard library's parser does."""
        self.exit(2, f"{self.prog}: error: {message}\n'{self.prog} --help' tells more.\n")


class _Version(argparse.Action):
    """Prints the version, which nothing else looks up, and ends."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Ends with exit code 0."""
        from pyspark_upsert_kafka.version import current_version

        sys.stdout.write(f"pyspark-upsert-kafka {current_version()}\n")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    open_standard_error()
    # Only the command that is asked for is imported: a person waits.
    only = [name for name in _COMMANDS if name in words[:1]]
    given = parser(only or _COMMANDS).parse_args(words)
    try:
        code = given.run(given)
    except BrokenPipeError:
        return _nobody_reads()
    except KeyboardInterrupt:
        return _stopped()
    except Exception as error:
        if interrupts.received:  # a library made it an error of its own
            return _stopped()
        message = user_message(error)
        if message is None:
            raise
        # It may show what a message holds.
        sys.stderr.writelines(f"{printable(line)}\n" for line in message.split("\n"))
        return 1
    return code or 0  # only doctor has one of its own


def _stopped() -> int:
    interrupts.settled()
    sys.stderr.write("\nStopped.\n")
    return _INTERRUPTED


def _nobody_reads() -> int:
    """Prints nothing, like other programs whose output goes to ``head``, and returns their exit code."""
    drop_output()
    return _CLOSED_PIPE


def parser(names: Sequence[str] = _COMMANDS) -> argparse.ArgumentParser:
    """The parser of the command line, with these commands."""
    root = _Parser(
        prog="python -m pyspark_upsert_kafka",
        description="Kafka topics as tables for PySpark. Try it, run a Kafka, look into a topic.",
        formatter_class=_HelpFormatter,
        epilog="'python -m pyspark_upsert_kafka COMMAND --help' tells more about a command.",
    )
    root.add_argument(
        "--version", action=_Version, help="print the version of this package, and end"
    )
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        command = import_module(f"pyspark_upsert_kafka.cli.{name.replace('-', '_')}")
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


def user_message(error: Exception) -> str | None:
    """The message of an error that this package or Spark raises on purpose; None for a bug."""
    if isinstance(error, errors.UpsertKafkaError):
        return str(error)
    if not isinstance(error, PySparkException):
        return None
    from_worker = _FROM_WORKER.search(str(error))
    if from_worker:
        return from_worker[1].strip()
    # Spark's own message, such as on a schema that it cannot parse; with a traceback it is a bug.
    from_spark = _FROM_SPARK.match(str(error))
    return None if "Traceback" in str(error) or from_spark is None else from_spark[1].strip()
