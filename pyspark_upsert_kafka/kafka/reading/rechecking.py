"""Checking again before data counts as lost: one answer of a broker proves nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from pyspark_upsert_kafka.core.positions.data_loss import (
    RECHECK_INTERVAL_S,
    is_certain,
    missing_since,
)

T = TypeVar("T")
L = TypeVar("L")


def recheck_until_certain(
    found: T, missing: Callable[[T], Iterable[Hashable]], check: Callable[[], T]
) -> T:
    """The result of the first check that misses nothing, or only what every check has missed for long.

    Args:
        found: The result of a first check.
        missing: What is missing from a result.
        check: Checks again.
    """
    since: dict[Hashable, float] = {}
    while True:
        now = time.monotonic()
        since = missing_since(since, missing(found), now)
        if is_certain(since, now):
            return found
        time.sleep(RECHECK_INTERVAL_S)
        found = check()


def confirmed_loss(check: Callable[[], L | None]) -> L | None:
    """The loss that every check has found for long enough; None = one check has found no loss."""
    return recheck_until_certain(check(), lambda loss: [] if loss is None else ["loss"], check)
