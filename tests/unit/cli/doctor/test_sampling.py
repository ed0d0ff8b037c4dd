"""Which messages a sample has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.cli.doctor.sampling import sample_ranges
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition


def view(*partitions: tuple[int, int]) -> ClusterView:
    """A topic whose partitions have these earliest and latest offsets."""
    bounds = {TopicPartition("t", n): Bounds(b, e, e) for n, (b, e) in enumerate(partitions)}
    return ClusterView({"t": "id"}, bounds)


@pytest.mark.parametrize(
    ("partitions", "count", "expected"),
    [
        ([(0, 10)], 20, [(0, 0, 10)]),
        ([(5, 105)], 10, [(0, 5, 10), (0, 100, 105)]),
        ([(0, 100)], 1, [(0, 99, 100)]),
        ([(0, 2), (0, 100), (7, 7)], 12, [(0, 0, 2), (1, 0, 5), (1, 95, 100)]),
        ([(0, 100), (0, 100)], 0, []),
    ],
)
def test_begin_and_end_of_each_partition(
    partitions: list[tuple[int, int]], count: int, expected: list[tuple[int, int, int]]
) -> None:
    """What a small partition lacks is read of the others."""
    found = sample_ranges(view(*partitions), count)

    assert [(each.partition, each.begin, each.end) for each in found] == expected


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(0, 200))
def test_as_many_messages_as_asked_for_and_never_more(sizes: list[int], count: int) -> None:
    """Or all that there are; no offset is in two ranges."""
    found = sample_ranges(view(*((3, 3 + size) for size in sizes)), count)
    offsets = [(each.partition, at) for each in found for at in range(each.begin, each.end)]

    assert len(offsets) == len(set(offsets)) == min(count, sum(sizes))


def test_of_very_many_partitions_some_are_read() -> None:
    """Each partition costs a request; the chosen ones are spread over all."""
    found = sample_ranges(view(*((0, 50) for _ in range(950))), 1_000)

    assert sum(each.size for each in found) == 1_000
    assert [*dict.fromkeys(each.partition for each in found)] == [*range(0, 950, 10)]
