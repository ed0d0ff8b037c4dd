"""The last line of a long test, which shows at once how it ended; and the same as data, for `make proof`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = "PROOF_FOLDER"
"""The environment variable that names the folder of a proof."""


@dataclass(frozen=True)
class Held:
    """What a proof says when it holds.

    Args:
        said: In a line, what was done and seen.
        faults: The faults that were injected, and how often each.
    """

    said: str
    faults: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """How a proof ended.

    Args:
        name: What is proved.
        passed: Whether it holds.
        said: What was done and seen, or what is wrong.
        seconds: How long it took.
        faults: The faults that were injected, and how often each.
    """

    name: str
    passed: bool
    said: str
    seconds: float
    faults: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}: {'PASSED' if self.passed else 'FAILED'} {self.said}"


def verdict(name: str, proof: Callable[[], Held], about: str = "") -> int:
    """Runs a proof and prints how it ended; returns the exit code.

    Args:
        name: What is proved.
        proof: Returns what is said when it holds, and raises what is wrong.
        about: What is said of a failure besides.
    """
    begin = time.monotonic()
    try:
        held = proof()
    except Exception as error:  # noqa: BLE001 - whatever ends it is its verdict
        said = f"{type(error).__name__}: {error}{about}"
        ended = Verdict(name, passed=False, said=said, seconds=time.monotonic() - begin)
    else:
        seconds = time.monotonic() - begin
        ended = Verdict(name, passed=True, said=held.said, seconds=seconds, faults=held.faults)
    print(ended, flush=True)
    folder = proof_folder("verdicts")
    if folder is not None:
        (folder / f"{name}.json").write_text(json.dumps(asdict(ended), indent=1) + "\n")
    return int(not ended.passed)


def proof_folder(part: str) -> Path | None:
    """A part of the folder of the proof that this program belongs to; None = it belongs to none."""
    given = os.environ.get(FOLDER)
    if not given:
        return None
    folder = Path(given) / part
    folder.mkdir(parents=True, exist_ok=True)
    return folder
