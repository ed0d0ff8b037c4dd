"""`make proof` runs steps, all or some again: the folder and the page say what has happened."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git import git
from tools.proof import __main__ as proof
from tools.proof import machine
from tools.proof.results import Proof
from tools.proof.running import run
from tools.proof.steps import Step

PASSES = '<testsuite><testcase classname="tests.unit.test_a" name="test_x"/></testsuite>'
SKIPS = '<testsuite><testcase classname="tests.unit.test_a" name="test_x"><skipped/></testcase></testsuite>'


def program(text: str) -> tuple[str, ...]:
    """A program of Python."""
    return (sys.executable, "-c", text)


def writes(file: str, content: str, code: int = 0) -> tuple[str, ...]:
    """A program that writes a file and ends."""
    return program(
        f"import sys; print('the last line'); open({file!r}, 'w').write({content!r}); sys.exit({code})"
    )


@pytest.mark.parametrize(
    ("text", "ending", "said"),
    [
        ("print('all is there')", "passed", "all is there"),
        ("raise SystemExit('a row is lost')", "failed", "a row is lost"),
        ("pass", "passed", "it said nothing"),
        ("import os; print('so far', flush=True); os.kill(os.getpid(), 9)", "failed", "ended by SIGKILL: so far"),
    ],
)  # fmt: skip
def test_a_step_ends_as_its_program_does(tmp_path: Path, text: str, ending: str, said: str) -> None:
    """One without a verdict of its own."""
    ended = run(Step("a", "", "", program(text)), tmp_path)

    assert (ended.ending, ended.said) == (ending, said)


def test_what_make_says_of_a_failure_is_not_what_went_wrong(tmp_path: Path) -> None:
    """The line before it is."""
    (tmp_path / "Makefile").write_text("a:\n\t@echo no package of this name; exit 3\n")
    ended = run(
        Step("a", "", "", ("make", "-C", str(tmp_path), "--silent", "--no-print-directory", "a")),
        tmp_path,
    )

    assert (ended.ending, ended.said) == ("failed", "no package of this name")


@pytest.mark.parametrize(
    ("passed", "code", "ending"), [(True, 0, "passed"), (False, 1, "failed"), (True, 1, "failed")]
)
def test_a_verdict_counts_only_with_a_good_exit_code(
    tmp_path: Path, passed: bool, code: int, ending: str
) -> None:
    """A program may be killed behind its verdict."""
    verdict = {
        "name": "a",
        "passed": passed,
        "said": "20 rows",
        "seconds": 1.0,
        "faults": {"kills": 3},
    }
    (tmp_path / "verdicts").mkdir()
    command = writes(str(tmp_path / "verdicts" / "a.json"), json.dumps(verdict), code)
    ended = run(Step("a", "", "", command), tmp_path)

    assert (ended.ending, ended.faults) == (ending, {"kills": 3})
    assert ended.said.startswith("20 rows")


@pytest.mark.parametrize(
    ("report", "code", "ending", "said"),
    [
        (PASSES, 0, "passed", "1 passed"),
        (PASSES, 1, "failed", "1 passed; the last line"),
        (SKIPS, 0, "not run", "the last line"),
        ("", 2, "not run", "the last line"),
    ],
)
def test_a_step_without_a_test_has_shown_nothing(
    tmp_path: Path, report: str, code: int, ending: str, said: str
) -> None:
    """Its environment could not be made, or the machine lacks what its tests need."""
    file = tmp_path / "tests.xml"
    ended = run(Step("a", "", "", writes(str(file), report, code), file), tmp_path)

    assert (ended.ending, ended.said) == (ending, said)


def test_nothing_of_an_earlier_run_counts(tmp_path: Path) -> None:
    """A step that writes nothing this time has no outcome of the last time."""
    report, raw = tmp_path / "tests.xml", tmp_path / "speed.json"
    verdict = tmp_path / "verdicts" / "a.json"
    verdict.parent.mkdir()
    for file in (report, raw, verdict):
        file.write_text("old")
    run(Step("a", "", "", program("pass"), report, raw=raw), tmp_path)

    assert not any(file.exists() for file in (report, raw, verdict))


class Trial:
    """Proofs of steps that are small.

    Args:
        folder: A folder of their own.
        patch: Replaces the steps and the machine.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.page = folder / "page.md"
        self.folder = folder / "proof"
        self.commands = {"a": "print('a is well')", "b": "print('b is well')"}
        self.about = {"commit": "1a2b", "package": "77aa", "Python": "3.13"}
        patch.setattr(proof, "steps", lambda *_: [self._step(name) for name in self.commands])
        patch.setattr(proof, "about", lambda: self.about)
        patch.setattr(proof, "commit", lambda: self.about["commit"])

    def _step(self, name: str) -> Step:
        return Step(name, "It holds", "1 run", program(self.commands[name]))

    def run(self, *only: str) -> int:
        """The exit code."""
        return proof.prove("short", only, self.folder, self.page)

    def endings(self) -> dict[str, str]:
        """How each step ended, as the folder says."""
        found = Proof.load(self.folder / "proof.json")
        return {step.name: step.ending for step in found.steps}


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """With two steps, which pass."""
    return Trial(tmp_path, monkeypatch)


