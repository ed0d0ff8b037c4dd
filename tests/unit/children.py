"""A process of its own for what may end one, or eat the machine's memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from dataclasses import dataclass

_SECONDS = 300


@dataclass(frozen=True)
class Child:
    """What became of a process.

    Args:
        code: Its exit code; below zero = killed by that signal.
        said: What it printed.
        wrong: What it printed as errors.
    """

    code: int
    said: str
    wrong: str


def run(program: str, *, memory: int | None = None) -> Child:
    """Runs a Python program of a few lines, with so many bytes of address space at most."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        preexec_fn=limit,
        check=False,
    )
    return Child(done.returncode, done.stdout, done.stderr)
