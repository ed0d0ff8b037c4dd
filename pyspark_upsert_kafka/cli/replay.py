"""Write dead letters back to the topics that they came from.

Each message is written with its original key, value and headers to the topic that its header __error.topic
names. A dead letter is left out if its topic has a newer message with the same key, because it would undo that
message. So a second run does not write again what the first run has written. Messages that are still bad become
dead letters again, so fix the reader first.

Keys are compared by their bytes: {"id":1} and {"id": 1} are two keys here, so a dead letter with the one undoes
a newer row that was written with the other.

For example:
  python -m pyspark_upsert_kafka replay --topic users_errors --dry-run
  python -m pyspark_upsert_kafka replay --topic users_errors
  python -m pyspark_upsert_kafka replay --topic page_views_errors --append
"""

from __future__ import annotations

import argparse
from collections import Counter

from pyspark_upsert_kafka.cli.arguments import add_connection_arguments, given_options
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options import ReadOptions, read_options
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.source.bad_messages.originals import ReplayChoice
from pyspark_upsert_kafka.source.bad_messages.replay import replay, what_to_replay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``replay``."""
    parser.add_argument(
        "--topic", required=True, help="the dead-letter topic (error-handling.log.target)"
    )
    add_connection_arguments(parser)
    parser.add_argument(
        "--append",
        action="store_true",
        help="the topics are not tables: write every dead letter, even if newer messages exist, and again in each run",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be written, and write nothing"
    )


def run(given: argparse.Namespace) -> None:
    """Writes the letters back and prints how many.

    Raises:
        BrokerError: Among others: topics of letters do not exist. All other letters are written by then.
    """
    options = _options(given)
    choice = what_to_replay(options, tables=not given.append)
    if not given.dry_run:
        replay(choice.replayed, options)
    echo(_summary(given.topic, choice, "would be written" if given.dry_run else "written"))
    if choice.without_topic:
        raise _missing_topics(choice)


def _options(given: argparse.Namespace) -> ReadOptions:
    """The options with which the dead-letter topic is read; each of them is checked."""
    options = {
        "topic": given.topic,
        "read.mode": "append",
        "value.format": "raw",
    }
    return read_options(given_options(given, options), format_options, stream=False)


def _summary(topic: str, choice: ReplayChoice, written: str) -> str:
    """A line for each topic that letters came from."""
    parts = {
        written: choice.replayed,
        "left out: their keys have newer messages": choice.outdated,
        "left out: no key, so no row of a table": choice.keyless,
        "left out: the topic does not exist": choice.without_topic,
    }
    counts = {what: Counter(each.at.topic for each in part) for what, part in parts.items()}
    topics = sorted({each for counted in counts.values() for each in counted})
    lines = [
        f"{each}: "
        + ", ".join(f"{counts[what][each]:,} {what}" for what in counts if counts[what][each])
        for each in topics
    ]
    return "\n".join(lines or [f"Topic {topic!r} holds no dead letter."])


def _missing_topics(choice: ReplayChoice) -> BrokerError:
    counts = Counter(each.at.topic for each in choice.without_topic)
    listed = ", ".join(f"{count:,} of topic {name!r}" for name, count in sorted(counts.items()))
    return BrokerError(
        f"Dead letters were left out, since their topics do not exist: {listed}. Create the topics and run this "
        "again; with --append that writes all other dead letters again too.",
        is_final=True,
    )
