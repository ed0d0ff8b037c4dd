"""What the time is, and how time passes: the module ``time``, or a clock that a test moves."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A clock of seconds that only rise."""

    def monotonic(self) -> float:
        """The time."""

    def sleep(self, seconds: float, /) -> None:
        """Returns when so many seconds have passed."""