def test_a_step_that_failed_is_run_again_and_the_page_says_so(trial: Trial) -> None:
    """The other step keeps its outcome; the failure stays on the page."""
    trial.commands["b"] = "raise SystemExit('a row is lost')"
    assert trial.run() == 1
    assert trial.endings() == {"a": "passed", "b": "failed"}
    assert "**1 of 2 steps passed.** **Failed: `b`.**" in trial.page.read_text()

    trial.commands = {"a": "raise SystemExit('not run again')", "b": "print('b is well')"}
    trial.about = {**trial.about, "commit": "3c4d"}  # the same package
    assert trial.run("b") == 0
    text = trial.page.read_text()

    assert trial.endings() == {"a": "passed", "b": "passed"}
    assert "**2 of 2 steps passed.**" in text
    assert ", failed: a row is lost\n" in text
    assert ", commit 3c4d: b is well" in text
    assert (trial.folder / "proof.md").read_text() == text


def test_a_step_that_passed_may_fail_when_it_is_run_again(trial: Trial) -> None:
    """The last run counts."""
    assert trial.run() == 0
    trial.commands["a"] = "raise SystemExit('a row is lost')"
    assert trial.run("a") == 1

    assert trial.endings() == {"a": "failed", "b": "passed"}
    assert "**Failed: `a`.**" in trial.page.read_text()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"package": "88bb"}, "package: 77aa before, 88bb now"),
        ({"Python": "3.14"}, "Python: 3.13 before, 3.14 now"),
    ],
)
def test_nothing_is_run_again_of_another_package_or_machine(
    trial: Trial, now: dict[str, str], said: str
) -> None:
    """A page would mix what was tried of two; it stays as it was."""
    trial.run()
    text = trial.page.read_text()
    trial.about = {**trial.about, **now}

    with pytest.raises(SystemExit, match=said):
        trial.run("b")
    assert trial.page.read_text() == text


def test_what_cannot_be_run_again_is_said(trial: Trial) -> None:
    """A step that there is not, and one of a proof that there is not."""
    with pytest.raises(SystemExit, match="run all steps first"):
        trial.run("b")
    trial.run()
    with pytest.raises(SystemExit, match=r"No such step: c\. This form has a, b"):
        trial.run("c")
    with pytest.raises(SystemExit, match="form: short before, release now"):
        proof.prove("release", ["b"], trial.folder, trial.page)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as `make proof` sees to; a process that a shell has put into the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_proof_that_is_interrupted_says_what_is_left(
    trial: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    """The step ends what it has started; steps before it are kept, and docs/proof.md stays until all steps were run."""
    ended = trial.folder.parent / "ended"
    trial.commands = {
        "a": "print('a is well')",
        "b": "import pathlib, time\n"
        "try:\n    print('b runs', flush=True); time.sleep(600)\n"
        f"finally:\n    pathlib.Path({str(ended)!r}).touch()",
        "c": "print('c is well')",
    }
    log = trial.folder / "logs" / "b.log"

    def interrupt() -> None:
        while not (log.exists() and log.read_text()):
            time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    assert trial.run() == 1

    assert ended.exists()
    assert trial.endings() == {"a": "passed", "b": "interrupted", "c": "not run"}
    assert not trial.page.exists()
    assert '"--only b c" runs the rest' in capsys.readouterr().out

    trial.commands["b"] = "print('b is well')"
    assert trial.run("b", "c") == 0
    text = trial.page.read_text()
    assert "**3 of 3 steps passed.**" in text
    assert "- `b`, an earlier run, " in text
    assert ", interrupted\n" in text


def test_a_commit_with_changes_is_told_and_changes_of_the_package_tell_packages_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a file that git does not know yet; the page that this tool writes is no change."""
    package, docs = tmp_path / "pyspark_upsert_kafka", tmp_path / "docs"
    for folder in (package, docs):
        folder.mkdir()
    (package / "a.py").write_text("1")
    (docs / "proof.md").write_text("old")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=x")
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    commit = git(tmp_path, "rev-parse", "--short=9", "HEAD")
    (docs / "proof.md").write_text("new")

    assert machine.commit() == commit
    assert machine._package() == git(tmp_path, "rev-parse", "HEAD:pyspark_upsert_kafka")

    found = {machine._package()}
    for content in ("2", "3"):
        (package / "b.py").write_text(content)
        found.add(machine._package())
    assert len(found) == 3
    assert machine.commit() == f"{commit}, with changes to pyspark_upsert_kafka/b.py"
    assert git(tmp_path, "diff", "--cached") == ""


def test_a_machine_without_a_compiler_of_java_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not after an hour, by the first step that needs it."""
    monkeypatch.setattr(machine, "_said", lambda _: "java.base, or a commit")

    assert "install a JDK" in (machine.lacks() or "")


def test_other_work_is_what_the_machine_did_beside_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of four cores in ten seconds, twenty seconds were busy, and the step took sixteen of them."""
    times = iter([(100.0, 50.0, 0.0), (120.0, 66.0, 10.0)])
    monkeypatch.setattr(machine.OtherWork, "_now", staticmethod(lambda: next(times)))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)

    assert machine.OtherWork().share() == pytest.approx(0.1)
