"""The tests that a cell runs: short, and each thing that one does with the project."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.versions.environments import ROOT, versions_in
from tools.versions.results import Result

NEEDS_TOPIC_IDS = "tests/kafka/test_cluster.py::test_a_topic_created_again_has_another_id"

_CLUSTER = (
    "tests/kafka/test_cluster.py::test_topics_are_found_by_pattern",
    NEEDS_TOPIC_IDS,
    "tests/kafka/test_cluster.py::test_settings_of_topics_are_told",
    "tests/kafka/test_cluster.py::test_positions_by_timestamp",
    "tests/kafka/test_cluster.py::test_positions_of_a_group",
)
_READING = (
    "tests/kafka/test_reader.py::test_headers_come_as_they_were_written",
    "tests/kafka/test_reader.py::test_timestamps_are_those_of_the_producer",
    "tests/kafka/test_reader.py::test_a_range_ends_before_an_open_transaction",
    "tests/kafka/test_reader.py::test_aborted_messages_are_seen_only_by_those_who_want_them",
)
_READ_TABLE = (
    "tests/kafka/test_read_table.py::test_the_table_as_of_now",
    "tests/kafka/test_read_table.py::test_a_past_time",
)
_WRITING = (
    "tests/kafka/test_sender.py::test_a_key_goes_where_the_java_client_puts_it",
    "tests/kafka/test_sender.py::test_what_a_message_holds",
)
_SHOW = (
    "tests/kafka/test_show.py::test_a_table",
    "tests/kafka/test_show.py::test_counts",
    "tests/kafka/test_show.py::test_one_key_of_one_partition",
)
_TRANSACTIONS = (
    "tests/kafka/test_transactions.py::test_messages_and_receipt_are_committed_together",
    "tests/kafka/test_transactions.py::test_who_opens_an_id_fences_off_the_one_before",
    "tests/kafka/test_transactions.py::test_groups_are_found_by_how_their_names_begin",
)
_SPARK = (
    "tests/spark/test_batch_read.py::test_snapshot_changelog_and_append",
    "tests/spark/test_sink_batch.py::test_timestamps_and_headers_are_written",
    "tests/spark/test_sink_stream.py::test_append",
    "tests/spark/test_stream_reading.py::test_changes_deletes_and_plain_messages",
    "tests/spark/test_update_mode.py::test_an_aggregation_in_update_mode",
    "tests/spark/test_changelog.py::test_sums_go_down_and_survive_a_restart",
    "tests/spark/test_exactly_once.py::test_a_batch_that_runs_again_writes_nothing_twice",
)
_NEWER_IN_PYSPARK = (
    "tests/spark/test_max_bytes.py::test_available_now_within_bytes",
    "tests/spark/test_named_sources.py::test_named_sources_come_and_go",
    "tests/spark/test_named_sources.py::test_exactly_once_with_named_sources",
    "tests/spark/test_scan_headers.py::test_a_stream_reads_one_type",
)


@dataclass(frozen=True)
class ChosenTests:
    """Some tests.

    Args:
        names: Files, folders or tests, as pytest takes them.
        only: An expression that the names of the tests must fulfil, as for pytest's ``-k``; empty text = all run.
    """

    names: tuple[str, ...]
    only: str = ""

    def without(self, names: Collection[str]) -> ChosenTests:
        """All but these."""
        return replace(self, names=tuple(name for name in self.names if name not in names))

    def run(self, python: Path, servers: str, day: str) -> Result:
        """Runs them.

        Args:
            python: The Python of an environment.
            servers: Address of the broker that they use.
            day: Today.
        """
        report = python.parents[1] / "report.xml"
        report.unlink(missing_ok=True)
        given = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": servers, "PYSPARK_PYTHON": str(python)}
        # Each of Spark's Python workers would compile all that it imports.
        given.pop("PYTHONDONTWRITEBYTECODE", None)
        # Spark before 4.2 and kafka-python 3 leave sockets to the garbage collector.
        options = ["-W", "ignore::ResourceWarning", "-p", "no:cacheprovider", "--quiet"]
        # What Spark says of pandas 3 is on the page.
        options += ["-W", "ignore:PySpark does not yet fully support pandas"]
        command = [str(python), "-m", "pytest", *options, f"--junitxml={report}", "-k", self.only]
        subprocess.run([*command, *self.names], check=False, cwd=ROOT, env=given)
        return result_of(report, versions_in(python), day)


CONFLUENT_KAFKA = ChosenTests(
    (*_CLUSTER, *_READING, *_READ_TABLE, *_WRITING, *_SHOW, *_TRANSACTIONS), "not kafka-python"
)
KAFKA_PYTHON = ChosenTests((*_CLUSTER, *_READING, *_READ_TABLE, *_WRITING), "kafka-python")
SPARK = ChosenTests(_SPARK)
UNIT = ChosenTests(
    tuple(
        sorted(f"tests/unit/{file.parent.name}" for file in ROOT.glob("tests/unit/*/__init__.py"))
    )
)
"""Those of the package; what else is in tests/unit is about this repository."""
END_TO_END = ChosenTests((*_READ_TABLE, *_SHOW, *_SPARK, *_NEWER_IN_PYSPARK))


def result_of(report: Path, versions: Mapping[str, str], day: str) -> Result:
    """What pytest has written to its report; a problem if there is none."""
    if not report.exists():
        return Result(day, problem="the tests ended without a report", versions=versions)
    cases = list(ET.parse(report).getroot().iter("testcase"))
    failed = [case for case in cases if {"failure", "error"} & {part.tag for part in case}]
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - len(failed) - skipped
    names = tuple(str(case.get("name") or case.get("classname")) for case in failed)
    return Result(day, passed, skipped, names, versions=versions)
