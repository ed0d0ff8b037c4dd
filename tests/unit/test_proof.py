"""`make proof`: requirements name tests that there are, and the page tells what was found."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from tools.proof.__main__ import _before
from tools.proof.machine import PACKAGE
from tools.proof.page import _AREAS, Proof, StepResult, page
from tools.proof.requirements import (
    FAULTS,
    Requirement,
    outcome,
    outcomes,
    requirements,
    worst,
)
from tools.proof.steps import steps
from tools.verdict import Verdict

ROOT = Path(__file__).parents[2]


def test_each_requirement_names_tests_that_exist() -> None:
    """Each row has at least one; a test that gets another name must be renamed there."""
    for each in requirements():
        assert each.tests, each.id
        for test in each.tests:
            file, _, name = test.partition("::")
            source = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{each.id}: {test}"


def test_each_requirement_has_an_id_of_its_own_in_an_area_of_the_page() -> None:
    """The page counts requirements by the area that their ids begin with."""
    ids = Counter(each.id for each in requirements())

    assert max(ids.values()) == 1
    assert {id_.rpartition("-")[0] for id_ in ids} == _AREAS.keys()


def test_each_fault_of_the_page_on_reliability_is_a_requirement() -> None:
    """No row of that page is left out."""
    rows = [
        line
        for line in FAULTS.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and "| test |" not in line
    ]
    assert len(rows) == sum(each.id.startswith("FAULT-") for each in requirements())


def test_a_requirement_passes_only_if_all_of_its_tests_do(tmp_path: Path) -> None:
    """One case that failed fails its test; a test that was not run leaves its requirement open."""
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.unit.test_a" name="test_x[1]"/>'
        '<testcase classname="tests.unit.test_a" name="test_x[2]"><failure/></testcase>'
        '<testcase classname="tests.unit.test_a" name="test_y[1]"/>'
        '<testcase classname="tests.unit.test_a" name="test_y[2]"><skipped/></testcase>'
        '<testcase classname="tests.unit.test_a" name="test_z"><error/></testcase></testsuite></testsuites>'
    )
    found = outcomes(report)

    def of(*tests: str) -> str:
        named = tuple(f"tests/unit/test_a.py::{test}" for test in tests)
        return outcome(Requirement("READ-1", "", named), found)

    assert (of("test_x"), of("test_y"), of("test_z")) == ("failed", "passed", "failed")
    assert (of("test_y", "test_w"), of("test_x", "test_w")) == ("not run", "failed")
    assert worst(["skipped"]) == "skipped"


def test_the_page_tells_what_failed_and_that_it_is_short() -> None:
    """Nobody takes a short proof for one of a release, or overlooks a failure."""
    results = (
        StepResult("kills", "Nothing is lost", "3 runs", "2026-01-02 03:04 UTC", Verdict("kills", True, "a | b", 130.0, {"drivers killed": 1200}), ("no worker came up",)),
        StepResult("soak", "It is complete", "150 s", "2026-01-02 03:09 UTC", Verdict("soak", False, "a row is lost", 20.0)),
    )  # fmt: skip
    speed = {"json: read": {"ratio": 8.123, "noise": 0.034, "seconds": []}}
    found = {"READ-1": "passed", "READ-2": "failed", "FAULT-1": "not run"}
    text = page(Proof("short", {"Python": "3.13"}, results, found, speed))

    assert "the **short** form" in text
    assert (
        "| `kills` | Nothing is lost | 3 runs; took 2.2 min | 1,200 drivers killed | passed |"
        in text
    )
    assert "| `soak` | It is complete | 150 s; took 20 s | none | **FAILED** |" in text
    assert "- `kills`, 2026-01-02 03:04 UTC: a \\| b" in text
    assert "- `kills`, an earlier run, **FAILED**: no worker came up" in text
    assert "| reading | 2 | 1 | 1 | 0 | 0 |" in text
    assert "| all | 3 | 1 | 1 | 0 | 1 |" in text
    assert "**Failed: READ-2.**" in text
    assert "| json: read | 8.1 | 3% |" in text


def test_steps_are_run_again_only_of_the_same_package_in_the_same_form(tmp_path: Path) -> None:
    """Else a page would mix what was tried of two versions."""
    file = tmp_path / "proof.json"
    ended = asdict(StepResult("soak", "", "", "", Verdict("soak", False, "a row is lost", 20.0)))
    file.write_text(json.dumps({"form": "short", "about": {PACKAGE: "1a2b"}, "steps": [ended]}))

    assert _before(file, "short", "1a2b")["soak"].verdict.said == "a row is lost"
    for other in (
        (file, "release", "1a2b"),
        (file, "short", "3c4d"),
        (tmp_path / "x", "short", ""),
    ):
        with pytest.raises(SystemExit, match="run all steps first"):
            _before(*other)


def test_a_release_runs_every_step_of_the_short_form_for_longer(tmp_path: Path) -> None:
    """The forms differ in how much is run; only a release is measured beside Spark."""
    short, release = (
        {step.name: step for step in steps(form, tmp_path)} for form in ("short", "release")
    )

    assert release.keys() - short.keys() == {"bench"}
    assert short.keys() <= release.keys()
    for name, step in short.items():
        assert step.size != release[name].size
