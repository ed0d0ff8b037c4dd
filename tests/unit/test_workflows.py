"""The workflows of GitHub: what they run can be run here, and they may do no more than they need."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+(\.\d+)*")


def jobs(workflow: Path) -> dict[str, dict[str, Any]]:
    """The jobs of a workflow by their names."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return found


def called(job: dict[str, Any]) -> set[str]:
    """The targets of the Makefile that a job runs, those of its matrix too."""
    rows = job.get("strategy", {}).get("matrix", {}).get("include", [])
    found = {row["target"] for row in rows if "target" in row}
    for step in job.get("steps", []):
        found |= called_by(step.get("run", ""))
    return found


def called_by(script: str) -> set[str]:
    """The targets of the Makefile that a script of the shell runs, by the functions of .ci/run too."""
    calls = re.findall(
        r"^\s*(?:timed \w+ make|other|make) (.*)$", script.replace("\\\n", ""), re.MULTILINE
    )
    words = {word for call in calls for word in shlex.split(call)}
    return {word for word in words if re.fullmatch(r"\w[\w.-]*", word)}


def targets() -> set[str]:
    """The targets of the Makefile."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    return {
        name
        for line in lines
        if (match := re.match(r"([\w.-]+( [\w.-]+)*):(?!=)", line))
        for name in match[1].split()
    }


TESTS = [
    "test-unit", "test-plain", "test-connect", "laws", "test-pyspark-4.0", "test-kafka-python-3", "test-iceberg", "test-delta",
    "test-newest", "test-flink", "test-kerberos", "test-debezium", "test-cluster", "test-operating",
]  # fmt: skip
"""The targets that run some tests by themselves."""

ENVIRONMENTS = [".venv/class-archives/spark.jsa"] + [
    f".venv{name}/.ready" for name in ("", "-4.0", "-4.1", "-4.2", "-kafka-python-3", "-flink")
]
"""What they install first."""


def places_of_tests(target: str, arguments: str) -> set[str]:
    """The files and folders of tests that pytest gets from a target with these ARGS; nothing is run."""
    made = [word for each in ENVIRONMENTS for word in ("-o", each)]
    command = ["make", "--dry-run", *made, target, f"ARGS={arguments}"]
    # What the make was told that runs this test would count here too.
    others = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    run = subprocess.run(command, cwd=ROOT, env=others, check=True, capture_output=True, text=True)
    (call,) = re.findall(r"-m pytest .*", run.stdout.replace("\\\n", " "))
    return {word for word in shlex.split(call) if word.startswith("tests/")}


@pytest.mark.parametrize("target", TESTS)
def test_args_name_the_tests_of_a_target(target: str) -> None:
    """Files in ARGS are run in the place of the target's own, and other arguments beside these: never more than was asked for."""
    own = places_of_tests(target, "")

    assert own
    assert places_of_tests(target, "-k planning") == own
    assert places_of_tests(target, "-x tests/unit/test_docs.py") == {"tests/unit/test_docs.py"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_steps_call_targets_of_the_makefile(workflow: Path) -> None:
    """What CI runs, anybody can run; each target is there, those of a matrix too."""
    for job in jobs(workflow).values():
        assert called(job) <= targets()


def test_ci_runs_all_that_a_submission_must_pass() -> None:
    """Every target of .ci/run, those of a list over several lines too."""
    (ci,) = (file for file in WORKFLOWS if file.stem == "ci")
    wanted = called_by((ROOT / ".ci" / "run").read_text(encoding="utf-8"))

    assert {"lint", "site", "test", "test-notebooks", "test-delta"} <= wanted
    assert wanted <= set().union(*map(called, jobs(ci).values()))


def test_a_tag_publishes_nothing_but_a_release() -> None:
    """What a tag starts begins with the checks of the release; each job that publishes waits for them."""
    started = [file.stem for file in WORKFLOWS if "tags:" in file.read_text(encoding="utf-8")]
    assert started == ["release"]

    (release,) = (file for file in WORKFLOWS if file.stem == "release")
    needs = {name: job.get("needs") for name, job in jobs(release).items()}
    assert needs == {
        "build": None,
        "attest": "build",
        "publish": "attest",
        "page": "publish",
        "site": "publish",
    }


@pytest.mark.parametrize(
    "file", WORKFLOWS + ACTIONS, ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_actions_are_pinned(file: Path) -> None:
    """By the commit, which nobody can move, with the version beside it, which Dependabot raises."""
    used = re.findall(r"uses: (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)

    assert used
    assert [name for name in used if not name.startswith("./") and not PINNED.fullmatch(name)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_jobs_may_do_little_and_end(workflow: Path) -> None:
    """A workflow may do nothing by default, each job says what it needs and how long it may take."""
    text = workflow.read_text(encoding="utf-8")

    assert "\npermissions: {}\n" in text
    assert "\nconcurrency:\n" in text
    for name, job in jobs(workflow).items():
        assert "permissions" in job, name
        assert "uses" in job or 0 < job["timeout-minutes"] <= 90, (
            name
        )  # another workflow has its own


INSTALLERS = re.compile(
    r"\b(pip3?|pipx|uv|uvx|npm|npx|apt|apt-get|brew|conda|cargo|go|gem|curl|wget|docker)\b"
)
MAY_BE_USED = {
    "actions/checkout",
    "actions/download-artifact",
    "actions/attest",
    "pypa/gh-action-pypi-publish",
}
"""The actions of jobs that may write or sign: pinned, and none that installs what a later step runs."""


def installing_targets() -> set[str]:
    """The targets of the Makefile that install packages: by the environment that they need, or by targets that they need."""
    needs: dict[str, set[str]] = {}
    for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([\w.-]+(?: [\w.-]+)*):(?!=)([^=]*)$", line):
            for name in match[1].split():
                needs.setdefault(name, set()).update(match[2].split())
    found = {"$(READY)"}
    while more := {name for name, wanted in needs.items() if wanted & found} - found:
        found |= more
    return found


def test_the_makefile_tells_what_installs() -> None:
    """The next test would find nothing else."""
    installing = installing_targets()
    assert {"site", "publish-site", "test", "lint"} <= installing
    assert "push-site" not in installing


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_what_may_write_installs_nothing(workflow: Path) -> None:
    """A package that is installed unpinned could use the token.

    So it is installed in a job that may read only, and what that makes is handed over.
    """
    for name, job in jobs(workflow).items():
        if "write" not in job["permissions"].values() or "uses" in job:
            continue  # a workflow that is called has jobs of its own
        for step in job["steps"]:
            script = step.get("run", "")
            assert not INSTALLERS.search(script), name
            assert not called_by(script) & installing_targets(), name
            assert "uses" not in step or step["uses"].partition("@")[0] in MAY_BE_USED, name


def test_only_the_release_may_sign_and_write() -> None:
    """A change of a stranger runs in CI: there every job may read the contents, and nothing else."""
    (ci,) = (file for file in WORKFLOWS if file.stem == "ci")

    assert {str(job["permissions"]) for job in jobs(ci).values()} == {"{'contents': 'read'}"}
