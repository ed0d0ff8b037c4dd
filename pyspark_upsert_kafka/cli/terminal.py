"""Standard output and standard error, and the signals that end a command: Ctrl-C, SIGTERM and SIGHUP.

Python raises KeyboardInterrupt in whatever runs just then. In a destructor, or in a callback of a library in C, it is
dropped, or becomes another error: so it is raised again until it has ended the command.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark_upsert_kafka.core.errors import UpsertKafkaError

_PIECE = 32 * 1024
"""Characters; half of what a pipe holds."""

_STANDARD_ERROR = 2


class _OutputError(UpsertKafkaError):
    """Standard output does not take what is written."""


def echo(text: str = "") -> None:
    """Prints a line and flushes it: a person waits for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_text(text: str) -> None:
    """Writes a text in pieces: of one large write to a closed pipe, Python reports nothing.

    Raises:
        BrokenPipeError: Nobody reads any more.
        UpsertKafkaError: The disk is full, or the encoding lacks a character.
    """
    try:
        for at in range(0, len(text), _PIECE):
            sys.stdout.write(text[at : at + _PIECE])
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise _OutputError(f"Standard output cannot be written: {error.strerror}.") from None
    except UnicodeEncodeError as error:
        letter = ascii(error.object[error.start])
        raise _OutputError(
            f"Standard output has the encoding {error.encoding!r}, which has no {letter}: "
            "set PYTHONIOENCODING=utf-8, or give --output json, which escapes it."
        ) from None


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


@contextmanager
def standard_error_to(log: Path) -> Iterator[None]:
    """Redirects the standard error of processes that are started within the block, for their whole life.

    A setting of log4j is not enough: the JVM and the launch script print before they read it.
    """
    sys.stderr.flush()
    terminal = os.dup(_STANDARD_ERROR)
    with log.open("wb") as file:
        os.dup2(file.fileno(), _STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(terminal, _STANDARD_ERROR)
        os.close(terminal)


def drop_output() -> None:
    """Drops what standard output still buffers: to write it would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_AGAIN_S = 0.5
"""KeyboardInterrupt is raised again after so long: a program that is still running then has dropped it, since a client closes sooner."""

_AT_ONCE_S = 0.01


class Interrupts:
    """Raises KeyboardInterrupt at the first Ctrl-C, and again if it was dropped, until it is `settled`; a second Ctrl-C changes nothing."""

    def __init__(self) -> None:
        self.received = self._has_begun = self._is_settled = False
        self._again_s = 0.0

    def begin(self, *, of_client: bool) -> None:
        """Handles Ctrl-C from now on, unless it is ignored, as in a program in the background.

        Args:
            of_client: Whether the main thread calls a Kafka client. Its callbacks drop KeyboardInterrupt silently, so it is
                raised again every half second. In other commands it is raised again only if Python reports that it was
                dropped, since it may take long to stop a JVM or a broker.
        """
        self._again_s = _AGAIN_S if of_client else 0.0
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._has_begun = True
            signal.signal(signal.SIGALRM, self._again)
            signal.signal(signal.SIGINT, self._first)
            sys.unraisablehook = self._unraisable

    def settled(self) -> None:
        """The interrupt has done its work: what follows is not interrupted."""
        self._is_settled = True
        if self._has_begun:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            # If it came in the exec() of a text, such as dataclasses have, Python would end `-m` by the signal, whatever
            # the exit code: it remembers how the last exec() of a text ended.
            exec("")  # noqa: S102

    def _first(self, _: int, __: FrameType | None) -> None:
        if not self.received:
            self.received = True
            signal.setitimer(signal.ITIMER_REAL, self._again_s, self._again_s)
            raise KeyboardInterrupt

    def _again(self, _: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    def _unraisable(self, dropped: Any) -> None:
        if not self.received:
            sys.__unraisablehook__(dropped)
        elif dropped.exc_type is KeyboardInterrupt and not (self._again_s or self._is_settled):
            signal.setitimer(signal.ITIMER_REAL, _AT_ONCE_S)


interrupts = Interrupts()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block as an exception does, so that the terminal gets its cursor back.

    The exit code is the one that shells use: 143 or 129. A signal that is ignored, as under ``nohup``, stays ignored. The signal may
    have ended other processes too, such as a JVM: an error that follows from that, while the block ends, is not reported.
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
