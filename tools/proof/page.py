"""The page docs/proof.md: what a proof has shown."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.proof.requirements import Outcome, Requirement, not_built, requirements
from tools.proof.results import Ending, Form, Proof, StepResult

MOST_OTHER_WORK = 0.1
"""With more other work on the machine, measured times are not compared with those of a release."""

_FORMS: dict[Form, str] = {
    "short": (
        "This was the **short** form: the long tests run for minutes. In the form of a release (`make proof PROOF=release`) "
        "they run for hours. It also runs the tests that need an environment of their own (Iceberg, Delta Lake, Flink, "
        "Postgres with Debezium, Kerberos, Prometheus), and measures the speed beside Spark's own source and sink."
    ),
    "release": (
        "This was the form of a **release**: every long test runs for an hour or more, and the tests that need an environment "
        "of their own run too."
    ),
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
_OUTCOMES: dict[Outcome, str] = {
    "passed": "hold",
    "failed": "failed",
    "skipped": "skipped",
    "not run": "not tested",
}
_MOST_NAMED = 25
"""More promises than these are counted, and not named."""


def page(proof: Proof) -> str:
    """Its text."""
    return "\n".join(_lines(proof)) + "\n"


def _lines(proof: Proof) -> Iterator[str]:
    yield "# Proof"
    yield ""
    yield "<!-- Made by `make proof`. -->"
    yield ""
    yield from _text(
        "This page says what was tried before a release, and how it ended: all tests, those of each promise among them; mutations of the code, which the unit tests must notice; long tests in which "
        "workers and drivers are killed, and brokers restarted; and the speed. `make proof` repeats it on your machine, and "
        "keeps all logs, histories and numbers in `build/proof`."
    )
    yield from _text(_result(proof))
    yield from _text(_FORMS[proof.form])
    began = next((step.began for step in proof.steps if step.began), "")
    took = _duration(sum(step.seconds for step in proof.steps))
    yield from _text(f"What was tried, and where, on {began}; all steps together took {took}:")
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {what} |" for name, what in proof.about.items())
    yield ""
    yield from _steps(proof)
    yield from _promises(proof.promises)
    yield from _not_built()
    if proof.speed:
        yield from _speed(proof)
    yield from _folder()


def _result(proof: Proof) -> str:
    """How it ended, in two sentences."""
    passed = sum(step.ending == "passed" for step in proof.steps)
    ended = f"**{passed} of {len(proof.steps)} steps passed.**"
    for ending in ("failed", "interrupted", "not run"):
        names = ", ".join(f"`{step.name}`" for step in proof.steps if step.ending == ending)
        ended += f" **{ending.capitalize()}: {names}.**" if names else ""
    counts = Counter(proof.promises.values())
    others = [f"{counts[each]} {name}" for each, name in _OUTCOMES.items() if each != "passed"]
    return (
        f"{ended} Of {len(proof.promises)} promises {counts['passed']} hold; {', '.join(others)}."
    )


def _steps(proof: Proof) -> Iterator[str]:
    yield "## Steps"
    yield ""
    yield "| step | what holds if it passes | how much was run | faults that were injected | result |"
    yield "|---|---|---|---|---|"
    yield from map(_step, proof.steps)
    yield ""
    yield "What they said:"
    yield ""
    for step in proof.steps:
        yield from (f"- `{step.name}`, an earlier run, {_inline(each)}" for each in step.earlier)
        if step.began:
            yield f"- `{step.name}`, {step.began}{_at(step, proof)}: {_said(step)}"
    yield ""
    yield from _text(
        "In `soak`, `kills` and `reruns`, Kafka's own Java client reads the topics that were written, with `isolation.level` = "
        "`read_committed`. It shares no code with this package. What it reads is compared with what was to be written, and "
        "each key must be in the partition where Java's partitioner puts it."
    )


def _step(step: StepResult) -> str:
    faults = ", ".join(f"{count:,} {name}" for name, count in step.faults.items()) or "none"
    took = f"; took {_duration(step.seconds)}" if step.began else ""
    return f"| `{step.name}` | {step.shows} | {step.size}{took} | {faults} | {_mark(step.ending)} |"


def _mark(ending: Ending) -> str:
    return ending if ending == "passed" else f"**{ending}**"


def _said(step: StepResult) -> str:
    """What a step said; whether its numbers may be compared is for the part about the speed."""
    if step.name == "speed" and step.ending == "passed":
        return "see [below](#speed)"
    return _inline(step.said) or step.ending


def _at(step: StepResult, proof: Proof) -> str:
    """The commit, if it is not that of the page."""
    return "" if step.commit == proof.about.get("commit") else f", commit {step.commit}"


def _promises(found: Mapping[str, Outcome]) -> Iterator[str]:
    yield "## Promises"
    yield ""
    yield from _text(
        "Each promise names the tests that hold it, in `tests/requirements.md` and on the page "
        "[when things go wrong](reliability.md). A promise holds if all of its tests passed. One that is not tested names a "
        "test that this form leaves out, or that could not run on this machine."
    )
    yield f"| area | promises | {' | '.join(_OUTCOMES.values())} |"
    yield "|---|---|---|---|---|---|"
    for area, name in _AREAS.items():
        yield _row(name, [how for id_, how in found.items() if id_.startswith(f"{area}-")])
    yield _row("all", list(found.values()))
    yield ""
    by_id = {each.id: each for each in requirements()}
    for how in ("failed", "skipped", "not run"):
        yield from _named(how, [by_id[id_] for id_, each in found.items() if each == how])


def _row(name: str, found: Sequence[Outcome]) -> str:
    counts = Counter(found)
    cells = [str(counts[each]) for each in _OUTCOMES]
    return f"| {' | '.join([name, str(len(found)), *cells])} |"


def _named(how: Outcome, promises: Sequence[Requirement]) -> Iterator[str]:
    """The promises that do not hold, or of which it is not known."""
    if not promises or (how != "failed" and len(promises) > _MOST_NAMED):
        return
    yield f"{_OUTCOMES[how].capitalize()}:"
    yield ""
    yield from (f"- {each.id}: {each.says}" for each in promises)
    yield ""


def _not_built() -> Iterator[str]:
    items = not_built()
    if items:
        yield "## Not built"
        yield ""
        yield "This is planned, and no version has it:"
        yield ""
        yield from items
        yield ""


def _speed(proof: Proof) -> Iterator[str]:
    yield "## Speed"
    yield ""
    other = next((step.other_work for step in proof.steps if step.name == "speed"), 0.0)
    yield from _text(
        "How many times as fast as a plain Python program with the usual libraries each job is, by CPU time, on the machine "
        "above. Noise is the part of it by which single runs differ. "
        f"Other programs took {other:.0%} of the machine's CPU time meanwhile. {_comparison(other)} "
        "[Performance](performance.md) has the comparison with Spark's own source and sink."
    )
    yield "| job | times as fast | noise | last release |"
    yield "|---|---|---|---|"
    is_compared = other <= MOST_OTHER_WORK
    yield from (_job(name, job, is_compared=is_compared) for name, job in proof.speed.items())
    yield ""


def _comparison(other: float) -> str:
    if other > MOST_OTHER_WORK:
        return "That is too much for a comparison with the last release: these numbers are no evidence of the speed."
    return (
        "A job that is slower than in the last release, by more than the noise of both, is marked."
    )


def _job(name: str, job: Mapping[str, Any], *, is_compared: bool) -> str:
    is_noisy = job["judgement"] == "too noisy"
    ratio = "too noisy" if is_noisy else f"{job['ratio']:.1f}"
    ratio += " (slower)" if is_compared and job["judgement"] == "slower" else ""
    before = f"{job['released']:.1f}" if is_compared and job["released"] is not None else ""
    return f"| {name} | {ratio} | {job['noise']:.0%} | {before} |"


def _folder() -> Iterator[str]:
    yield "## What the folder holds"
    yield ""
    yield "| in `build/proof/<version>` | |"
    yield "|---|---|"
    yield "| `proof.json` | everything on this page, and more, as data |"
    yield "| `logs` | what each step printed |"
    yield "| `verdicts` | how each long test ended, and its faults |"
    yield "| `histories` | the messages that the Java client read, one a line: partition, partition by Java, offset, timestamp, key and value in Base64 |"
    yield "| `tests` | the outcome of each test (JUnit) |"
    yield "| `speed.json`, `bench.json` | what was measured in each run |"


def _text(text: str) -> Iterator[str]:
    """A paragraph, in lines."""
    yield from textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)
    yield ""


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
