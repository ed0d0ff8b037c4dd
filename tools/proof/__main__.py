"""`make proof`: what is known of a release, in one folder: build/proof/<version>.

It runs the tests that the requirements name, the long tests with their faults, and the benchmarks, one after the other. The folder has
the versions, the log and the verdict of each step, the histories that Kafka's own Java client read, and the measured times. In the
end the page docs/proof.md is made from that. `make proof` takes a quarter of an hour, `make proof PROOF=release` hours. The exit code
is 0 only if every step passed.

``ARGS="--only kills speed"`` runs some steps again, of a proof of the same package in the same form. The page says what failed before.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import pyspark_upsert_kafka
from tools.proof.machine import PACKAGE, about
from tools.proof.page import Proof, StepResult, page
from tools.proof.requirements import outcome, outcomes, requirements
from tools.proof.steps import REPORT, SPEED, Form, Step, steps
from tools.verdict import FOLDER, Verdict

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "proof.md"


def main(arguments: Sequence[str]) -> int:
    """Runs the steps and writes the page; returns the exit code."""
    parser = argparse.ArgumentParser("tools.proof")
    parser.add_argument("form", choices=["short", "release"])
    parser.add_argument("--only", nargs="+", default=[], help="run only these steps again")
    given = parser.parse_args(arguments)
    proof = run(given.form, given.only)
    PAGE.write_text(page(proof), encoding="utf-8")
    return int(not all(step.verdict.passed for step in proof.steps))


def run(form: Form, again: Sequence[str]) -> Proof:
    """Runs the steps of a form into a folder that is made anew, or some again.

    Raises:
        SystemExit: There is nothing of which they could be run again.
    """
    folder = ROOT / "build" / "proof" / pyspark_upsert_kafka.__version__
    here = about()
    before = _before(folder / "proof.json", form, here[PACKAGE]) if again else {}
    if not again:
        shutil.rmtree(folder, ignore_errors=True)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    results = []
    for step in steps(form, folder):
        done = before.get(step.name)
        if done is None or step.name in again:
            done = _run(step, folder, done)
        results.append(done)
    speed = folder / SPEED
    proof = Proof(
        form=form,
        about=here,
        steps=tuple(results),
        requirements=_requirements(folder / REPORT),
        speed=json.loads(speed.read_text())["jobs"] if speed.exists() else {},
    )
    (folder / "proof.json").write_text(json.dumps(asdict(proof), indent=1) + "\n")
    (folder / "proof.md").write_text(page(proof), encoding="utf-8")
    return proof


def _before(file: Path, form: Form, package: str) -> dict[str, StepResult]:
    """The steps of a proof, by their names."""
    given = json.loads(file.read_text()) if file.exists() else {"form": None, "about": {}}
    if given["form"] != form or given["about"].get(PACKAGE) != package:
        sys.exit(f"{file} has no proof of this package in this form: run all steps first.")
    steps = [{**step, "verdict": Verdict(**step["verdict"])} for step in given["steps"]]
    return {step["name"]: StepResult(**step) for step in steps}


def _run(step: Step, folder: Path, before: StepResult | None) -> StepResult:
    """Runs a step, perhaps again; a failure before is kept."""
    print(f"proof: {step.name}, {step.size} ...", flush=True)
    began = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    earlier = before.earlier if before else ()
    if before and not before.verdict.passed:
        earlier = (*earlier, before.verdict.said)
    (folder / "verdicts" / f"{step.name}.json").unlink(missing_ok=True)
    verdict = _verdict(step, folder)
    print(f"proof: {verdict}", flush=True)
    return StepResult(step.name, step.shows, step.size, began, verdict, earlier)


def _verdict(step: Step, folder: Path) -> Verdict:
    """Runs a step, and reads how it ended; one that says nothing has passed if its exit code is 0."""
    log = folder / "logs" / f"{step.name}.log"
    path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT)])
    environment = {**os.environ, FOLDER: str(folder), "PYTHONPATH": path}
    begin = time.monotonic()
    with log.open("wb") as output:
        done = subprocess.run(
            step.command, cwd=ROOT, env=environment, stdout=output, stderr=output, check=False
        )
    said = folder / "verdicts" / f"{step.name}.json"
    if said.exists():
        return Verdict(**json.loads(said.read_text()))
    lines = log.read_text(errors="replace").splitlines() or ["it said nothing"]
    return Verdict(step.name, not done.returncode, lines[-1].strip("= "), time.monotonic() - begin)


def _requirements(report: Path) -> dict[str, str]:
    """Whether each requirement holds, by its id."""
    found = outcomes(report) if report.exists() else {}
    return {each.id: outcome(each, found) for each in requirements()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
