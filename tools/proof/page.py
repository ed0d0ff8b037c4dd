"""The page docs/proof.md: what a proof has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.proof.steps import Form
from tools.verdict import Verdict

_FORMS: dict[Form, str] = {
    "short": (
        "This was the **short** form, of a quarter of an hour on a quiet machine: few runs, and only the tests that need no\n"
        "broker. The form of a release takes hours."
    ),
    "release": "This was the form of a release.",
}
_AREAS = {
    "TABLE": "the table",
    "CHANGE": "changes",
    "READ": "reading",
    "WRITE": "writing",
    "FORMAT": "formats",
    "ERROR": "errors and secrets",
    "AROUND": "around the table",
    "FAULT": "[when things go wrong](reliability.md)",
}
_OUTCOMES = ("passed", "failed", "skipped", "not run")


@dataclass(frozen=True)
class StepResult:
    """A step that was run.

    Args:
        name: Its name.
        shows: What holds if it passes.
        size: How much of it was run.
        began: When it began.
        verdict: How it ended.
        earlier: What it said when it failed before, and was run again.
    """

    name: str
    shows: str
    size: str
    began: str
    verdict: Verdict
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """All that was found.

    Args:
        form: The form.
        about: Versions and the machine.
        steps: What was run.
        requirements: Whether each requirement holds, by its id.
        speed: What was measured of each job.
    """

    form: Form
    about: Mapping[str, str]
    steps: tuple[StepResult, ...]
    requirements: Mapping[str, str]
    speed: Mapping[str, Mapping[str, Any]]


def page(proof: Proof) -> str:
    """Its text."""
    return "\n".join(_lines(proof)) + "\n"


def _lines(proof: Proof) -> Iterator[str]:
    yield "# Proof"
    yield ""
    yield "<!-- Made by `make proof`. -->"
    yield ""
    yield "This page shows what was tried before a release, and how it ended: long tests in which processes are killed and"
    yield "brokers restarted, the tests of each promise, and the speed. `make proof` repeats it on your machine, and keeps all"
    yield "logs and numbers in `build/proof`."
    yield ""
    yield _FORMS[proof.form]
    yield ""
    yield f"What was tried, and where, on {proof.steps[0].began}:"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {what} |" for name, what in proof.about.items())
    yield ""
    yield from _verdicts(proof)
    yield from _requirements(proof)
    if proof.speed:
        yield from _speed(proof)
    yield from _folder()


def _verdicts(proof: Proof) -> Iterator[str]:
    yield "## Verdicts"
    yield ""
    yield "| step | what holds if it passes | how much was run | faults that were injected | verdict |"
    yield "|---|---|---|---|---|"
    for step in proof.steps:
        ended = step.verdict
        faults = ", ".join(f"{count:,} {name}" for name, count in ended.faults.items()) or "none"
        mark = "passed" if ended.passed else "**FAILED**"
        about = f"{step.size}; took {_duration(ended.seconds)}"
        yield f"| `{step.name}` | {step.shows} | {about} | {faults} | {mark} |"
    yield ""
    yield "What they said:"
    yield ""
    for step in proof.steps:
        yield f"- `{step.name}`, {step.began}: {_inline(step.verdict.said)}"
        for said in step.earlier:
            yield f"- `{step.name}`, an earlier run, **FAILED**: {_inline(said)}"
    yield ""
    yield "In `soak`, `kills` and `reruns`, the topics that were written are read by Kafka's own Java client with"
    yield "`isolation.level` = `read_committed`. It shares no code with what wrote them. It also checks that each key is in the"
    yield "partition where Java's partitioner puts it. What it read is compared with what was asked for."
    yield ""


def _requirements(proof: Proof) -> Iterator[str]:
    yield "## Requirements"
    yield ""
    yield "Each promise names the tests that hold it, in `tests/requirements.md` and on the page"
    yield "[when things go wrong](reliability.md). A promise has passed if all of its tests passed; it was not run if this form"
    yield "leaves one of them out."
    yield ""
    yield "| area | promises | passed | failed | skipped | not run |"
    yield "|---|---|---|---|---|---|"
    for area, name in _AREAS.items():
        of_area = [how for id_, how in proof.requirements.items() if id_.startswith(f"{area}-")]
        yield _row(name, of_area)
    yield _row("all", list(proof.requirements.values()))
    yield ""
    failed = [id_ for id_, how in proof.requirements.items() if how == "failed"]
    if failed:
        yield f"**Failed: {', '.join(failed)}.**"
        yield ""


def _row(name: str, found: list[str]) -> str:
    counts = Counter(found)
    cells = [str(counts[each]) for each in _OUTCOMES]
    return f"| {' | '.join([name, str(len(found)), *cells])} |"


def _speed(proof: Proof) -> Iterator[str]:
    yield "## Speed"
    yield ""
    yield "How many times as fast as a plain Python program with the usual libraries each job is, by CPU time, on the machine"
    yield "above. The load average says how much other work it did meanwhile, which makes the numbers lower and the noise"
    yield "larger. [Performance](performance.md) has the comparison with Spark's own source and sink, on a quiet machine."
    yield ""
    yield "| job | times as fast | noise |"
    yield "|---|---|---|"
    for name, job in proof.speed.items():
        yield f"| {name} | {job['ratio']:.1f} | {job['noise']:.0%} |"
    yield ""


def _folder() -> Iterator[str]:
    yield "## What the folder holds"
    yield ""
    yield "| in `build/proof/<version>` | |"
    yield "|---|---|"
    yield "| `proof.json` | everything on this page, and more, as data |"
    yield "| `logs` | what each step printed |"
    yield "| `verdicts` | how each long test ended, and its faults |"
    yield "| `histories` | the messages that the Java client read, one a line: partition, partition by Java, offset, timestamp, key and value in Base64 |"
    yield "| `tests.xml` | the outcome of each test |"
    yield "| `speed.json` | the CPU time of each run |"


def _duration(seconds: float) -> str:
    """A duration as people say it.

    >>> _duration(48.3), _duration(150), _duration(7300)
    ('48 s', '2.5 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _inline(text: str) -> str:
    """A text in one line, which no mark of Markdown changes."""
    shown = " ".join(text.split())
    shown = shown if len(shown) < 600 else f"{shown[:600]} ..."
    return shown.replace("|", "\\|").replace("<", "&lt;")
