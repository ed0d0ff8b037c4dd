"""Checking again before data counts as lost: one answer of a broker proves nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pyspark_upsert_kafka.core.clock import Clock
from pyspark_upsert_kafka.core.positions.data_loss import is_certain, missing_since

T = TypeVar("T")
L = TypeVar("L")


@dataclass(frozen=True)
class LossChecks:
    """When it is checked whether data is lost, and how often before that is certain.

    Args:
        clock: Tells the time, and waits.
        stall_s: After so long without a message it is checked whether there are any left to read, in seconds.
        certain_after_s: What all checks over so many seconds have not found is lost.
        interval_s: The pause between two checks, in seconds.
    """

    clock: Clock
    stall_s: float = 5.0
    certain_after_s: float = 10.0
    interval_s: float = 1.0

    def until_certain(
        self, found: T, missing: Callable[[T], Iterable[Hashable]], check: Callable[[], T]
    ) -> T:
        """The result of the first check that misses nothing, or only what every check has missed for long.

        Args:
            found: The result of a first check.
            missing: What is missing from a result.
            check: Checks again.
        """
        since: dict[Hashable, float] = {}
        while True:
            now = self.clock.monotonic()
            since = missing_since(since, missing(found), now)
            if is_certain(since, now, self.certain_after_s):
                return found
            self.clock.sleep(self.interval_s)
            found = check()

    def confirmed_loss(self, check: Callable[[], L | None]) -> L | None:
        """The loss that every check has found for long enough; None = one check has found no loss."""
        return self.until_certain(check(), lambda loss: [] if loss is None else ["loss"], check)


LOSS_CHECKS = LossChecks(time)
"""Those of whoever reads."""
