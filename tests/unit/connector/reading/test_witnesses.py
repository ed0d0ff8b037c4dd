"""Messages that show whether compaction has taken others because of newer ones past the planned end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.reading.reading_past_end import holds, stand, witnesses
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], []),
        ([(5, 20)], [(5, 20)]),
        ([(7, 20), (5, 30), (9, 25)], [(5, 30), (7, 20)]),
        ([(5, 20), (7, 30)], [(5, 20)]),
        ([(5, 30), (7, 20)], [(5, 30), (7, 20)]),
        ([(1, 10), (2, 9), (3, 8), (4, 9)], [(1, 10), (2, 9), (3, 8)]),
    ],
)
def test_the_witnesses(messages: list[tuple[int, int]], found: list[tuple[int, int]]) -> None:
    """One before which nothing was overwritten as early."""
    offsets, overwritten = np.array(messages, np.int64).reshape(-1, 2).T
    assert witnesses(offsets, overwritten) == found


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(51, 99)),
        unique_by=(lambda m: m[0], lambda m: m[1]),
    )
)
def test_each_message_is_stood_for(messages: list[tuple[int, int]]) -> None:
    """By one with no larger offset that was overwritten no later; and no witness stands for another."""
    offsets, overwritten = np.array(messages, np.int64).reshape(-1, 2).T
    found = witnesses(offsets, overwritten)

    for at, over in messages:
        assert any(first <= at and second <= over for first, second in found)
    for at, over in found:
        assert [pair for pair in found if pair[0] <= at and pair[1] <= over] == [(at, over)]


def rows(*keys_and_offsets: tuple[str, int]) -> pa.RecordBatch:
    """Keys, and offsets in the last column."""
    keys, offsets = zip(*keys_and_offsets, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(offsets)], ["k", "_at"])


@pytest.mark.parametrize(
    ("found", "firsts", "asked"),
    [
        ([], [], []),
        # A key on one side of the end has not been overwritten by a message past it.
        ([rows(("a", 1), ("b", 2))], [], []),
        ([], [rows(("a", 11), ("b", 12))], []),
        ([rows(("a", 1))], [rows(("b", 11))], []),
        ([rows(("a", 1), ("b", 2))], [rows(("b", 11))], [(2, 11)]),
        ([rows(("a", 1)), rows(("b", 2))], [rows(("c", 11)), rows(("b", 12), ("a", 13))], [(1, 13), (2, 12)]),
    ],
)  # fmt: skip
def test_who_is_asked_for(
    found: list[pa.RecordBatch], firsts: list[pa.RecordBatch], asked: list[tuple[int, int]]
) -> None:
    """The messages of keys on both sides of the planned end, with those that have overwritten them; all must be there."""
    seen = []

    def note(offset: int, overwritten: int) -> bool:
        seen.append((offset, overwritten))
        return True

    assert stand(found, firsts, ["k"], note)
    assert seen == asked
    for gone in asked:
        assert not stand(found, firsts, ["k"], lambda *pair, gone=gone: pair != gone)


@pytest.mark.parametrize(("count", "expected"), [(30, True), (31, False)])
def test_no_more_than_a_few_are_asked_for(count: int, expected: bool) -> None:
    """Each is two requests: with more of them, the rows past the end are looked at instead."""
    found = rows(*((str(at), at) for at in range(count)))
    firsts = rows(*((str(at), 1000 - at) for at in range(count)))
    asked = []

    assert stand([found], [firsts], ["k"], lambda *pair: not asked.append(pair)) is expected
    assert len(asked) == (count if expected else 0)


class Reader:
    """Messages by their offsets; others were removed, or are lost with an error."""

    def __init__(self, keys: dict[int, bytes | None], *, fails: bool) -> None:
        self._keys, self._fails = keys, fails

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """One message."""
        assert range_.size == 1
        at = range_.begin
        if at in self._keys:
            key = BytesColumn.of([self._keys[at]])
            yield RawBatch("t", 0, key, key, [at])
        elif self._fails:
            raise DataLossError("t", 0, at, None, "gone")


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({3: b"k", 9: b"k"}, True),
        ({3: b"k", 9: b" k"}, False),
        ({3: b"k"}, False),
        ({9: b"k"}, False),
        ({}, False),
    ],
)
def test_both_messages_must_be_there_with_the_same_bytes(
    keys: dict[int, bytes | None], expected: bool, fails: bool
) -> None:
    """Another spelling of a key is another key for compaction."""
    assert holds(Reader(keys, fails=fails), Range("t", 0, 0, 5), 3, 9) is expected
