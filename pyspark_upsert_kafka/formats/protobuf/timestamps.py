"""SecondsAndNanos and durations as seconds and nanoseconds, in the ranges that protobuf defines.

Source: timestamp.proto and duration.proto. Spark has microseconds; finer is cut off, as its
``from_protobuf`` does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_MICROS = 1_000_000
_NANOS = 1_000_000_000


@dataclass(frozen=True)
class SecondsAndNanos:
    """What seconds and nanoseconds stand for.

    Args:
        first: The smallest number of seconds.
        last: The largest.
        signed: Whether nanoseconds have the sign of the seconds; else they count upwards.
        expected: The range in words.
    """

    first: int
    last: int
    signed: bool
    expected: str

    def micros(self, seconds: np.ndarray, nanos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Microseconds, and where seconds and nanoseconds are in range; elsewhere they are 0."""
        lowest = -_NANOS + 1 if self.signed else 0
        good = (seconds >= self.first) & (seconds <= self.last) & (nanos >= lowest)
        good &= nanos < _NANOS
        if self.signed:
            good &= (np.sign(seconds) * np.sign(nanos)) >= 0
        whole = np.where(good, seconds, 0) * _MICROS
        return whole + np.where(good, np.sign(nanos) * (np.abs(nanos) // 1000), 0), good

    def micros_of(self, seconds: int, nanos: int) -> int | None:
        """Microseconds of one moment; None where seconds or nanoseconds are out of range."""
        lowest = -_NANOS + 1 if self.signed else 0
        if not (self.first <= seconds <= self.last and lowest <= nanos < _NANOS):
            return None
        if self.signed and seconds * nanos < 0:
            return None
        micros = abs(nanos) // 1000
        return seconds * _MICROS + (micros if nanos >= 0 else -micros)

    def split(self, micros: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Seconds, nanoseconds, and where they are in range."""
        if self.signed:
            seconds = np.sign(micros) * (np.abs(micros) // _MICROS)
        else:
            seconds = micros // _MICROS
        nanos = (micros - seconds * _MICROS) * 1000
        return seconds, nanos, (seconds >= self.first) & (seconds <= self.last)


TIMESTAMPS = SecondsAndNanos(
    -62_135_596_800, 253_402_300_799, signed=False, expected="a year from 0001 to 9999"
)
DURATIONS = SecondsAndNanos(
    -315_576_000_000, 315_576_000_000, signed=True, expected="at most 10,000 years"
)
