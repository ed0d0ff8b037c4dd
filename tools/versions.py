"""Runs some tests with each PySpark on each Kafka, and writes the results to docs/versions.md: ``make test-versions``.

Each row of the page is a separate environment, a PySpark in a Python. Each column is a broker. A cell is the number of tests that
passed. ``python -m tools.versions 4.0 4.3`` runs only these rows; the other rows do not change.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree as ET

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.kafka.local.jars import broker_jars

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
FOLDER = ROOT / ".venv-versions"

TESTS = (
    "tests/kafka/test_cluster.py::test_topics_are_found_by_pattern",
    "tests/kafka/test_cluster.py::test_a_topic_created_again_has_another_id",
    "tests/kafka/test_cluster.py::test_positions_by_timestamp",
    "tests/kafka/test_cluster.py::test_positions_of_a_group",
    "tests/kafka/test_reader.py::test_headers_come_as_they_were_written",
    "tests/kafka/test_reader.py::test_a_range_ends_before_an_open_transaction",
    "tests/kafka/test_sender.py::test_a_key_goes_where_the_java_client_puts_it",
    "tests/kafka/test_sender.py::test_what_a_message_holds",
    "tests/spark/test_batch_read.py::test_snapshot_changelog_and_append",
    "tests/spark/test_batch_sql.py::test_create_table_select_with_and_insert_with",
    "tests/spark/test_sink_batch.py::test_every_kind_of_change_in_any_case",
    "tests/spark/test_sink_stream.py::test_append",
    "tests/spark/test_stream_reading.py::test_changes_deletes_and_plain_messages",
    "tests/spark/test_stream_reading.py::test_available_now_within_limits",
    "tests/spark/test_update_mode.py::test_an_aggregation_in_update_mode",
    "tests/spark/test_changelog.py::test_sums_go_down_and_survive_a_restart",
    "tests/spark/test_exactly_once.py::test_a_batch_that_runs_again_writes_nothing_twice",
)
"""Both Kafka clients, and each thing that one does with Spark."""


@dataclass(frozen=True)
class Environment:
    """A row of the page.

    Args:
        pyspark: The newest PySpark that begins so.
        python: The version of Python.
    """

    pyspark: str
    python: str

    def __str__(self) -> str:
        return f"PySpark {self.pyspark}, Python {self.python}"


ENVIRONMENTS = (
    Environment("4.0", "3.10"),
    Environment("4.1", "3.11"),
    Environment("4.2", "3.12"),
    Environment("4.3", "3.13"),
)
BROKERS: Mapping[str, Path | None] = {
    "3.9.2": Path(__file__).with_name("kafka-3.9.2.lock"),
    "4.3.1": None,  # the one that LocalKafka downloads
}


@dataclass(frozen=True)
class Result:
    """What the tests of a cell said, by number."""

    passed: int
    skipped: int
    failed: int

    def __str__(self) -> str:
        if self.failed:
            return f"**{self.failed} failed**, {self.passed} passed"
        return f"{self.passed} passed" + (f", {self.skipped} skipped" if self.skipped else "")


def page(rows: Iterable[str]) -> str:
    """The text of docs/versions.md, with these rows of its table."""
    lines = [
        "# Versions",
        "",
        "<!-- Made by `make test-versions`. -->",
        "",
        "This page says which versions work together. PySpark 4.0 and newer, Python 3.10 and newer, and all brokers that",
        "[librdkafka](https://github.com/confluentinc/librdkafka) supports are supported. `make test-versions` runs some tests with each",
        "PySpark on each Kafka: for both Kafka clients, and for reading, writing, streaming, SQL, update mode, whole rows and exactly once. A",
        "test is skipped if PySpark does not support what it needs: limits per micro-batch before 4.2, state before 4.1.",
        "",
        f"| | {' | '.join(f'Kafka {name}' for name in BROKERS)} | run on |",
        f"|---|{'---|' * len(BROKERS)}---|",
        *rows,
        "",
        "All tests run with the newest PySpark on the newest of these brokers (`make test`), many with PySpark 4.0 (`make test-pyspark-4.0`),",
        "and some over Spark Connect; `make test-connect` runs the other end-to-end tests over Spark Connect.",
        "",
    ]
    return "\n".join(lines)


def row(name: str, results: Mapping[str, Result], day: str) -> str:
    """A row of the table.

    Args:
        name: The environment, as it is to be shown.
        results: What the tests said on each Kafka that was tried.
        day: When that was.
    """
    cells = [str(results[broker]) if broker in results else "not run" for broker in BROKERS]
    return f"| {' | '.join([name, *cells, day if results else ''])} |"


def row_before(wanted: Environment, text: str) -> str:
    """The row that the page has for an environment: one that is not run again keeps it."""
    found = re.search(rf"^\| PySpark {re.escape(wanted.pyspark)}[., ].*$", text, re.MULTILINE)
    return found[0] if found else row(str(wanted), {}, "")


def interpreter(version: str) -> Path | None:
    """A Python of this version: on the PATH or of pyenv."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders += sorted(root.glob(f"{version}.*/bin"))
    for folder in folders:
        python = folder / f"python{version}"
        # A shim of pyenv is there for versions that are not chosen, too.
        if (
            python.exists()
            and not subprocess.run([python, "-V"], capture_output=True, check=False).returncode
        ):
            return python
    return None


