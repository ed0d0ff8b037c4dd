"""Write dead letters back to the topics that they came from.

Each message is written with its original key, value and headers to the topic that its header __error.topic
names, if --to names it too: whoever can write a dead letter can put any topic into that header. A dead letter is
left out if its topic has a newer message with the same key, because it would undo that message. So a second run
does not write again what the first run has written. Messages that are still bad become dead letters again, so fix
the reader first.

Keys are compared by their bytes: {"id":1} and {"id": 1} are two keys here, so a dead letter with the one undoes
a newer row that was written with the other.

For example:
  python -m pyspark_upsert_kafka replay --topic users_errors --dry-run
  python -m pyspark_upsert_kafka replay --topic users_errors --to users
  python -m pyspark_upsert_kafka replay --topic page_views_errors --to page_views --append
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable

from pyspark_upsert_kafka.cli.arguments import add_connection_arguments, given_options
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.connector.dead_letter_replay import ReplayChoice, replay, what_to_replay
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options

_INTERNAL = "__"
"""What the names of Kafka's own topics begin with."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``replay``."""
    parser.add_argument(
        "--topic", required=True, help="the dead-letter topic (error-handling.log.target)"
    )
    add_connection_arguments(parser)
    parser.add_argument(
        "--to",
        metavar="TOPIC",
        action="append",
        default=[],
        help="a topic that may be written; may be repeated",
    )
    parser.add_argument(
        "--to-pattern",
        metavar="REGEX",
        help="topics that may be written: a regular expression that matches the whole name",
    )
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
        OptionError: No topic that may be written is named, or an internal one is.
        BrokerError: Among others: topics of letters do not exist. All other letters are written by then.
    """
    may_write = _may_write(given)
    options = _options(given)
    choice = what_to_replay(options, may_write, tables=not given.append)
    if not given.dry_run:
        replay(choice.replayed, options)
    echo(_summary(given.topic, choice, "would be written" if given.dry_run else "written"))
    if choice.without_topic:
        raise _missing_topics(choice)


def _may_write(given: argparse.Namespace) -> Callable[[str], bool]:
    """Whether a topic may be written."""
    internal = [topic for topic in given.to if _is_internal(topic)]
    if internal:
        raise OptionError(
            f"--to {internal[0]}: topics whose names begin with '{_INTERNAL}' are Kafka's own, and are not written."
        )
    try:
        pattern = re.compile(given.to_pattern) if given.to_pattern is not None else None
    except re.error as why:
        raise OptionError(
            f"--to-pattern {given.to_pattern!r} is no regular expression: {why}."
        ) from None
    if not given.to and pattern is None and not given.dry_run:
        raise OptionError(
            "replay writes only to topics that are named: add --to TOPIC for each, or --to-pattern REGEX. --dry-run without "
            "them shows to which topics the letters want to go."
        )
    any_topic = not given.to and pattern is None

    def may_write(topic: str) -> bool:
        if _is_internal(topic):
            return False
        return (
            any_topic
            or topic in given.to
            or (pattern is not None and bool(pattern.fullmatch(topic)))
        )

    return may_write


def _is_internal(topic: str) -> bool:
    return topic.startswith(_INTERNAL)


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
        "left out: a topic of Kafka's own": [
            each for each in choice.not_named if _is_internal(each.at.topic)
        ],
        "left out: not named by --to": [
            each for each in choice.not_named if not _is_internal(each.at.topic)
        ],
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
