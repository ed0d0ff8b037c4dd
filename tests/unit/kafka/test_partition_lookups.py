"""A producer that waited looks up partitions again, and one that is busy does so seldom."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.client_pool import PartitionLookups


@pytest.mark.parametrize(("topics", "seconds"), [(1, 1), (20, 20)])
def test_a_lookup_is_due_after_a_second_for_each_topic(topics: int, seconds: int) -> None:
    """However many topics: what lookups cost stays the same share of the time."""
    now = [100.0]
    lookups = PartitionLookups(topics, lambda: now[0])
    assert not lookups.is_due, "a new producer asks by itself"

    now[0] += seconds - 0.1
    assert not lookups.is_due
    now[0] += 0.1
    assert lookups.is_due
    lookups.note()
    assert not lookups.is_due
