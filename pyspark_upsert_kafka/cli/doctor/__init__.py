"""Check a topic, its brokers and its registry before a job uses them, and say what to do.

It looks at brokers and rights, at what Kafka removes from the topic, at a sample of messages and their keys, at the
schema registry, and at a checkpoint. It writes nothing. The exit code is 0 if all is well, 1 after a warning, 2 after
an error.

For example:
  python -m pyspark_upsert_kafka doctor --topic users --schema "user_id BIGINT, region STRING" --primary-key user_id
  python -m pyspark_upsert_kafka doctor --ddl users.sql --checkpoint /tmp/checkpoints/users
  python -m pyspark_upsert_kafka doctor --ddl users.sql --sample 10000 --output json
"""

from __future__ import annotations

import argparse

from pyspark_upsert_kafka.cli.arguments import add_connection_arguments, add_table_arguments

_SAMPLE = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``doctor``."""
    add_table_arguments(parser)
    parser.add_argument(
        "--sample",
        metavar="N",
        type=_a_number,
        default=_SAMPLE,
        help=f"read so many messages at most; 0 = none (default: {_SAMPLE:,})",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="the checkpointLocation of a query that reads the table: can the query continue?",
    )
    parser.add_argument(
        "--output",
        choices=("text", "json"),
        default="text",
        help="json: an object per line (default: text)",
    )
    add_connection_arguments(parser, or_ddl=True)


def run(given: argparse.Namespace) -> int:
    """Prints what was found; returns the exit code."""
    # Not before it is known to be this command.
    from pyspark_upsert_kafka.cli.doctor.doctor_command import doctor

    return doctor(given)


def _a_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, but is {text!r}")
    return int(text)
