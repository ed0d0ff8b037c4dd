"""`make test-alone` runs each marked test in a process of its own, and says which one passed only at its second try."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.alone import Tried, main, summary, tried
from tools.proof.reports import cases

TESTS = """
import os
from pathlib import Path
import pytest

@pytest.mark.alone("why")
@pytest.mark.parametrize("n", [1, 2])
def test_good(n, record_property):
    Path(f"good-{os.getpid()}").touch()

@pytest.mark.alone("why")
def test_busy():
    seen = Path("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there

@pytest.mark.alone("why")
def test_bad():
    assert False

def test_other():
    Path("other").touch()
"""


@pytest.mark.parametrize(
    ("endings", "ended"),
    [
        ([True], Tried("a.py::x", 1, passed=True)),
        ([False, True], Tried("a.py::x", 2, passed=True)),
        ([False, False], Tried("a.py::x", 2, passed=False)),
    ],
)
def test_a_test_that_fails_runs_once_more(endings: list[bool], ended: Tried) -> None:
    """And no more than once."""
    assert tried("a.py::x", lambda _: endings.pop(0)) == ended
    assert endings == []


def test_what_was_run_twice_is_said() -> None:
    """It passed, but somebody should know."""
    good, again = Tried("a.py::x", 1, passed=True), Tried("a.py::y", 2, passed=True)

    assert summary([good]) == "1 passed"
    assert summary([good, again]) == "2 passed, 1 of them at the second try: a.py::y"


@pytest.mark.long("starts pytest nine times")
def test_each_function_has_a_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The cases of a function share it; other tests do not run; one report has all last tries."""
    (tmp_path / "test_a.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone(reason)\n")
    report = tmp_path / "all.xml"

    assert main([f"--junitxml={report}", "-q"], tmp_path) == 1
    assert capfd.readouterr().out.splitlines()[-1] == (
        "alone: 2 passed, 1 of them at the second try: test_a.py::test_busy; 1 failed: test_a.py::test_bad"
    )
    assert len([*tmp_path.glob("good-*")]) == 1
    assert not (tmp_path / "other").exists()
    assert [outcome for _, outcome in cases(report)] == ["passed", "passed", "passed", "failed"]
    assert main(["-k", "good", "-q"], tmp_path) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "alone: 1 passed"
    # A place without such a test has shown nothing.
    assert main(["test_a.py::test_other"], tmp_path) == 1
