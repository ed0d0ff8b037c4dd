"""What pytest's JUnit reports say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.proof.requirements import Outcome, together
from tools.proof.steps import Step

Case = tuple[str, Outcome]
"""A test function, and the outcome of one case of it."""

_SHOWN = 5


def cases(report: Path) -> list[Case]:
    """All cases of a report; none if it is not there, or was not written to its end."""
    try:
        root = ET.parse(report).getroot()
    except (FileNotFoundError, ET.ParseError):
        return []
    return [(_test(case), _outcome(case)) for case in root.iter("testcase")]


def _test(case: ET.Element) -> str:
    file = case.get("classname", "").replace(".", "/")
    return f"{file}.py::{case.get('name', '').partition('[')[0]}"


def _outcome(case: ET.Element) -> Outcome:
    children = {child.tag for child in case}
    if children & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in children else "passed"


def summary(found: Sequence[Case]) -> str:
    """In a line, how many cases ended in which way, and the first tests that failed.

    >>> summary([("a.py::x", "passed"), ("a.py::x", "failed"), ("a.py::y", "passed")])
    '2 passed, 1 failed: a.py::x'
    """
    counts = Counter(outcome for _, outcome in found)
    order: tuple[Outcome, ...] = ("passed", "skipped", "failed")
    parts = ", ".join(f"{counts[each]:,} {each}" for each in order if counts[each])
    failed = [*dict.fromkeys(test for test, outcome in found if outcome == "failed")]
    more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
    return f"{parts}: {', '.join(failed[:_SHOWN])}{more}" if failed else parts


def outcomes(steps: Iterable[Step]) -> dict[str, Outcome]:
    """How each test of a promise ended; one that several environments run must pass in each."""
    found: dict[str, list[Outcome]] = {}
    for step in steps:
        if step.report is None:
            continue
        of_report: dict[str, list[Outcome]] = {}
        for test, outcome in cases(step.report):
            of_report.setdefault(test, []).append(outcome)
        for test in step.tests:
            found.setdefault(test, []).extend(of_report.get(test, ["not run"]))
    return {test: together(all_) for test, all_ in found.items()}
