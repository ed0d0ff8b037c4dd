"""When a producer that waited in a pool looks up the partitions of its topics again.

The number of partitions decides where a key goes, and clients keep it for five minutes. After a topic has grown, two
producers that disagree would write changes of one key to two partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 1.0
"""Seconds between two lookups for each topic: so a producer asks about one topic a second at most."""


class PartitionLookups:
    """Remembers when a producer looked up the partitions of its topics.

    Args:
        topics: How many topics.
        clock: Seconds that only rise.
    """

    def __init__(self, topics: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = topics * _EVERY_S, clock
        self._last_s = clock()

    @property
    def is_due(self) -> bool:
        """Whether the last lookup was so long ago that the next task needs another one."""
        return self._clock() - self._last_s >= self._every_s

    def note(self) -> None:
        """Takes note of a lookup."""
        self._last_s = self._clock()