def environment(wanted: Environment, python: Path) -> Path:
    """The Python of an environment with that PySpark, this project and what its tests need; made once."""
    folder = FOLDER / f"pyspark-{wanted.pyspark}"
    made = folder / ".ready"
    if not made.exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet"]
        subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
        pyspark = f"pyspark[connect]=={wanted.pyspark}.*"
        subprocess.run(
            [*pip, "--editable", str(ROOT), pyspark, "--group", "test"], check=True, cwd=ROOT
        )
        made.touch()
    return folder / "bin" / "python"


def run_tests(python: Path, servers: str) -> Result:
    """Runs the tests in an environment, on the broker at this address."""
    report = python.parents[1] / "report.xml"
    report.unlink(missing_ok=True)
    given = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": servers, "PYSPARK_PYTHON": str(python)}
    # PySpark 4.0 leaves the sockets of collected results to the garbage collector.
    options = ["-W", "ignore::ResourceWarning", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run([python, "-m", "pytest", *options, *TESTS], check=False, cwd=ROOT, env=given)
    suite = ET.parse(report).getroot().find("testsuite")
    assert suite is not None
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    return Result(tests - skipped - failed, skipped, failed)


def shown(python: Path) -> str:
    """Which PySpark and which Python these are."""
    asked = "import platform, pyspark; print(f'PySpark {pyspark.__version__}, Python {platform.python_version()}')"
    done = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def on_each_broker(pythons: Mapping[Environment, Path]) -> dict[Environment, dict[str, Result]]:
    """What the tests say in each environment, by the version of the broker."""
    results: dict[Environment, dict[str, Result]] = {wanted: {} for wanted in pythons}
    for name, lock in BROKERS.items():
        os.environ["LOCAL_KAFKA_JARS"] = str(broker_jars(lock)) if lock else ""
        with LocalKafka() as kafka:
            for wanted, python in pythons.items():
                results[wanted][name] = run_tests(python, kafka.bootstrap_servers)
    return results


def main(chosen: Sequence[str]) -> int:
    """Runs the rows of these PySparks, or all; 1 = a test failed."""
    pythons: dict[Environment, Path] = {}
    for wanted in ENVIRONMENTS:
        python = interpreter(wanted.python) if wanted.pyspark in chosen or not chosen else None
        if python is not None:
            pythons[wanted] = environment(wanted, python)
    results = on_each_broker(pythons)
    before, day = PAGE.read_text(encoding="utf-8"), f"{datetime.now(timezone.utc):%Y-%m-%d}"
    rows = [
        row(shown(pythons[wanted]), results[wanted], day)
        if wanted in results
        else row_before(wanted, before)
        for wanted in ENVIRONMENTS
    ]
    PAGE.write_text(page(rows), encoding="utf-8")
    print("\n".join(rows))
    return int(any(result.failed for found in results.values() for result in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
