"""What grows while many micro-batches run: samples, and their growth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

Sample = dict[str, float]


def growth(samples: Sequence[Sample], what: str) -> list[float]:
    """The peaks of a quantity in each quarter of the samples.

    The first quarter holds the warm-up: compilers, caches, and what Spark keeps of its last jobs. What leaks grows in each
    of the others.

    >>> growth([{"files": n} for n in (3, 9, 9, 9, 10, 9, 9, 10)], "files")
    [9, 9, 10, 10]
    """
    cuts = [round(len(samples) * quarter / 4) for quarter in range(5)]
    return [
        max(sample.get(what, 0) for sample in samples[begin:end] or samples[-1:])
        for begin, end in pairwise(cuts)
    ]


def names(samples: Sequence[Sample]) -> list[str]:
    """The quantities of samples, without those that count what was done."""
    return [name for name in samples[-1] if name not in ("triggers", "batches", "seconds", "rows")]
