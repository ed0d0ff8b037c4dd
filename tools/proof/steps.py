"""What a proof runs, in its short form and in that of a release."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.proof.requirements import requirements

Form = Literal["short", "release"]

REPORT = "tests.xml"
SPEED = "speed.json"


@dataclass(frozen=True)
class Step:
    """A program that proves something.

    Args:
        name: Its name, and that of its log.
        shows: What holds if it passes.
        size: How much of it is run.
        command: The program and its arguments.
    """

    name: str
    shows: str
    size: str
    command: tuple[str, ...]


def steps(form: Form, folder: Path) -> Iterator[Step]:
    """All of them, in the order in which they run.

    Args:
        form: ``short`` takes a quarter of an hour, ``release`` hours.
        folder: Where they write.
    """
    is_short = form == "short"
    yield _tests(is_short=is_short, report=folder / REPORT)
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
        "{} minutes",
    )
    runs = "3" if is_short else "7"
    yield Step(
        "speed",
        "How many times as fast as plain Python programs it is",
        f"{runs} runs of each side",
        (sys.executable, "benchmarks/quick.py", "--runs", runs, "--raw", str(folder / SPEED)),
    )
    if not is_short:
        yield Step(
            "bench",
            "How fast it is beside Spark's own source and sink",
            "5 runs of each side",
            (sys.executable, "benchmarks/run.py"),
        )


def _tool(name: str, shows: str, arguments: tuple[str, ...], size: str) -> Step:
    command = (sys.executable, "-m", f"tools.{name}", *arguments)
    return Step(name, shows, size.format(*arguments), command)


def _tests(*, is_short: bool, report: Path) -> Step:
    """The tests that requirements name; those of lakehouse tables need environments of their own."""
    named = sorted({test for each in requirements() for test in each.tests})
    folders = ("unit",) if is_short else ("unit", "kafka", "registry", "spark")
    chosen = [test for test in named if test.split("/")[1] in folders]
    # They wait much, as in ``make test``.
    beside = ("--numprocesses=3", "--dist=loadfile", "--no-loadscope-reorder")
    options = ("-q", "-p", "no:cacheprovider", f"--junitxml={report}", *beside)
    return Step(
        "requirements",
        "The tests that hold the requirements pass",
        f"{len(chosen)} of {len(named)} test functions",
        (sys.executable, "-m", "pytest", *options, *chosen),
    )
