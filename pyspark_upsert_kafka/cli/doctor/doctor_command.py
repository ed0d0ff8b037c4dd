"""The command ``doctor``: opens the table that the arguments say, looks at it step by step, and prints what is found."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial

from pyspark_upsert_kafka.cli.arguments import checked_options, checked_table, table_options
from pyspark_upsert_kafka.cli.doctor.access_checks import (
    broker_finding,
    dead_letter_findings,
    group_findings,
    login_findings,
    registry_findings,
    service_findings,
)
from pyspark_upsert_kafka.cli.doctor.checkpoint_checks import checkpoint_findings
from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen, error_finding
from pyspark_upsert_kafka.cli.doctor.message_sample import SampleFacts, sampled
from pyspark_upsert_kafka.cli.doctor.sample_checks import check_sample, memory_findings
from pyspark_upsert_kafka.cli.doctor.topic_checks import (
    SeenTopics,
    past_findings,
    seen_topics,
    topic_findings,
)
from pyspark_upsert_kafka.cli.terminal import write_text
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    OptionError,
    SchemaError,
    UpsertKafkaError,
    printable,
)
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Positions
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster

_STARTS = {"scan.startup.mode", "scan.startup.timestamp", "scan.startup.timestamp-millis"}
"""Options that a table of a batch has not: it starts at the earliest offset."""

_CREATES_NOTHING = {"properties.allow.auto.create.topics": "false"}


def doctor(given: argparse.Namespace, contradiction: str = "") -> int:
    """Prints each finding as soon as it is there; returns the exit code.

    Args:
        given: The arguments.
        contradiction: What is wrong with them; empty = nothing.

    Raises:
        OptionError: There is nowhere to print it.
    """
    if sys.stdout is None:
        raise OptionError("Standard output is closed: there is nowhere to print what is found.")
    found: list[Finding] = []
    seen = set()
    for finding in _findings(given, contradiction):
        about = (finding.check, finding.topic)
        if finding.level is Level.NOT_CHECKED and about in seen:
            continue  # it is known already why the check cannot be made
        seen.add(about)
        found.append(finding)
        _write_finding(finding, given.output)
    _write_summary(found, given.output)
    return _exit_code(finding.level for finding in found)


def _exit_code(levels: Iterable[Level]) -> int:
    """The exit code of the command.

    >>> _exit_code([Level.OK, Level.NOT_CHECKED]), _exit_code([Level.WARNING]), _exit_code([Level.ERROR, Level.OK])
    (0, 1, 2)
    """
    found = set(levels)
    if Level.ERROR in found:
        return 2
    return 1 if Level.WARNING in found else 0


def _findings(given: argparse.Namespace, contradiction: str) -> Iterator[Finding]:
    if contradiction:
        yield error_finding("options", OptionError(contradiction))
    elif given.spark:
        # Not before it is asked for: others need no Spark.
        from pyspark_upsert_kafka.cli.doctor.spark_checks import spark_findings

        yield from spark_findings(given)
    else:
        yield from _table_findings(given)


def _table_findings(given: argparse.Namespace) -> Iterator[Finding]:
    try:
        raw = {**table_options(given, partial(_mode, given)), **_CREATES_NOTHING}
        options = checked_options(given, raw, stream=raw["read.mode"] == "changelog")
        logins = [*service_findings(options), *login_findings(options)]
        yield from logins
        if Level.ERROR in (each.level for each in logins):
            return
        cluster = load_client(options.table.client).cluster(options.table.properties, "driver")
    except UpsertKafkaError as error:
        yield error_finding("options", error)
        return
    yield from (Finding("options", Level.WARNING, text.rstrip(".")) for text in options.warnings)
    with closing(cluster):
        yield from _Checkup(given, raw, options, cluster).findings()


def _mode(given: argparse.Namespace, options: Mapping[str, str]) -> str:
    """How the table is read if nothing says it: as a stream, where something is given that only streams have."""
    is_stream = given.checkpoint is not None or not _STARTS.isdisjoint(options)
    return "changelog" if is_stream else "snapshot"


class _Checkup:
    """Looks at one thing after another.

    Args:
        given: The arguments.
        raw: The options that they mean.
        options: The same, checked.
        cluster: A connection to the brokers.
    """

    def __init__(
        self,
        given: argparse.Namespace,
        raw: Mapping[str, str],
        options: ReadOptions,
        cluster: Cluster,
    ) -> None:
        self._given, self._raw, self._options, self._cluster = given, raw, options, cluster

    def findings(self) -> Iterator[Finding]:
        """What is found."""
        cluster, options = self._cluster, self._options
        brokers = broker_finding(cluster, options)
        yield brokers
        if brokers.level is Level.ERROR:
            return
        topics = seen_topics(cluster, options)
        if isinstance(topics, Finding):
            yield topics
            return
        yield from topic_findings(topics, options)
        yield from group_findings(cluster, options)
        yield from self._start_and_end(topics)
        yield from dead_letter_findings(cluster, options)
        request = yield from self._table()
        sample = yield from self._sample(request, topics)
        yield from check_sample(sample, options)
        yield from memory_findings(sample, topics.view, options)
        if self._given.checkpoint is not None:
            yield from checkpoint_findings(self._given.checkpoint, cluster, topics, options)

    def _start_and_end(self, topics: SeenTopics) -> Iterator[Finding]:
        """What is wrong with offsets that are named, or that a group has committed; and with a past that is read."""
        options = self._options
        goes_on = self._given.checkpoint is not None
        start = None if goes_on else (yield from self._positions(options.start, topics))
        stop = yield from self._positions(options.end, topics)
        if start is not None and stop is not None:
            yield from past_findings(start, stop, topics, options)

    def _positions(
        self, position: Position, topics: SeenTopics
    ) -> Generator[Finding, None, Positions | None]:
        """Yields why a position has no offsets; returns them otherwise."""
        try:
            return self._cluster.positions(position, topics.view)
        except OptionError as error:
            yield error_finding("options", error)
        except BrokerError as error:
            yield NotSeen(str(error).rstrip(".")).finding("options")
        return None

    def _table(self) -> Generator[Finding, None, Request | NotSeen]:
        """Yields what is wrong with columns and schemas; returns the table, or why its messages cannot be decoded."""
        try:
            request = checked_table(self._given, self._raw, self._options)
        except BrokerError as error:
            yield error_finding("registry", error)
            return NotSeen("The schema registry does not say what the columns are")
        except (OptionError, SchemaError) as error:
            yield error_finding("columns", error)
            return NotSeen("The columns of the table are not known")
        answers = yield from registry_findings(request)
        return request if answers else NotSeen("The schema registry gives no schema")

    def _sample(
        self, request: Request | NotSeen, topics: SeenTopics
    ) -> Generator[Finding, None, SampleFacts | NotSeen]:
        """Yields why messages cannot be read, as a job could not either; returns what was seen of them."""
        if isinstance(request, NotSeen):
            return request
        if not self._given.sample:
            return NotSeen("With --sample 0 no message is read")
        for topic in topics.facts:
            if not isinstance(topic.operations, NotSeen) and "READ" not in topic.operations:
                return NotSeen(f"The user may not read topic {topic.name!r}")
        partitions = {topic.name: len(topic.bounds) for topic in topics.facts}
        try:
            return sampled(request, topics.view, partitions, self._given.sample)
        except (BrokerError, OptionError, SchemaError) as error:
            yield error_finding("sample", error)
            return NotSeen("The messages of the sample cannot be read")


_SYMBOLS = {
    Level.OK: ("✓", "+"),
    Level.NOT_CHECKED: ("-", "-"),
    Level.WARNING: ("!", "!"),
    Level.ERROR: ("✗", "x"),
}
"""For a standard output that has the character, and for another."""

_WORDS = {
    Level.OK: "ok",
    Level.NOT_CHECKED: "not checked",
    Level.WARNING: "warning",
    Level.ERROR: "error",
}


def _write_finding(finding: Finding, output: str) -> None:
    """Writes a finding in the form that ``--output`` names."""
    write_text(f"{json_line(finding) if output == 'json' else _shown(text_line(finding))}\n")


def _write_summary(findings: Sequence[Finding], output: str) -> None:
    """Writes the last line, which JSON does not have."""
    if output != "json":
        write_text(f"\n{summary(findings)}\n")


def json_line(finding: Finding) -> str:
    """A finding as an object.

    >>> json_line(Finding("tombstones", Level.OK, "Kept.", topic="users"))
    '{"check": "tombstones", "level": "ok", "topic": "users", "text": "Kept.", "advice": ""}'
    """
    return json.dumps(
        {
            "check": finding.check,
            "level": finding.level.value,
            "topic": finding.topic,
            "text": finding.text,
            "advice": finding.advice,
        }
    )


def text_line(finding: Finding) -> str:
    """A finding as a line.

    >>> text_line(Finding("rights", Level.ERROR, "The user may not read", "kafka-acls.sh --add"))
    '✗ error        rights                 The user may not read. What to do: kafka-acls.sh --add'
    """
    symbol, _ = _SYMBOLS[finding.level]
    advice = f". What to do: {finding.advice}" if finding.advice else ""
    text = " ".join(f"{finding.text}{advice}".split())
    return printable(f"{symbol} {_WORDS[finding.level]:<12} {finding.check:<22} {text}")


def summary(findings: Sequence[Finding]) -> str:
    """How many findings there are of each level, the worst first.

    >>> summary([Finding("a", Level.OK, ""), Finding("b", Level.WARNING, ""), Finding("c", Level.OK, "")])
    '1 warning, 2 ok.'
    """
    counts = Counter(finding.level for finding in findings)
    words = {Level.ERROR: "error", Level.WARNING: "warning"}
    parts = [
        f"{counts[level]} {word}" if counts[level] == 1 else f"{counts[level]} {word}s"
        for level, word in words.items()
        if counts[level]
    ]
    parts += [
        f"{counts[each]} {_WORDS[each]}" for each in (Level.NOT_CHECKED, Level.OK) if counts[each]
    ]
    return f"{', '.join(parts)}."


def _shown(line: str) -> str:
    """The line in characters that standard output has."""
    encoding = sys.stdout.encoding
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        for symbol, plain in _SYMBOLS.values():
            line = line.replace(symbol, plain, 1) if line.startswith(symbol) else line
        return line.encode(encoding, "backslashreplace").decode(encoding)
    return line
