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
from pyspark_upsert_kafka.cli.show.arguments import a_key, a_limit, a_time
from pyspark_upsert_kafka.cli.signals import ended_by_signals, interrupts

_OUTPUTS = ("table", "json", "csv")
"""Each is a class in ``output``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``show``."""
    add_table_arguments(parser)
    add = parser.add_argument
    add("--follow", action="store_true", help="continue with new messages, until Ctrl-C")
    add(
        "--key",
        metavar="COLUMN=VALUE[,...]",
        type=a_key,
        help="only this key; only the partition of the key is read",
    )
    add(
        "--at",
        metavar="TIME",
        type=a_time,
        help="the table or changes just before this time, as in 2026-01-31T12:00:00Z",
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
        from pyspark_upsert_kafka.cli.show.command import show

        with ended_by_signals():
            show(given)
    except (KeyboardInterrupt, Exception) as error:
        is_stopped = interrupts.received or isinstance(error, KeyboardInterrupt)
        if not (given.follow and is_stopped):
            raise
        interrupts.settled()
