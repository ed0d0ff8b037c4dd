"""What is promised, with the tests that hold it: tests/requirements.md and docs/reliability.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "tests" / "requirements.md"
FAULTS = ROOT / "docs" / "reliability.md"

Outcome = Literal["passed", "failed", "skipped", "not run"]

_ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.+) \| ([^|]+) \|$", re.MULTILINE)
_FAULT = re.compile(r"^\| ([^|]+) \| [^|]+ \| (`[^|]+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(\S+\.py::\w+)`")
_NOT_BUILT = re.compile(r"^## Not built\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^- .+(?:\n  .+)*", re.MULTILINE)


@dataclass(frozen=True)
class Requirement:
    """A promise.

    Args:
        id: Its name, such as ``READ-1``; a row of docs/reliability.md has a number, such as ``FAULT-1``.
        says: What is promised.
        tests: The tests that hold it, as pytest knows them.
    """

    id: str
    says: str
    tests: tuple[str, ...]


def requirements() -> list[Requirement]:
    """All of them, in the order of the two pages."""
    return [*_rows(), *_faults()]


def not_built() -> list[str]:
    """What tests/requirements.md says is not built: items of a list in Markdown."""
    found = _NOT_BUILT.search(REQUIREMENTS.read_text(encoding="utf-8"))
    return _ITEM.findall(found[0]) if found else []


def _rows() -> Iterator[Requirement]:
    for id_, says, tests in _ROW.findall(REQUIREMENTS.read_text(encoding="utf-8")):
        yield Requirement(id_, says, _tests(tests))


def _faults() -> Iterator[Requirement]:
    """A row that begins with dots continues the one before it."""
    begin = ""
    found = _FAULT.findall(FAULTS.read_text(encoding="utf-8"))
    for number, (fault, tests) in enumerate(found, 1):
        begin = begin if fault.startswith("...") else fault
        says = f"{begin} {fault}" if fault.startswith("...") else fault
        yield Requirement(f"FAULT-{number}", says, _tests(tests))


def _tests(cell: str) -> tuple[str, ...]:
    return tuple(f"tests/{test}" for test in _TEST.findall(cell))


def outcome(requirement: Requirement, tests: Mapping[str, Outcome]) -> Outcome:
    """Whether a promise holds: each of its tests has passed.

    Args:
        requirement: The promise.
        tests: How each test ended; one that is not there was not run.
    """
    found = {tests.get(test, "not run") for test in requirement.tests}
    return _first(("failed", "not run", "skipped", "passed"), found)


def together(found: Iterable[Outcome]) -> Outcome:
    """The outcome of all cases of a test, in all environments: one that some cases pass and others skip has passed.

    >>> together(["passed", "skipped"]), together(["passed", "failed"]), together(["passed", "not run"]), together([])
    ('passed', 'failed', 'not run', 'not run')
    """
    return _first(("failed", "not run", "passed", "skipped"), set(found))


def _first(order: tuple[Outcome, ...], found: set[Outcome]) -> Outcome:
    return next((each for each in order if each in found), "not run")
