"""A clock for tests."""

from __future__ import annotations


class MovingClock:
    """A clock that waits move, and a test.

    Args:
        now: The time.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now, self.waits, self.waited = now, 0, 0.0

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Some of it passes."""
        self.now, self.waits, self.waited = (
            self.now + seconds,
            self.waits + 1,
            self.waited + seconds,
        )
