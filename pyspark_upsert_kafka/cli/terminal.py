"""Output for the person at the terminal."""

from __future__ import annotations

import sys


def echo(text: str = "") -> None:
    """Prints a line at once, not when a buffer is full: a person waits for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
