"""Output for the person at the terminal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STANDARD_ERROR = 2


def echo(text: str = "") -> None:
    """Prints a line at once, not when a buffer is full: a person waits for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def open_standard_error() -> None:
    """Drops what is written to a standard error that was closed before Python began (``2>&-``).

    Its number would be that of the next file or connection, and libraries in C write to it.
    """
    if sys.stderr is None:
        dropped = os.open(os.devnull, os.O_WRONLY)
        if dropped != _STANDARD_ERROR:
            os.dup2(dropped, _STANDARD_ERROR)
            os.close(dropped)
        sys.stderr = os.fdopen(_STANDARD_ERROR, "w", closefd=False)


def drop_output() -> None:
    """Drops what is still buffered of standard output: it would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is within as an exception does, so that the terminal gets its cursor back.

    The exit code is that of shells: 143 and 129. A signal that is ignored, as by ``nohup``, stays so. It may have ended other
    processes too, such as a JVM: what fails on the way out, because they are gone, is no error of its own.
    """
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def end(number: int, _: FrameType | None) -> None:
        for each in taken:  # a second one must not cut short what the first one began
            signal.signal(each, signal.SIG_IGN)
        received.append(128 + number)
        sys.exit(received[0])

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    except Exception:
        if not received:
            raise
        sys.exit(received[0])
    finally:
        for number in taken:
            signal.signal(number, before[number])
