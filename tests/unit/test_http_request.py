"""Requests by HTTP: an answer has an end, in bytes and in time; tests/unit/registry/test_rest.py has whole answers."""

from __future__ import annotations

import io
from itertools import chain, repeat

import pytest

from pyspark_upsert_kafka.http_request import Deadline, ReadInTime


class Clock:
    """A clock that goes on by itself with each byte that is waited for."""

    def __init__(self) -> None:
        self.now, self.timeouts = 100.0, list[float]()

    def monotonic(self) -> float:
        """The time in seconds."""
        return self.now

    def deadline(self, left_s: float, silence_s: float) -> Deadline:
        """A deadline in so many seconds."""
        return Deadline(self.now + left_s, silence_s, self.monotonic)


class Slow(io.RawIOBase):
    """A connection on which each byte takes its time."""

    def __init__(self, clock: Clock, seconds: float, content: bytes | None) -> None:
        self._clock, self._seconds = clock, seconds
        self._bytes = repeat(b"x"[0]) if content is None else chain(content)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """The next byte."""
        self._clock.now += self._seconds
        for byte in self._bytes:
            buffer[0] = byte
            return 1
        return 0


def reading(
    clock: Clock, deadline: Deadline, seconds: float, content: bytes | None
) -> io.BufferedReader:
    """What an answer is read from."""
    raw = io.BufferedReader(Slow(clock, seconds, content))
    return io.BufferedReader(ReadInTime(raw, clock.timeouts.append, deadline))


@pytest.mark.parametrize("how", ["read", "readline"])
def test_a_byte_a_second_without_an_end(how: str) -> None:
    """The time is over when it is, in headers as well as in what follows, though each byte comes soon."""
    clock = Clock()
    stream = reading(clock, clock.deadline(30, silence_s=10), 1.0, None)

    with pytest.raises(TimeoutError, match="timed out"):
        getattr(stream, how)()

    assert clock.now == 130
    assert max(clock.timeouts) == 10
    assert min(clock.timeouts) == 1


def test_an_answer_that_comes_in_time() -> None:
    """It is read to its end, and the last wait is no longer than the time that is left."""
    clock = Clock()
    stream = reading(clock, clock.deadline(6.5, silence_s=10), 1.0, b"whole")

    assert stream.read() == b"whole"
    assert clock.timeouts == [6.5, 5.5, 4.5, 3.5, 2.5, 1.5]
    stream.close()
    assert stream.closed


def test_time_that_is_over_before_anything_is_read() -> None:
    """Nothing is waited for."""
    clock = Clock()
    with pytest.raises(TimeoutError):
        reading(clock, clock.deadline(0, silence_s=10), 1.0, b"late").read()
    assert clock.timeouts == []
