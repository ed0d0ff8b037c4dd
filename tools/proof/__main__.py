"""`make proof`: what is known of a release, in one folder: build/proof/<version>.

It runs all tests of this environment, what `make test` leaves out too, the long tests with their faults, and the benchmarks, one after the other. The folder has the
versions, the log and the verdict of each step, the histories that Kafka's own Java client read, and the measured times. After each
step proof.json and proof.md in the folder say what is known so far. When all steps were run, the page becomes docs/proof.md. The
exit code is 0 only if every step passed.

``ARGS="--only kills speed"`` runs some steps again, or those that an interruption has left out, of a proof of the same package on
the same machine in the same form. The page says what failed before.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from tools.proof.machine import PAGE, OtherWork, about, commit, differences, lacks, release
from tools.proof.page import page
from tools.proof.reports import outcomes
from tools.proof.requirements import outcome, requirements
from tools.proof.results import Form, Proof, StepResult
from tools.proof.running import run
from tools.proof.steps import SPEED, Step, steps

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    """Runs the steps and writes the page; returns the exit code."""
    parser = argparse.ArgumentParser("tools.proof")
    parser.add_argument("form", choices=["short", "release"])
    parser.add_argument("--only", nargs="+", default=[], help="run only these steps again")
    given = parser.parse_args(arguments)
    missing = lacks()
    if missing:
        sys.exit(missing)
    # Also if a shell has started this in the background, where it and all steps would ignore Ctrl-C.
    for interruption in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interruption, signal.default_int_handler)
    return prove(given.form, given.only, ROOT / "build" / "proof" / release(), ROOT / PAGE)


def prove(form: Form, only: Sequence[str], folder: Path, target: Path) -> int:
    """Runs the steps of a form into a folder that is made anew, or some again.

    Args:
        form: The form.
        only: The names of steps to run again; none = all are run.
        folder: The folder.
        target: Where the page goes when all steps were run.

    Raises:
        SystemExit: There is nothing of which they could be run again.
    """
    planned = list(steps(form, folder))
    proof = before(folder / "proof.json", form, only, planned) if only else new(form, planned)
    if not only:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for place, step in enumerate(planned):
        if only and step.name not in only:
            continue
        result = again(step, folder, proof.steps[place])
        proof = replace(proof, steps=_with(proof.steps, place, result))
        proof = known(proof, planned, folder)
        proof.save(folder / "proof.json")
        (folder / "proof.md").write_text(page(proof), encoding="utf-8")
        if result.ending == "interrupted":
            break
    return _end(proof, folder, target)


def new(form: Form, planned: Sequence[Step]) -> Proof:
    """A proof of which nothing was run yet."""
    return Proof(form, about(), tuple(StepResult(s.name, s.shows, s.size) for s in planned))


def before(file: Path, form: Form, only: Sequence[str], planned: Sequence[Step]) -> Proof:
    """The proof of which some steps are run again.

    Raises:
        SystemExit: There is no such step, or it is a proof of another package, form, version or machine.
    """
    names = [step.name for step in planned]
    unknown = [name for name in only if name not in names]
    if unknown:
        sys.exit(f"No such step: {', '.join(unknown)}. This form has {', '.join(names)}.")
    if not file.exists():
        sys.exit(f"There is no {file}: run all steps first.")
    proof = Proof.load(file)
    differ = differences(proof.about, about())
    if proof.form != form:
        differ = [f"form: {proof.form} before, {form} now"]
    elif [step.name for step in proof.steps] != names:
        differ = ["steps were added or left out"]
    if differ:
        sys.exit(f"{file} is no proof of what is here; run all steps. {'; '.join(differ)}.")
    return proof


def again(step: Step, folder: Path, earlier: StepResult) -> StepResult:
    """Runs a step, perhaps not for the first time: what did not pass before is kept."""
    print(f"proof: {step.name}, {step.size} ...", flush=True)
    told = earlier.earlier
    if earlier.ending in ("failed", "interrupted"):
        told = (*told, f"{earlier.began}, {earlier.ending}: {earlier.said}".rstrip(": "))
    began = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    tried, other, begin = commit(), OtherWork(), time.monotonic()
    ended = run(step, folder)
    print(f"proof: {step.name}: {ended.ending.upper()} {ended.said}", flush=True)
    return StepResult(
        name=step.name,
        shows=step.shows,
        size=step.size,
        ending=ended.ending,
        said=ended.said,
        began=began,
        commit=tried,
        seconds=time.monotonic() - begin,
        other_work=other.share(),
        faults=ended.faults,
        earlier=told,
    )


def known(proof: Proof, planned: Sequence[Step], folder: Path) -> Proof:
    """A proof with what tests and measurements have shown so far."""
    tests = outcomes(planned)
    speed = folder / SPEED
    return replace(
        proof,
        promises={each.id: outcome(each, tests) for each in requirements()},
        speed=json.loads(speed.read_text())["jobs"] if speed.exists() else {},
    )


def _with(
    results: tuple[StepResult, ...], place: int, result: StepResult
) -> tuple[StepResult, ...]:
    return (*results[:place], result, *results[place + 1 :])


def _end(proof: Proof, folder: Path, target: Path) -> int:
    """Writes the page of a proof that is complete, says what is left of another one, and returns the exit code."""
    left = [step.name for step in proof.steps if step.ending != "passed"]
    print(f"proof: see {folder / 'proof.md'}")
    if any(not step.began or step.ending == "interrupted" for step in proof.steps):
        print(
            f'proof: not complete, {target.name} stays; ARGS="--only {" ".join(left)}" runs the rest'
        )
    else:
        target.write_text(page(proof), encoding="utf-8")
    return int(any(step.ending != "passed" for step in proof.steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
