"""The first offset that is later than a time, by reading a few messages."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.planning.batch_ends import first_later

LOGS = st.dictionaries(st.integers(0, 5000), st.integers(0, 300), max_size=60)


def reads(log: dict[int, int], size: int, asked: list[int]):
    """Reads so many messages of a log (offset: timestamp), and notes where."""
    offsets = sorted(log)

    def read_from(at: int) -> tuple[list[int], list[int]]:
        asked.append(at)
        found = offsets[bisect_left(offsets, at) :][:size]
        return found, [log[each] for each in found]

    return read_from


@pytest.mark.parametrize(
    ("log", "begin", "time", "found"),
    [
        ({0: 10, 1: 20, 2: 30}, 0, 20, 2),
        ({0: 10, 1: 20, 2: 30}, 0, 9, 0),
        ({0: 10, 1: 20, 2: 30}, 0, 30, 9),
        # Gaps belong to what follows: nothing is read by ending before them or after.
        ({0: 10, 5: 20}, 1, 10, 1),
        ({}, 4, 10, 9),
        ({0: 10}, 9, 10, 9),
        # Of what is in disorder, the message at the beginning is compared.
        ({0: 50, 1: 10}, 0, 20, 0),
    ],
)
def test_the_first_later_offset(log, begin, time, found):
    """Nothing before it is later; the end when nothing is."""
    assert first_later(reads(log, 2, []), begin, 9, time) == found


@given(LOGS, st.integers(0, 5000), st.integers(-1, 301), st.integers(1, 50))
def test_of_what_is_in_order_it_is_exact(log, begin, time, size):
    """Up to there all is read that is not later, and nothing that is; with few reads."""
    log, asked = dict(zip(sorted(log), sorted(log.values()), strict=True)), []

    found = first_later(reads(log, size, asked), begin, 5001, time)

    left = {at: each for at, each in log.items() if at >= begin}
    assert {at for at in left if at < found} == {at for at, each in left.items() if each <= time}
    assert begin <= found <= 5001
    assert len(asked) <= 32


@given(LOGS, st.integers(0, 5000), st.integers(-1, 301), st.integers(1, 50))
def test_whatever_the_disorder_progress_is_told_by_the_next_message(log, begin, time, size):
    """A time at which the next message may be read gives an offset after it, and no other does."""
    found = first_later(reads(log, size, []), begin, 5001, time)

    left = [at for at in sorted(log) if at >= begin]
    if left:
        assert (found > left[0]) == (log[left[0]] <= time)
    else:
        assert found == 5001
