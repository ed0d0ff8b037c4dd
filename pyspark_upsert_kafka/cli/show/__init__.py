"""Print the table in a topic, or its changes, without a program and without Spark.

For example:
  python -m pyspark_upsert_kafka show --topic users --schema "user_id BIGINT, region STRING" --primary-key user_id
  python -m pyspark_upsert_kafka show --ddl users.sql --follow
  python -m pyspark_upsert_kafka show --ddl users.sql --changelog --key user_id=7
  python -m pyspark_upsert_kafka show --ddl users.sql --at 2026-01-31T12:00:00Z --output json
  python -m pyspark_upsert_kafka show --ddl users.sql --count --option properties.security.protocol=SSL
  python -m pyspark_upsert_kafka show --topic page_views --schema "user_id BIGINT, page_id BIGINT" --append
"""

from __future__ import annotations

import argparse

from pyspark_upsert_kafka.cli.arguments import add_connection_arguments, add_table_arguments
from pyspark_upsert_kafka.cli.terminal import ended_by_signals, interrupts
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.options.parsers import time_or_ago

_OUTPUTS = ("table", "json", "csv")
"""Each is a class in ``row_printing``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``show``."""
    add_table_arguments(parser)
    add = parser.add_argument
    add("--follow", action="store_true", help="continue with new messages, until Ctrl-C")
    add(
        "--key",
        metavar="COLUMN=VALUE[,...]",
        type=_a_key,
        help="only this key; only the partition of the key is read",
    )
    add(
        "--at",
        metavar="TIME",
        type=a_time,
        help='the table or changes just before this time, as in 2026-01-31T12:00:00Z or "-1 d"',
    )
    add(
        "--count",
        action="store_true",
        help="count live keys, tombstones, messages and bad messages instead",
    )
    add(
        "--limit",
        metavar="N",
        type=a_limit,
        help="largest number of rows, or 'all' (default: 20 in a table, all in json and csv)",
    )
    add(
        "--output",
        choices=_OUTPUTS,
        help="default: table; with --follow into a pipe: json, one change per line",
    )
    add(
        "--csv-formulas",
        choices=("keep", "escape"),
        help="escape: in csv, a text that a spreadsheet would compute begins with an apostrophe (default: keep)",
    )
    add_connection_arguments(parser, or_ddl=True)


def run(given: argparse.Namespace) -> None:
    """Shows the table.

    Raises:
        UpsertKafkaError: An argument or an option is wrong, a message cannot be decoded, or Kafka does not answer.
    """
    try:
        # Not before it is known to be this command.
        from pyspark_upsert_kafka.cli.show.show_command import show

        with ended_by_signals():
            show(given)
    except (KeyboardInterrupt, Exception) as error:
        is_stopped = interrupts.received or isinstance(error, KeyboardInterrupt)
        if not (given.follow and is_stopped):
            raise
        interrupts.settled()


ALL = -1
"""The value of ``--limit all``."""


def _a_key(text: str) -> str:
    """The text of a key; its columns are checked when the table is known."""
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"expected COLUMN=VALUE, but is {text!r}")
    return text


def a_limit(text: str) -> int:
    """A number of rows.

    >>> a_limit("20"), a_limit("all") == ALL
    (20, True)
    """
    if text.lower() == "all":
        return ALL
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, or 'all', but is {text!r}")
    return int(text)


def a_time(text: str) -> int:
    """A time as milliseconds since the epoch, rounded up, so that a message before it stays before it.

    It is one with a zone, or says how long ago it was.
    """
    try:
        return time_or_ago(text).at(now_ms())
    except ValueError as why:
        raise argparse.ArgumentTypeError(str(why)) from None
