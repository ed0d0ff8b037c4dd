"""`make proof`: promises name tests that there are, and the page tells what was found."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tools.proof.page import _AREAS, page
from tools.proof.reports import cases, outcomes, summary
from tools.proof.requirements import (
    FAULTS,
    REQUIREMENTS,
    Outcome,
    Requirement,
    not_built,
    outcome,
    requirements,
    together,
)
from tools.proof.results import Proof, StepResult
from tools.proof.steps import Step, is_alone, steps

ROOT = Path(__file__).parents[2]
REPORT = (
    '<testsuites><testsuite><testcase classname="tests.unit.test_a" name="test_x[1]"/>'
    '<testcase classname="tests.unit.test_a" name="test_x[2]"><failure/></testcase>'
    '<testcase classname="tests.unit.test_a" name="test_y[1]"/>'
    '<testcase classname="tests.unit.test_a" name="test_y[2]"><skipped/></testcase>'
    '<testcase classname="tests.unit.test_a" name="test_s"><skipped/></testcase>'
    '<testcase classname="tests.unit.test_a" name="test_z"><error/></testcase></testsuite></testsuites>'
)
KILLS = StepResult(
    "kills", "Nothing is lost", "3 runs", "passed", "a | b", "2026-01-02 03:04 UTC", "1a2b", 130.0,
    faults={"drivers killed": 1200},
    earlier=("2026-01-02 03:00 UTC, failed: no worker came up",),
)  # fmt: skip
SOAK = StepResult(
    "soak", "It is complete", "150 s", "failed", "a row is lost", "2026-01-02 03:09 UTC", "1a2b", 20.0
)  # fmt: skip
SPEED = StepResult(
    "speed", "It was measured", "3 runs", "passed", "slower: json", "2026-01-02 03:10 UTC", "3c4d", 9.0
)  # fmt: skip
RELEASE = StepResult("reruns", "No row is repeated", "20 queries")
MEASURED = {
    "read json": {"ratio": 8.123, "noise": 0.034, "released": 12.0, "judgement": "slower"},
    "write json": {"ratio": 1.5, "noise": 1.28, "released": 3.0, "judgement": "too noisy"},
}


def test_each_promise_names_tests_that_exist() -> None:
    """Each row has at least one; a test that gets another name must be renamed there."""
    for each in requirements():
        assert each.tests, each.id
        for test in each.tests:
            file, _, name = test.partition("::")
            source = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{each.id}: {test}"


def test_no_row_is_overlooked() -> None:
    """Each line of a table of promises, on both pages, is one."""
    rows = 0
    for file in (REQUIREMENTS, FAULTS):
        is_table_of_promises = False
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(("| id |", "| what goes wrong |")):
                is_table_of_promises = True
            elif not line.startswith("|"):
                is_table_of_promises = False
            elif line.startswith("| "):
                rows += is_table_of_promises
    assert rows == len(requirements())


def test_each_promise_has_an_id_of_its_own_in_an_area_of_the_page() -> None:
    """The page counts promises by the area that their ids begin with."""
    ids = Counter(each.id for each in requirements())

    assert max(ids.values()) == 1
    assert {id_.rpartition("-")[0] for id_ in ids} == _AREAS.keys()


def test_a_row_that_goes_on_from_the_one_above_says_what_it_is_about() -> None:
    """On the page of the proof it stands alone."""
    said = [each.says for each in requirements() if each.id.startswith("FAULT-")]

    assert not [text for text in said if text.startswith("...")]
    assert "A broker restarts while a range is read ... while a query runs" in said


@pytest.mark.parametrize(
    ("names", "ended"),
    [
        (["test_x"], "failed"),  # one case of it
        (["test_y"], "passed"),  # what one case skips, another one shows
        (["test_z"], "failed"),
        (["test_s"], "skipped"),
        (["test_y", "test_s"], "skipped"),
        (["test_y", "test_w"], "not run"),
        (["test_x", "test_w"], "failed"),
        (["test_q"], "not run"),  # the step was not to run it
    ],
)
def test_a_promise_holds_only_if_all_of_its_tests_passed(
    tmp_path: Path, names: list[str], ended: Outcome
) -> None:
    """A test that was skipped or not run leaves its promise open."""
    report = tmp_path / "tests.xml"
    report.write_text(REPORT)
    of = {name: f"tests/unit/test_a.py::{name}" for name in ("test_q", *"xyzsw", *names)}
    run = tuple(f"tests/unit/test_a.py::test_{name}" for name in "xyzsw")
    found = outcomes([Step("promises", "", "", (), report, run)])

    assert outcome(Requirement("READ-1", "", tuple(of[name] for name in names)), found) == ended


def test_a_test_must_pass_in_each_environment(tmp_path: Path) -> None:
    """Tests of lakehouse tables run with two engines; one whose report is not there has shown nothing."""
    test = "tests/unit/test_a.py::test_y"
    (tmp_path / "a.xml").write_text(REPORT)
    (tmp_path / "b.xml").write_text(REPORT[:100])  # it was killed while it wrote
    a, b = (Step(name, "", "", (), tmp_path / f"{name}.xml", (test,)) for name in "ab")

    assert outcomes([a]) == {test: "passed"}
    assert outcomes([a, b]) == {test: "not run"}
    assert together(["passed", "failed", "not run"]) == "failed"


def test_a_report_in_a_line(tmp_path: Path) -> None:
    """Numbers of cases, and which tests failed."""
    report = tmp_path / "tests.xml"
    report.write_text(REPORT)

    assert summary(cases(report)) == (
        "2 passed, 2 skipped, 2 failed: tests/unit/test_a.py::test_x, tests/unit/test_a.py::test_z"
    )
    assert cases(tmp_path / "none.xml") == []


def found(*results: StepResult) -> Proof:
    """What a page is made of."""
    id_, other = [each.id for each in requirements() if each.id.startswith("READ-")][:2]
    promises: dict[str, Outcome] = {id_: "passed", other: "failed", "FAULT-1": "not run"}
    return Proof("short", {"commit": "1a2b", "Python": "3.13"}, results, promises, MEASURED)


def test_the_page_tells_what_failed_and_that_it_is_short() -> None:
    """Nobody takes a short proof for one of a release, or overlooks a failure."""
    text = page(found(KILLS, SOAK, SPEED))

    assert "**2 of 3 steps passed.** **Failed: `soak`.** Of 3 promises 1 hold; 1 failed" in text
    assert "the **short** form" in text
    row = "| `kills` | Nothing is lost | 3 runs; took 2.2 min | 1,200 drivers killed | passed |"
    assert row in text
    assert "| `soak` | It is complete | 150 s; took 20 s | none | **failed** |" in text
    assert "- `kills`, 2026-01-02 03:04 UTC: a \\| b" in text
    assert "- `kills`, an earlier run, 2026-01-02 03:00 UTC, failed: no worker came up\n" in text
    assert "- `speed`, 2026-01-02 03:10 UTC, commit 3c4d: see [below](#speed)" in text
    assert "| reading | 2 | 1 | 1 | 0 | 0 |" in text
    assert "| all | 3 | 1 | 1 | 0 | 1 |" in text
    assert "Failed:\n\n- READ-2: " in text
    assert "Not tested:\n\n- FAULT-1: " in text


def test_the_page_tells_what_was_not_run() -> None:
    """A proof that was interrupted is none of what follows."""
    stopped = replace(SOAK, ending="interrupted", said="")
    text = page(found(KILLS, stopped, RELEASE))

    assert "**Interrupted: `soak`.** **Not run: `reruns`.**" in text
    assert "| `soak` | It is complete | 150 s; took 20 s | none | **interrupted** |" in text
    assert "| `reruns` | No row is repeated | 20 queries | none | **not run** |" in text
    assert "- `soak`, 2026-01-02 03:09 UTC: interrupted" in text
    assert "- `reruns`" not in text


def test_times_are_compared_with_a_release_only_on_a_quiet_machine() -> None:
    """A number whose noise is larger than itself is no evidence, nor is one of a busy machine."""
    quiet, busy = (page(found(replace(SPEED, other_work=share))) for share in (0.02, 0.4))

    assert "| read json | 8.1 (slower) | 3% | 12.0 |" in quiet
    assert "| write json | too noisy | 128% | 3.0 |" in quiet
    assert "| read json | 8.1 | 3% |  |" in busy
    assert "took 40% of the machine's CPU time meanwhile. That is too much for a" in " ".join(
        busy.split()
    )


def test_the_page_says_what_is_not_built() -> None:
    """The list of tests/requirements.md, in a section that is there only where something is listed."""
    said = page(found(KILLS))

    assert ("## Not built" in said) == bool(not_built())
    assert "\n".join(not_built()) in said


def test_a_proof_is_kept_as_data(tmp_path: Path) -> None:
    """What is read is what was written."""
    proof = found(KILLS, SOAK)
    proof.save(tmp_path / "proof.json")

    assert Proof.load(tmp_path / "proof.json") == proof


def test_a_release_runs_every_step_of_the_short_form_for_longer(tmp_path: Path) -> None:
    """The forms differ in how much is run; only a release has other environments, and is measured beside Spark."""
    short, release = (
        {step.name: step for step in steps(form, tmp_path)} for form in ("short", "release")
    )

    assert release.keys() - short.keys() == {
        "iceberg", "delta", "flink", "debezium", "kerberos", "cluster", "operating", "bench",
    }  # fmt: skip
    assert short.keys() <= release.keys()
    for name in ("long", "alone"):
        assert short[name] == release[name]
    for name in short.keys() - {"long", "alone"}:
        assert short[name].size != release[name].size


def test_a_test_that_runs_alone_is_told_by_its_mark(tmp_path: Path) -> None:
    """Its own, or that of its whole file."""
    own, file = tmp_path / "own.py", tmp_path / "file.py"
    own.write_text(
        "@pytest.mark.alone('why')\ndef test_x(): ...\n@pytest.mark.long('why')\ndef test_y(): ...\n"
    )
    file.write_text("pytestmark = [pytest.mark.alone('why')]\ndef test_x(): ...\n")

    assert is_alone(f"{own}::test_x")
    assert not is_alone(f"{own}::test_y")
    assert is_alone(f"{file}::test_x")


def test_a_release_runs_every_test_of_a_promise(tmp_path: Path) -> None:
    """Those that a short proof leaves out need an environment of their own."""
    named = {test for each in requirements() for test in each.tests}
    short, release = (
        {test for step in steps(form, tmp_path) for test in step.tests}
        for form in ("short", "release")
    )
    folders = {test.split("/")[1] for test in release - short}

    assert release == named
    assert folders <= {"lakehouse", "flink", "debezium", "kerberos", "cluster", "operating"}
