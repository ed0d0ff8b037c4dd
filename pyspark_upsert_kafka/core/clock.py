"""What the time is, how it passes and how people write it, and how long is waited between two attempts of a request."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Protocol


class Clock(Protocol):
    """A clock of seconds that only rise: the module ``time``, or one that a test moves."""

    def monotonic(self) -> float:
        """The time."""

    def sleep(self, seconds: float, /) -> None:
        """Returns when so many seconds have passed."""


class WallClock(Clock, Protocol):
    """One that tells the time of day too."""

    def time(self) -> float:
        """Seconds since the epoch."""


class SystemClock:
    """The clock of the machine, for what is pickled: the module ``time`` cannot be."""

    def monotonic(self) -> float:
        """As `Clock.monotonic`."""
        return time.monotonic()

    def sleep(self, seconds: float, /) -> None:
        """As `Clock.sleep`."""
        time.sleep(seconds)

    def time(self) -> float:
        """As `WallClock.time`."""
        return time.time()


SYSTEM_CLOCK = SystemClock()


def now_ms(clock: WallClock = SYSTEM_CLOCK) -> int:
    """The time now, in ms since the epoch."""
    return int(clock.time() * 1000)


_JITTER = 0.2
"""As in Kafka's clients (``CommonClientConfigs.RETRY_BACKOFF_JITTER``): tasks that failed together do not ask in step."""

_MOST_DOUBLINGS = 30


@dataclass(frozen=True)
class Backoff:
    """Pauses that double up to a bound, each 20 % shorter or longer at random.

    Args:
        first_s: The first pause, in seconds.
        most_s: The bound, in seconds; a pause may be 20 % longer.
        random: Gives numbers from 0 to 1.

    >>> [Backoff(0.1, 1.0, random=lambda: 0.5).pause_s(failed) for failed in (0, 1, 2, 9)]
    [0.1, 0.2, 0.4, 1.0]
    """

    first_s: float
    most_s: float
    random: Callable[[], float] = random.random

    def pause_s(self, failed: int) -> float:
        """The pause after an attempt, in seconds.

        Args:
            failed: How many attempts had failed before it.
        """
        pause_s = min(self.first_s * 2.0 ** min(failed, _MOST_DOUBLINGS), self.most_s)
        return pause_s * (1 - _JITTER + 2 * _JITTER * self.random())


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def epoch_ms(text: str) -> int:
    """A time with a zone, rounded up, so that a message before it stays before it.

    Raises:
        ValueError: It is no such time; its text says what was expected.

    >>> epoch_ms("1970-01-01T01:00:01+01:00"), epoch_ms("1970-01-01T00:00:00.0001Z")
    (1000, 1)
    """
    try:
        time = _parsed(text)
    except (ValueError, OverflowError):
        raise ValueError(f"expected a time such as 2026-01-31T12:00:00Z, but is {text!r}") from None
    if time.tzinfo is None:
        raise ValueError(
            f"{text!r} has no zone: write {text}Z for UTC, or an offset as in {text}+01:00"
        )
    return _from_1970_on(time, repr(text))


def epoch_ms_of(time: datetime) -> int:
    """A ``datetime`` with a zone, rounded up as `epoch_ms` does.

    Raises:
        ValueError: It has no zone, or is before 1970.

    >>> epoch_ms_of(datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=timezone.utc))
    1001
    """
    if time.utcoffset() is None:
        raise ValueError(f"{time!r} has no zone: give it one, as in tzinfo=timezone.utc")
    return _from_1970_on(time, repr(time))


def shown_time(ms: int) -> str:
    """A time in ms since the epoch, as people read it, in UTC; a message may have any number.

    >>> shown_time(1_769_860_800_999), shown_time(-(2**63))
    ('2026-01-31T12:00:00Z', 'the timestamp -9223372036854775808')
    """
    try:
        return (_EPOCH + timedelta(seconds=ms // 1000)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"the timestamp {ms}"


_ABOUT_TIME = re.compile(
    r"expired|not yet|earlier than|later than|clock|skew|time ?frame|time range|\b(?:iat|nbf|exp)\b",
    re.IGNORECASE,
)


def is_about_time(said: str) -> bool:
    """Whether somebody refuses a signature or a token and may do so for its time, so that the clock of this machine may be wrong.

    >>> is_about_time("Signature expired: 20260131T115000Z is now earlier than 20260131T115500Z")
    True
    """
    return _ABOUT_TIME.search(said) is not None


def _from_1970_on(time: datetime, shown: str) -> int:
    since = -((_EPOCH - time) // timedelta(milliseconds=1))
    if since < 0:
        raise ValueError(f"expected a time from 1970 on, but is {shown}")
    return since


def _parsed(text: str) -> datetime:
    """The time, rounded up to microseconds. Raises ValueError if it is no time, or a date without a time.

    Python 3.10 does not read Z, and reads a fraction of three or six digits only.
    """
    if text[10:11] not in {"T", "t", " "}:
        raise ValueError(text)
    begin, zone = (text[:-1], "+00:00") if text[-1] in "Zz" else (text, "")
    whole, dot, rest = begin.partition(".")
    offset = rest.lstrip("0123456789")
    fraction = rest[: len(rest) - len(offset)]
    micros = f".{fraction[:6].ljust(6, '0')}" if dot else ""
    time = datetime.fromisoformat(f"{whole}{micros}{offset}{zone}")
    return time + timedelta(microseconds=1) if fraction[6:].strip("0") else time
