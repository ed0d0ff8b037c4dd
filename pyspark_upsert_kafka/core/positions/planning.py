"""Who reads what: pure functions from positions to positions and ranges.

Spark has one watermark for all partitions, the latest time seen less a delay, and drops what is older: a partition that is read faster
than another makes the rows of the other late. Flink holds those splits back whose watermark is too far ahead of the slowest one's
(FLIP-182, FLIP-217): `Alignment` ends a micro-batch at one time in all partitions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    Range,
    Share,
    StreamOffset,
    TopicPartition,
)

_OFFSETS_OF_A_TASK = 10_000
"""With ``auto``, the offsets of a task: to read them takes about as long as to start it."""


def with_new_partitions(offset: StreamOffset, view: ClusterView) -> StreamOffset:
    """The offset with every partition that it did not know: it begins at its earliest offset."""
    new = {tp: bounds.earliest for tp, bounds in view.bounds.items() if tp not in offset.positions}
    return replace(offset, positions={**offset.positions, **new}, begins={**offset.begins, **new})


def advanced(
    offset: StreamOffset,
    view: ClusterView,
    *,
    max_offsets: int | None = None,
    target: Positions | None = None,
) -> StreamOffset:
    """How far the next batch reads.

    Args:
        offset: Where reading is now, its ``begins`` those of partitions new in this batch.
        view: What the broker has.
        max_offsets: About the most offsets, shared among partitions by backlog.
        target: Nothing past these positions (``availableNow``); partitions that it does not name
            wait.
    """
    caps = [cap for cap in (view.latest, target, offset.stop) if cap is not None]
    ends = {
        tp: max(at, min(cap.get(tp, at) for cap in caps)) for tp, at in offset.positions.items()
    }
    if max_offsets is not None:
        ends = rate_limited(offset.positions, ends, max_offsets)
    return replace(offset, positions=ends, topic_ids=known_ids(ends, offset, view))


def known_ids(positions: Positions, offset: StreamOffset, view: ClusterView) -> dict[str, str]:
    """The ids of these topics: as the broker says, or as was known where it says nothing."""
    topics = {tp.topic for tp in positions}
    return {topic: view.topic_ids.get(topic) or offset.topic_ids.get(topic, "") for topic in topics}


def backlog(start: Positions, end: Positions) -> int:
    """How many offsets lie between two positions."""
    return sum(max(0, at - start.get(tp, at)) for tp, at in end.items())


def rate_limited(
    start: Positions, end: Positions, limit: int, sizes: Positions = MappingProxyType({})
) -> dict[TopicPartition, int]:
    """At most about ``limit`` offsets, or bytes, shared among partitions in proportion to their backlog.

    A partition with anything to read gets at least one, so a lone message is never starved: the rule
    of Spark's ``KafkaMicroBatchStream.rateLimit``.

    >>> a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    >>> rate_limited({a: 0, b: 0}, {a: 100, b: 1}, 10) == {a: 9, b: 1}
    True
    >>> rate_limited({a: 0, b: 0}, {a: 100, b: 100}, 1000, {a: 10, b: 90}) == {a: 10, b: 10}
    True

    Args:
        start: Where reading is.
        end: Where it may end at most.
        limit: The most offsets, or bytes.
        sizes: The bytes of an offset in each partition; by default 1, so that the limit is one of offsets.
    """
    total = sum(max(0, at - start.get(tp, at)) * sizes.get(tp, 1) for tp, at in end.items())
    if total <= limit:
        return dict(end)
    limited = {}
    for tp, stop in end.items():
        begin = start.get(tp, stop)
        share = max(1, limit * (stop - begin) // total)
        limited[tp] = min(stop, begin + share)
    return limited


def split(ranges: Sequence[Range], min_partitions: int | None) -> list[Range]:
    """The ranges, cut into at least ``min_partitions`` pieces while pieces hold an offset each.

    The largest piece is always cut first, as evenly as offsets allow.

    >>> [(r.begin, r.end) for r in split([Range("t", 0, 0, 10)], 3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    counts = _piece_counts(ranges, min_partitions)
    return [
        piece
        for range_, count in zip(ranges, counts, strict=True)
        for piece in _pieces(range_, count)
    ]


def shared(ranges: Sequence[Range], min_partitions: int | None) -> list[Range]:
    """The ranges of a snapshot, each read by several tasks that share its keys: at least ``min_partitions`` in all.

    >>> [(r.share.index, r.share.count) for r in shared([Range("t", 0, 0, 10)], 2)]
    [(0, 2), (1, 2)]
    """
    counts = _piece_counts(ranges, min_partitions)
    offsets = sum(range_.size for range_ in ranges)
    return [
        replace(range_, share=Share(index, count, len(ranges), offsets))
        for range_, count in zip(ranges, counts, strict=True)
        for index in range(count)
    ]


def shared_by_all(ranges: Sequence[Range], tasks: int) -> list[Range]:
    """The ranges of a snapshot, each read by all tasks, which share the keys of all ranges.

    >>> [(r.partition, r.share.index) for r in shared_by_all([Range("t", 0, 0, 10), Range("t", 1, 0, 5)], 2)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    offsets = sum(range_.size for range_ in ranges)
    return [
        replace(range_, share=Share(index, tasks, len(ranges), offsets, of_all=True))
        for index in range(tasks)
        for range_ in ranges
    ]


def by_share(ranges: Sequence[Range]) -> list[tuple[Range, ...]]:
    """Which ranges each task reads, of a plan of `shared_by_all`."""
    tasks: dict[int, list[Range]] = {}
    for range_ in ranges:
        tasks.setdefault(range_.share.index if range_.share else 0, []).append(range_)
    return [tuple(task) for task in tasks.values()]


def tasks_to_share(range_: Range, count: int) -> int:
    """How many tasks a snapshot must have for ``count`` of them to share the keys of this range, one of a plan of `shared`.

    The largest piece is cut first, so another range has about as many pieces for its size.

    >>> few, many = shared([Range("t", 0, 0, 10), Range("t", 1, 0, 1000)], None)
    >>> tasks_to_share(few, 3)
    204
    >>> sum(piece.partition == 0 for piece in shared([few, many], 204)) >= 3
    True
    """
    share = range_.share
    if share is None or share.of_all:
        return count
    others = share.offsets - range_.size
    return count + math.ceil(others * (count - 1) / range_.size) + share.ranges - 1


def spread(ranges: Sequence[Range], tasks: int | Literal["auto"] | None) -> list[tuple[Range, ...]]:
    """Which ranges each task reads, one after another: one range, or with fewer tasks several.

    The largest range goes first, each to the task that has the least so far.

    Args:
        ranges: What is read.
        tasks: The most tasks; ``auto`` = one for each 10,000 offsets; None = one for each range.

    >>> a, b, c = (Range("t", number, 0, size) for number, size in enumerate((5, 9, 3)))
    >>> spread([a, b, c], 2) == [(a, c), (b,)]
    True
    """
    if ranges and ranges[0].share is not None and ranges[0].share.of_all:
        return by_share(ranges)
    most = _few(ranges) if tasks == "auto" else tasks
    if most is None or len(ranges) <= most:
        return [(range_,) for range_ in ranges]
    shares: list[list[int]] = [[] for _ in range(most)]
    least = [(0, task) for task in range(most)]
    for index in sorted(range(len(ranges)), key=lambda index: -ranges[index].size):
        size, task = heapq.heappop(least)
        shares[task].append(index)
        heapq.heappush(least, (size + ranges[index].size, task))
    return [
        tuple(ranges[index] for index in sorted(share)) for share in sorted(map(sorted, shares))
    ]


def _few(ranges: Sequence[Range]) -> int:
    return math.ceil(sum(range_.size for range_ in ranges) / _OFFSETS_OF_A_TASK)


def _piece_counts(ranges: Sequence[Range], least: int | None) -> list[int]:
    """Into how many pieces each range is cut."""
    counts = [1] * len(ranges)
    largest = [(-float(range_.size), index) for index, range_ in enumerate(ranges)]
    heapq.heapify(largest)
    for _ in range((least or 0) - len(ranges)):
        if not largest or -largest[0][0] <= 1:
            break
        _, index = heapq.heappop(largest)
        counts[index] += 1
        heapq.heappush(largest, (-ranges[index].size / counts[index], index))
    return counts


def _pieces(range_: Range, count: int) -> list[Range]:
    cuts = [range_.begin + range_.size * number // count for number in range(count + 1)]
    return [replace(range_, begin=begin, end=end) for begin, end in pairwise(cuts)]


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
