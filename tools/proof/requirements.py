"""What is promised, with the tests that hold it: tests/requirements.md and docs/reliability.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "tests" / "requirements.md"
FAULTS = ROOT / "docs" / "reliability.md"

Outcome = Literal["passed", "failed", "skipped", "not run"]

_ROW = re.compile(r"^\| ([A-Z]+-\d+) \| (.+) \| ([^|]+) \|$", re.MULTILINE)
_FAULT = re.compile(r"^\| ([^|]+) \| [^|]+ \| (`[^|]+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(\S+\.py::\w+)`")


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


def _rows() -> Iterator[Requirement]:
    for id_, says, tests in _ROW.findall(REQUIREMENTS.read_text(encoding="utf-8")):
        yield Requirement(id_, says, _tests(tests))


def _faults() -> Iterator[Requirement]:
    found = _FAULT.findall(FAULTS.read_text(encoding="utf-8"))
    for number, (fault, tests) in enumerate(found, 1):
        yield Requirement(f"FAULT-{number}", fault, _tests(tests))


def _tests(cell: str) -> tuple[str, ...]:
    return tuple(f"tests/{test}" for test in _TEST.findall(cell))


def outcomes(report: Path) -> dict[str, Outcome]:
    """What a JUnit report of pytest says of each test function; one of which a case failed has failed."""
    found: dict[str, list[Outcome]] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        file = case.attrib["classname"].replace(".", "/")
        test = f"{file}.py::{case.attrib['name'].partition('[')[0]}"
        found.setdefault(test, []).append(_outcome(case))
    return {test: worst(cases) for test, cases in found.items()}


def _outcome(case: ET.Element) -> Outcome:
    children = {child.tag for child in case}
    if children & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in children else "passed"


def worst(found: list[Outcome]) -> Outcome:
    """The outcome of several together: what passed in part and was skipped in part has passed.

    >>> worst(["passed", "skipped"]), worst(["passed", "failed"]), worst(["passed", "not run"]), worst([])
    ('passed', 'failed', 'not run', 'not run')
    """
    order: tuple[Outcome, ...] = ("failed", "not run", "passed", "skipped")
    return next((each for each in order if each in found), "not run")


def outcome(requirement: Requirement, tests: Mapping[str, Outcome]) -> Outcome:
    """Whether a requirement holds: each of its tests has passed."""
    return worst([tests.get(test, "not run") for test in requirement.tests])
