"""How far a micro-batch reads so that no partition runs ahead of the others in time: Flink's watermark alignment.

Spark has one watermark for all partitions, the latest time seen less a delay, and drops what is older: a
partition that is read faster than another makes the rows of the other late. Flink holds those splits back whose
watermark is too far ahead of the slowest one's (FLIP-182, FLIP-217); here a micro-batch ends at one time in all
partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition

_BEFORE_ALL = -2
"""No message is as early as that: one without a timestamp has -1."""

_AFTER_ALL = 2**62

FirstAfter = Callable[[int], Mapping[TopicPartition, int]]
"""The first offset in each partition of a message later than a time (ms since the epoch); without one, the latest offset."""


class Alignment:
    """Ends the micro-batches of a query at one time in all partitions.

    The clock of a partition is the latest timestamp before its position, as for Flink, so that messages
    out of order block no partition for ever. A batch reads up to the earliest time at which any clock would move, and
    ``max_drift_ms`` further.

    Args:
        max_drift_ms: How far a batch may read past the slowest partition that has data, in ms; at least 1.
        near: Where the search for a time begins in the first batch (ms since the epoch); any time gives the same result.
    """

    def __init__(self, max_drift_ms: int, near: int) -> None:
        self._max_drift_ms, self._near = max_drift_ms, near

    def ends(
        self, begin: Positions, reachable: Positions, first_after: FirstAfter
    ) -> dict[TopicPartition, int]:
        """Where the next batch ends in each partition; it makes progress if there is anything to read.

        Args:
            begin: Where reading is now.
            reachable: Where it may end at most; a partition with nothing to read delays no other one.
            first_after: Asks the brokers.
        """
        waiting = {tp: end for tp, end in reachable.items() if end > begin[tp]}
        if not waiting:
            return dict(reachable)

        @cache
        def ends_at(time: int) -> dict[TopicPartition, int]:
            first = first_after(time)
            return {tp: max(begin[tp], min(end, first[tp])) for tp, end in waiting.items()}

        def makes_progress(time: int) -> bool:
            return any(end > begin[tp] for tp, end in ends_at(time).items())

        slowest = last_without_progress(makes_progress, self._near, self._max_drift_ms)
        self._near = slowest + self._max_drift_ms
        return {**reachable, **ends_at(self._near)}


def last_without_progress(makes_progress: Callable[[int], bool], near: int, step: int) -> int:
    """A time up to which there is nothing to read, while there is something up to ``step`` later.

    Brokers tell the first offset after a time, but not the time of an offset: so the time is searched for in
    steps that double, and then between two of them.

    >>> last_without_progress(lambda time: time >= 1000, near=10, step=1)
    999
    """
    low, high = _around(makes_progress, near, step)
    while high - low > step:
        middle = (low + high) // 2
        if makes_progress(middle):
            high = middle
        else:
            low = middle
    return low


def _around(makes_progress: Callable[[int], bool], near: int, step: int) -> tuple[int, int]:
    """A time without progress, and a later one with it."""
    if makes_progress(near):
        low, high = max(near - step, _BEFORE_ALL), near
        while low > _BEFORE_ALL and makes_progress(low):
            step *= 2
            low, high = max(low - step, _BEFORE_ALL), low
        return low, high
    low, high = near, near + step
    while high < _AFTER_ALL and not makes_progress(high):
        step *= 2
        low, high = high, min(high + step, _AFTER_ALL)
    return low, high
