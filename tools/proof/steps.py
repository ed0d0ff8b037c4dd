"""What a proof runs, in its short form and in that of a release."""

from __future__ import annotations

import ast
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from tools.proof.requirements import requirements
from tools.proof.results import Form

SPEED = "speed.json"

_ROOT = Path(__file__).parents[2]

_IN_ONE_ENVIRONMENT = ("unit", "kafka", "registry", "spark")
_ENVIRONMENTS = {
    "iceberg": ("lakehouse", "The tests with Iceberg pass"),
    "delta": ("lakehouse", "The tests with Delta Lake pass"),
    "flink": ("flink", "Flink and this package understand each other's topics and scripts"),
    "debezium": ("debezium", "What Debezium reads of a real Postgres becomes its table"),
    "kerberos": ("kerberos", "The tests with Kerberos pass"),
    "cluster": ("cluster", "The commands of the page on clusters run as they stand"),
    "operating": ("operating", "A real Prometheus understands metrics and alerts of a query"),
}
"""Tests that need an environment of their own: ``make test-<name>`` runs a folder of tests, and shows that this holds."""


@dataclass(frozen=True)
class Step:
    """A program that proves something.

    Args:
        name: Its name, and that of its log.
        shows: What holds if it passes.
        size: How much of it is run.
        command: The program and its arguments.
        report: The JUnit report that it writes; None = it runs no tests.
        tests: The tests of promises that it runs.
        raw: The file with what it measures; None = it measures nothing.
    """

    name: str
    shows: str
    size: str
    command: tuple[str, ...]
    report: Path | None = None
    tests: tuple[str, ...] = ()
    raw: Path | None = None


def steps(form: Form, folder: Path) -> Iterator[Step]:
    """All of them, in the order in which they run.

    Args:
        form: ``short`` takes half an hour to an hour on two cores, ``release`` many.
        folder: Where they write.
    """
    is_short = form == "short"
    yield from _in_this_environment(folder)
    if not is_short:
        yield from (_environment(name, folder) for name in _ENVIRONMENTS)
    yield _tool(
        "mutants",
        "The unit tests notice when the code that decides about positions, rows and changes is wrong",
        ("--count", "150") if is_short else ("--count", "600"),
        "{1} mutations",
    )
    yield _tool(
        "soak",
        "A table that is copied, while its broker restarts every minute, is complete, and no resource grows",
        ("150", "100000") if is_short else ("7200", "10000000"),
        "{} s, {} changes",
    )
    yield _tool(
        "kills",
        "Exactly once: each change is there once and in order, while workers and drivers are killed; at least once: none is lost",
        ("3",) if is_short else ("60",),
        "{} runs of 20000 changes",
    )
    yield _tool(
        "reruns",
        "Exactly once: no row is lost or repeated when a query fails and runs again with something changed",
        ("20",) if is_short else ("1000",),
        "{} queries",
    )
    yield _tool(
        "histories",
        "A snapshot of a table that is changed and compacted all the time lacks no key, and shows no old row",
        ("3",) if is_short else ("200",),
        "{} tables",
    )
    yield _tool(
        "stress",
        "What is read without an object for each message is right and is freed, however reading ends",
        ("1",) if is_short else ("60",),
        "{} min",
    )
    runs = "3" if is_short else "7"
    yield _measuring(
        "speed", "The speed was measured", "bench-quick", f"--runs={runs}", raw=folder / SPEED
    )
    if not is_short:
        shows = "The speed beside Spark's own source and sink was measured"
        yield _measuring("bench", shows, "bench", "--runs=5", raw=folder / "bench.json")


def _tool(name: str, shows: str, arguments: tuple[str, ...], size: str) -> Step:
    command = (sys.executable, "-m", f"tools.{name}", *arguments)
    return Step(name, shows, size.format(*arguments), command)


def _measuring(name: str, shows: str, target: str, runs: str, *, raw: Path) -> Step:
    size = f"{runs.partition('=')[2]} runs of each side"
    return Step(name, shows, size, _make(target, runs, f"--raw={raw}"), raw=raw)


def _in_this_environment(folder: Path) -> Iterator[Step]:
    """All tests that need no environment of their own; those that measure run in processes of their own."""
    named = [test for test in _named() if _folder(test) in _IN_ONE_ENVIRONMENT]
    alone = tuple(test for test in named if is_alone(test))
    others = tuple(test for test in named if not is_alone(test))
    for name, shows, tests in (
        ("long", "All tests pass, with all examples", others),
        ("alone", "The tests that assert times, memory or counts of threads pass", alone),
    ):
        report = folder / "tests" / f"{name}.xml"
        command = _make(f"test-{name}", *_reporting(report))
        yield Step(name, shows, f"`make test-{name}`", command, report, tests)


@cache
def is_alone(test: str) -> bool:
    """Whether a test function is marked ``alone``, by itself or with its whole file.

    Args:
        test: Its name, as pytest knows it.
    """
    file, _, name = test.partition("::")
    for statement in _statements(file):
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            marks: list[ast.expr] = statement.decorator_list
        elif (
            isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"
        ):
            marks = [statement.value]
        else:
            continue
        if any("pytest.mark.alone" in ast.unparse(mark) for mark in marks):
            return True
    return False


@lru_cache
def _statements(file: str) -> list[ast.stmt]:
    return ast.parse((_ROOT / file).read_text(encoding="utf-8")).body


def _environment(name: str, folder: Path) -> Step:
    """All tests of an environment of its own."""
    of, shows = _ENVIRONMENTS[name]
    chosen = tuple(test for test in _named() if _folder(test) == of)
    report = folder / "tests" / f"{name}.xml"
    # The targets of lakehouse tables run what they are given; the others add it to what they run.
    given = [f"tests/{of}"] if of == "lakehouse" else []
    command = _make(f"test-{name}", *_reporting(report), *given)
    return Step(name, shows, f"`make test-{name}`", command, report, chosen)


def _named() -> list[str]:
    return sorted({test for each in requirements() for test in each.tests})


def _folder(test: str) -> str:
    return test.split("/")[1]


def _reporting(report: Path) -> tuple[str, ...]:
    return ("-q", "-pno:cacheprovider", f"--junitxml={report}")


def _make(target: str, *arguments: str) -> tuple[str, ...]:
    return ("make", "--silent", "--no-print-directory", target, f"ARGS={shlex.join(arguments)}")
