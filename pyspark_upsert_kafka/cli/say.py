"""Talks to the person at the terminal."""

from __future__ import annotations

import sys


def say(text: str = "") -> None:
    """Prints now, not when a buffer is full: a person waits."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
