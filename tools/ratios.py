"""How many times as fast as a plain program a job is, and what that says: for `make bench-quick` and `make proof`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Judgement = Literal["", "slower", "too noisy"]

MOST_NOISE = 0.3
"""A ratio with more noise is no evidence, and is not compared."""

_LEAST_NOISE = 0.1
"""A ratio that is lower by less than this part of it is not slower."""


@dataclass(frozen=True)
class Measured:
    """How many times as fast as the plain program a job is.

    Args:
        ratio: Of the medians of the CPU times.
        noise: By what part of it the ratios of single runs differ, as a rule (half the range between their quartiles).
        seconds: The CPU times of each run: of the plain program, and of this package.
    """

    ratio: float
    noise: float
    seconds: tuple[tuple[float, float], ...] = ()


def measured(seconds: Sequence[tuple[float, float]]) -> Measured:
    """What the CPU times of runs in turn say.

    >>> found = measured([(2.0, 1.0), (2.2, 1.0), (4.0, 1.0)])
    >>> found.ratio, round(found.noise, 2)
    (2.2, 0.45)
    """
    plain, ours = (statistics.median(side) for side in zip(*seconds, strict=True))
    low, _, high = statistics.quantiles([a / b for a, b in seconds], n=4)
    ratio = plain / ours
    return Measured(ratio, (high - low) / 2 / ratio, tuple(seconds))


def judgement(now: Measured, released: Measured | None) -> Judgement:
    """Whether a job is slower than in the last release by more than the noise of both.

    Args:
        now: What was measured.
        released: What was measured of the last release; None = nothing.

    >>> judgement(Measured(8.0, 0.02), Measured(10.0, 0.03)), judgement(Measured(8.0, 0.2), Measured(10.0, 0.03))
    ('slower', '')
    >>> judgement(Measured(1.5, 1.28), Measured(3.0, 0.03)), judgement(Measured(8.0, 0.02), None)
    ('too noisy', '')
    """
    if now.noise > MOST_NOISE:
        return "too noisy"
    if released is None:
        return ""
    least = released.ratio * (1 - max(_LEAST_NOISE, now.noise + released.noise))
    return "slower" if now.ratio < least else ""
