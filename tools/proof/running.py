"""Runs a step of a proof, and reads how it ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tools.proof.reports import cases, summary
from tools.proof.results import Ending
from tools.proof.steps import Step
from tools.verdict import FOLDER

ROOT = Path(__file__).parents[2]

_FAILED = re.compile(r"make(\[\d+\])?: \*\*\* .* Error \d+$")

_POLL_S = 0.2

_END_S = 120.0
"""How long a step that was interrupted may take to stop its brokers and sessions."""


@dataclass(frozen=True)
class Ended:
    """How the program of a step ended.

    Args:
        ending: The kind of its end.
        said: What was done and seen, or what is wrong.
        faults: The faults that were injected, and how often each.
    """

    ending: Ending
    said: str
    faults: Mapping[str, int] = field(default_factory=dict)


def run(step: Step, folder: Path) -> Ended:
    """Runs a step. Nothing of an earlier run counts: what it has written is deleted first."""
    verdict = folder / "verdicts" / f"{step.name}.json"
    log = folder / "logs" / f"{step.name}.log"
    for file in (verdict, step.report, step.raw):
        if file is not None:
            file.unlink(missing_ok=True)
    for needed in (log, step.report):
        if needed is not None:
            needed.parent.mkdir(parents=True, exist_ok=True)
    code = _exit_code(step.command, log, folder)
    if code is None:
        return Ended("interrupted", summary(cases(step.report)) if step.report else "")
    last = _last_line(log, code)
    if step.report is not None:
        return _of_tests(code, step.report, last)
    return _of_tool(code, verdict, last)


def _exit_code(command: Sequence[str], log: Path, folder: Path) -> int | None:
    """Runs a program in a process group of its own; None = it was interrupted (Ctrl-C, SIGTERM)."""
    environment = {**os.environ, FOLDER: str(folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            # A signal may reach another thread, which does not interrupt a wait without a timeout.
            while process.poll() is None:
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            print("proof: interrupted; waiting for the step to stop what it started", flush=True)
            _end(process)
            return None
    return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupts a program and all that it started in its group, and kills them if they do not end."""
    with suppress(ProcessLookupError):  # it has ended by itself meanwhile
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _of_tests(code: int, report: Path, last: str) -> Ended:
    """A step that ran no test, because the machine lacks something or a name is wrong, has shown nothing."""
    found = cases(report)
    if all(outcome == "skipped" for _, outcome in found):
        return Ended("not run", last)
    failed = code != 0 or any(outcome == "failed" for _, outcome in found)
    said = summary(found)
    has_reason = any(outcome == "failed" for _, outcome in found)
    return Ended(
        "failed" if failed else "passed", said if has_reason or not code else f"{said}; {last}"
    )


def _of_tool(code: int, verdict: Path, last: str) -> Ended:
    """One without a verdict has passed if its exit code is 0."""
    if not verdict.exists():
        return Ended("failed" if code else "passed", last)
    found = json.loads(verdict.read_text(encoding="utf-8"))
    passed = found["passed"] and not code
    said = found["said"] if passed or not found["passed"] else f"{found['said']}; {last}"
    return Ended("passed" if passed else "failed", said, found["faults"])


def _last_line(log: Path, code: int) -> str:
    """The last thing that the program said itself; make says of each program that fails that it has failed."""
    lines = log.read_text(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not _FAILED.match(line)]
    last = told[-1].strip("= ") if told else "it said nothing"
    return f"ended by {signal.Signals(-code).name}: {last}" if code < 0 else last
