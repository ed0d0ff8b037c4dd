"""Which messages a sample has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.cli.doctor.message_sample import SamplePart, sample_parts
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition


def view(*partitions: tuple[int, int]) -> ClusterView:
    """A topic whose partitions have these earliest and latest offsets."""
    bounds = {TopicPartition("t", n): Bounds(b, e, e) for n, (b, e) in enumerate(partitions)}
    return ClusterView({"t": "id"}, bounds)


def read(parts: list[SamplePart], *, gaps: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """The partition and offset of each message that is read, where these offsets have none."""
    found = []
    for part in parts:
        messages = [
            (range_.partition, at)
            for range_ in part.ranges
            for at in range(range_.begin, range_.end)
            if at not in gaps
        ]
        found += messages[: part.most]
    return found


@pytest.mark.parametrize(
    ("partitions", "count", "expected"),
    [
        ([(0, 3)], 20, [(0, 0), (0, 1), (0, 2)]),
        ([(5, 105)], 4, [(0, 103), (0, 104), (0, 5), (0, 6)]),
        ([(0, 100)], 1, [(0, 99)]),
        ([(0, 1), (0, 100), (7, 7)], 3, [(0, 0), (1, 99), (1, 0)]),
        ([(0, 10), (0, 100)], 1, [(1, 99)]),
        ([(0, 100), (0, 100)], 0, []),
    ],
)
def test_begin_and_end_of_each_partition(
    partitions: list[tuple[int, int]], count: int, expected: list[tuple[int, int]]
) -> None:
    """What a small partition lacks is read of the others."""
    assert read(sample_parts(view(*partitions), count)) == expected


@given(st.integers(0, 50), st.sets(st.integers(0, 50)), st.integers(1, 60))
def test_gaps_are_passed_over(size: int, gaps: set[int], count: int) -> None:
    """Offsets that have no message, as after compaction and transactions, make no sample smaller."""
    found = read(sample_parts(view((0, size)), count), gaps=frozenset(gaps))
    there = {(0, at) for at in range(size)} - {(0, at) for at in gaps}

    assert set(found) <= there
    assert len(found) == len(set(found)) == min(count, len(there))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(0, 200))
def test_as_many_messages_as_asked_for_and_never_more(sizes: list[int], count: int) -> None:
    """Or all that there are; no offset is in two ranges."""
    found = read(sample_parts(view(*((3, 3 + size) for size in sizes)), count))

    assert len(found) == len(set(found)) == min(count, sum(sizes))


def test_of_very_many_partitions_some_are_read() -> None:
    """Each partition costs a request; the chosen ones are spread over all."""
    found = read(sample_parts(view(*((0, 50) for _ in range(950))), 1_000))

    assert len(found) == 1_000
    assert [*dict.fromkeys(partition for partition, _ in found)] == [*range(0, 950, 10)]
