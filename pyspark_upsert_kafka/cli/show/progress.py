"""The progress of a read on a terminal: a bar that disappears when the read is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_BEGINS_AFTER_S = 0.5
"""Seconds; a read that is done sooner needs no bar."""


class ReadProgress:
    """Shows how many offsets are read, if that takes long and standard error is a terminal.

    Args:
        offsets: How many there are.
        prints: Whether rows are printed meanwhile; if they go to a terminal, there is no bar.
        clock: Says how many seconds have passed, since any moment.
    """

    def __init__(
        self, offsets: int, *, prints: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._offsets, self._prints, self._clock = offsets, prints, clock
        self._began = clock()
        self._read = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def advance(self, offsets: int) -> None:
        """Adds to the offsets that are read."""
        self._read += offsets
        if self._bar is None and self._is_wanted():
            self._bar = _bar()
            self._task = self._bar.add_task("reading", total=self._offsets)
            self._bar.start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._read)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _is_wanted(self) -> bool:
        if not sys.stderr.isatty() or (self._prints and sys.stdout.isatty()):
            return False
        return self._clock() - self._began > _BEGINS_AFTER_S


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("offsets"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
