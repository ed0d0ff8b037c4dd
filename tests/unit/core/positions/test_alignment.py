"""Micro-batches that end at one time in all partitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.core.positions.planning import Alignment, last_without_progress

HOUR = 3_600_000
A, B = TopicPartition("t", 0), TopicPartition("t", 1)

TIMES = st.one_of(st.integers(-1, 300), st.integers(-1, 2**42))
PARTITIONS = st.lists(st.lists(TIMES, max_size=8), min_size=1, max_size=4)
DRIFTS = st.one_of(st.integers(1, 100), st.integers(1, 2**40))


class Log:
    """Partitions with the timestamps of their messages, and where they are read up to."""

    def __init__(self, *partitions: list[int], begin: tuple[int, ...] = ()) -> None:
        self.times = {TopicPartition("t", n): times for n, times in enumerate(partitions)}
        self.at = dict(zip(self.times, begin or [0] * len(self.times), strict=True))
        self.requests = 0

    def first_after(self, time: int) -> dict[TopicPartition, int]:
        """As a broker answers: the first message of all that is later, wherever one reads."""
        self.requests += 1
        assert time >= -1, "a broker takes a negative timestamp for something else"
        return {
            tp: next((at for at, each in enumerate(times) if each > time), len(times))
            for tp, times in self.times.items()
        }

    def ends(self) -> dict[TopicPartition, int]:
        """One past the last message of each partition."""
        return {tp: len(times) for tp, times in self.times.items()}

    def waiting(self) -> bool:
        """Whether anything is left to read."""
        return self.at != self.ends()

    def next(self, alignment: Alignment) -> dict[TopicPartition, list[int]]:
        """The timestamps that the next batch reads."""
        ends = alignment.ends(self.at, self.ends(), self.first_after)
        assert ends.keys() == self.at.keys()
        read = {tp: times[self.at[tp] : ends[tp]] for tp, times in self.times.items()}
        self.at = ends
        return read


@pytest.mark.parametrize(
    ("partitions", "begin", "drift", "near", "batches"),
    [
        # Both are read up to a minute past the earliest message that is left.
        (([0, 30, 70], [50, 61, 200]), (), 60, 0, [([0, 30], [50]), ([70], [61]), ([], [200])]),
        # A partition that is ahead waits until the other is there.
        (([0, 10], [5 * HOUR]), (), HOUR, 7 * HOUR, [([0, 10], []), ([], [5 * HOUR])]),
        # One with nothing to read holds nobody back.
        (([0, 10], [5 * HOUR]), (2, 0), HOUR, 0, [([], [5 * HOUR])]),
        # What is late within its own partition is read with the message that it follows.
        (([100, 20, 30, 300], [50]), (1, 0), 10, 0, [([], [50]), ([20, 30], []), ([300], [])]),
        # Messages without a timestamp are the earliest of all.
        (([-1, -1, 500], [100]), (), 10, 400, [([-1, -1], []), ([], [100]), ([500], [])]),
    ],
)
def test_where_batches_end(partitions, begin, drift, near, batches):
    """Up to the earliest time that is left, and the drift."""
    log, alignment = Log(*partitions, begin=begin), Alignment(drift, near)

    for batch in batches:
        assert tuple(log.next(alignment).values()) == batch
    assert not log.waiting()
    assert not any(log.next(alignment).values())


@given(PARTITIONS, DRIFTS, TIMES)
def test_everything_is_read(partitions, drift, near):
    """Each batch makes progress, whatever the disorder, and with few requests."""
    log, alignment = Log(*partitions), Alignment(drift, near)

    while log.waiting():
        log.requests = 0
        assert any(log.next(alignment).values())
        assert log.requests <= 130


@given(PARTITIONS.map(lambda partitions: [sorted(each) for each in partitions]), DRIFTS, TIMES)
def test_nobody_runs_ahead(partitions, drift, near):
    """A batch reads nothing that is later than the slowest partition's next message and the drift."""
    log, alignment = Log(*partitions), Alignment(drift, near)

    while log.waiting():
        slowest = min(
            times[log.at[tp]] for tp, times in log.times.items() if log.at[tp] < len(times)
        )
        assert all(
            time <= slowest + drift for read in log.next(alignment).values() for time in read
        )


@given(
    PARTITIONS.map(lambda partitions: [sorted(each) for each in partitions]),
    DRIFTS, TIMES, st.integers(0, 2**40), st.data(),
)  # fmt: skip
def test_a_watermark_drops_nothing(partitions, drift, near, slack, data):
    """Of messages in order, with a delay of the drift at least, however many a batch may read."""
    log, alignment = Log(*partitions), Alignment(drift, near)
    watermark, latest = float("-inf"), float("-inf")

    while log.waiting():
        before = dict(log.at)
        read = log.next(alignment)
        for tp, times in read.items():
            kept = data.draw(st.integers(1, len(times))) if times else 0
            log.at[tp] = before[tp] + kept
            assert all(time >= watermark for time in times[:kept])
            latest = max([latest, *times[:kept]])
        watermark = latest - drift - slack


@given(st.integers(-1, 2**50), st.integers(-1, 2**50), st.integers(1, 2**45))
def test_the_last_time_without_progress(begins, near, step):
    """Something is to be read up to a step later, wherever the search starts."""
    found = last_without_progress(lambda time: time >= begins, near, step)

    assert found < begins <= found + step


@pytest.mark.parametrize(
    ("begins", "asked"),
    [
        (25, [10, 11, 13, 17, 25, 21, 23, 24]),
        (3, [10, 9, 7, 3, 0, 1, 2]),
        (11, [10, 11]),
        (10, [10, 9]),
    ],
)
def test_times_are_looked_at_in_steps_that_double(begins: int, asked: list[int]) -> None:
    """And then between two of them: each is a request to a broker."""
    seen = []
    last_without_progress(lambda time: seen.append(time) or time >= begins, near=10, step=1)

    assert seen == asked


@pytest.mark.parametrize("near", [0, 10, 2**42])
def test_times_that_are_asked_for_are_those_of_kafka(near: int) -> None:
    """Where no time is late enough, or early enough, the search ends within the numbers that a broker takes."""
    seen = []
    last_without_progress(seen.append, near, step=1)
    last_without_progress(lambda time: seen.append(time) or time > -1, near, step=1)

    assert -2 <= min(seen) < 0
    assert 2**60 < max(seen) < 2**63


def test_where_nothing_is_left_no_broker_is_asked() -> None:
    """The batch ends where it may end at most."""
    log = Log([1, 2], [3], begin=(2, 1))

    assert log.next(Alignment(10, 0)) == {A: [], B: []}
    assert log.requests == 0
