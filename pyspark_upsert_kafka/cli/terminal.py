"""Output for the person at the terminal."""

from __future__ import annotations

import sys


def printable(text: str) -> str:
    r"""The text with what a terminal would obey, as an escape, spelt out.

    >>> printable("a" + chr(27) + "[2J")
    'a\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def echo(text: str = "") -> None:
    """Prints a line at once, not when a buffer is full: a person waits for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
