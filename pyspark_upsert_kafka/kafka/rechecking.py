"""Looking again: one answer of a broker proves nothing about what is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from pyspark_upsert_kafka.core.data_loss import RECHECK_INTERVAL_S, is_certain, missing_since

T = TypeVar("T")


def recheck_until_certain(
    found: T, missing: Callable[[T], Iterable[Hashable]], look: Callable[[], T]
) -> T:
    """What the first look has found that misses nothing, or only what every look has missed for long.

    Args:
        found: What a look has found just now.
        missing: What should have been found and was not.
        look: Looks again.
    """
    since: dict[Hashable, float] = {}
    while True:
        now = time.monotonic()
        since = missing_since(since, missing(found), now)
        if is_certain(since, now):
            return found
        time.sleep(RECHECK_INTERVAL_S)
        found = look()


def whether_lost(loss: object | None) -> list[str]:
    """What a look misses that gives the loss which it has found: ``missing`` of `recheck_until_certain`."""
    return [] if loss is None else ["lost"]
