"""What the time is, how it passes, and how long is waited between two attempts of a request."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


def now_ms() -> int:
    """The time now, in ms since the epoch."""
    return int(time.time() * 1000)


class Clock(Protocol):
    """A clock of seconds that only rise: the module ``time``, or one that a test moves."""

    def monotonic(self) -> float:
        """The time."""

    def sleep(self, seconds: float, /) -> None:
        """Returns when so many seconds have passed."""


_JITTER = 0.2
"""As in Kafka's clients (``CommonClientConfigs.RETRY_BACKOFF_JITTER``): tasks that failed together do not ask in step."""

_MOST_DOUBLINGS = 30


@dataclass(frozen=True)
class Backoff:
    """Pauses that double up to a bound, each 20 % shorter or longer at random.

    Args:
        first_s: The first pause, in seconds.
        most_s: The bound, in seconds; a pause may be 20 % longer.
        random: Gives numbers from 0 to 1.

    >>> [Backoff(0.1, 1.0, random=lambda: 0.5).pause_s(failed) for failed in (0, 1, 2, 9)]
    [0.1, 0.2, 0.4, 1.0]
    """

    first_s: float
    most_s: float
    random: Callable[[], float] = random.random

    def pause_s(self, failed: int) -> float:
        """The pause after an attempt, in seconds.

        Args:
            failed: How many attempts had failed before it.
        """
        pause_s = min(self.first_s * 2.0 ** min(failed, _MOST_DOUBLINGS), self.most_s)
        return pause_s * (1 - _JITTER + 2 * _JITTER * self.random())
