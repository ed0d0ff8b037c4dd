"""What a proof has found: proof.json has it as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tools.proof.requirements import Outcome

Form = Literal["short", "release"]
Ending = Literal["passed", "failed", "interrupted", "not run"]


@dataclass(frozen=True)
class StepResult:
    """How a step ended.

    Args:
        name: Its name.
        shows: What holds if it passes.
        size: How much of it is run.
        ending: How it ended.
        said: What was done and seen, or what is wrong.
        began: When it began.
        commit: The commit that was tried.
        seconds: How long it took.
        other_work: What part of the machine's CPU time other programs took meanwhile.
        faults: The faults that were injected, and how often each.
        earlier: When it was run before without passing, and what it said then.
    """

    name: str
    shows: str
    size: str
    ending: Ending = "not run"
    said: str = ""
    began: str = ""
    commit: str = ""
    seconds: float = 0.0
    other_work: float = 0.0
    faults: Mapping[str, int] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """All that was found.

    Args:
        form: The form.
        about: Versions and the machine.
        steps: All steps of the form, in order.
        promises: Whether each promise holds, by its id.
        speed: What was measured of each job.
    """

    form: Form
    about: Mapping[str, str]
    steps: tuple[StepResult, ...]
    promises: Mapping[str, Outcome] = field(default_factory=dict)
    speed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def save(self, file: Path) -> None:
        """Writes it."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Proof:
        """Reads what `save` wrote."""
        found = json.loads(file.read_text(encoding="utf-8"))
        steps = [{**step, "earlier": tuple(step["earlier"])} for step in found["steps"]]
        return cls(**{**found, "steps": tuple(StepResult(**step) for step in steps)})
