"""Check a topic, its brokers and its registry before a job uses them, and say what to do.

It looks at brokers and rights, at what Kafka removes from the topic, at a sample of messages and their keys, at the
schema registry, and at a checkpoint. It writes nothing. With --spark it looks at Spark instead: whether that can load
this data source. The exit code is 0 if all is well, 1 after a warning, 2 after an error.

For example:
  python -m pyspark_upsert_kafka doctor --topic users --schema "user_id BIGINT, region STRING" --primary-key user_id
  python -m pyspark_upsert_kafka doctor --ddl users.sql --checkpoint /tmp/checkpoints/users
  python -m pyspark_upsert_kafka doctor --ddl users.sql --sample 10000 --output json
  python -m pyspark_upsert_kafka doctor --spark --remote sc://localhost:15002
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
    spark = parser.add_argument_group("to look at Spark, and not at a table")
    spark.add_argument(
        "--spark", action="store_true", help="can the Spark of this Python load the data source?"
    )
    where = spark.add_mutually_exclusive_group()
    where.add_argument(
        "--remote",
        metavar="sc://HOST:PORT",
        help="a server of Spark Connect (default: $SPARK_REMOTE, or a Spark that is started)",
    )
    where.add_argument("--master", metavar="URL", help="the master of the Spark that is started")
    spark.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        type=_a_setting,
        action="append",
        default=[],
        help="a setting of the Spark that is started; may be repeated",
    )


def run(given: argparse.Namespace) -> int:
    """Prints what was found; returns the exit code."""
    # Not before it is known to be this command.
    from pyspark_upsert_kafka.cli.doctor.doctor_command import doctor

    return doctor(given, _contradiction(given))


_OF_SPARK = ("remote", "master", "conf")
_OF_BOTH = ("spark", "output", "run")


def _contradiction(given: argparse.Namespace) -> str:
    """What an argument is for that nothing would look at; empty = there is none."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    other = [name for name, value in vars(given).items() if value != parser.get_default(name)]
    of_table = [name for name in other if name not in (*_OF_SPARK, *_OF_BOTH)]
    of_spark = [name for name in other if name in _OF_SPARK]
    if given.spark and of_table:
        return (
            f"{_as_given(of_table[0])} was given, but --spark looks at Spark, and not at a table."
        )
    if of_spark and not given.spark:
        return f"{_as_given(of_spark[0])} was given, but it needs --spark."
    return ""


def _as_given(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _a_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, but is {text!r}")
    return int(text)


def _a_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, but is {text!r}")
    return name, value
