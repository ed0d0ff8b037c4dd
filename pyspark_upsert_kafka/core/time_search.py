"""Where a partition gets later than a time, found by reading a few of its messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_FIRST_STEP = 256

ReadFrom = Callable[[int], tuple[Sequence[int], Sequence[int]]]
"""Offsets and timestamps of the next messages at or after an offset, of one at least; nothing when none is left."""


def first_later(read_from: ReadFrom, begin: int, end: int, time_ms: int) -> int:
    """The offset up to which messages are no later than a time; ``end`` when none is later.

    It is exact where timestamps rise with offsets. Else it is a place where they pass the time, and the message at
    ``begin`` is always compared. Reads in steps that double, and then between two of them.

    Args:
        read_from: Reads messages.
        begin: Where to begin.
        end: Nothing is looked at from here on.
        time_ms: The time, in ms since the epoch.

    >>> times = [10, 20, 30, 40]
    >>> first_later(lambda at: (range(at, 4), times[at:]), 0, 4, 25)
    2
    """
    low, high, found, step = begin, end, end, 0
    while low < high:
        at = min(low + step, (low + high) // 2)
        offsets, times = read_from(at)
        later = next((n for n, each in enumerate(times) if each > time_ms), None)
        if later:
            return offsets[later]
        if later == 0:
            high = found = at
        elif offsets:
            low = offsets[-1] + 1
        else:
            high = at
        step = 2 * step or _FIRST_STEP
    return found
