"""A query runs for months: what a thousand micro-batches do leaves nothing behind."""

from __future__ import annotations

import gc

import psutil
import pytest

from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import Broker
from tests.kafka.conftest import Edge, eventually, no_more_than, numbered, open_things

pytestmark = pytest.mark.alone(
    "measures memory, and counts threads and descriptors, over a thousand micro-batches"
)

BATCHES = 1_000
WARM_UP = 200
MEMORY_BOUND = 4 * 1024 * 1024
"""For what Python and the allocator hold back; a leak of 4 KiB a batch would reach it."""


def test_a_thousand_micro_batches_leave_nothing_behind(broker: Broker, edge: Edge) -> None:
    """Each plans, reads a range and writes: threads and descriptors as before, memory within a bound."""
    source, target = broker.topic(), broker.topic()

    def micro_batch(number: int) -> None:
        edge.send(source, *numbered(1, number))
        assert edge.view(cluster, source).bounds.popitem()[1].latest == number + 1
        (pair,) = numbered(1, number)
        assert edge.values(Range(source, 0, number, number + 1)) == [pair[1]]
        edge.send(target, pair)

    with edge.cluster() as cluster:
        for number in range(WARM_UP):
            micro_batch(number)
        gc.collect()
        things, memory = open_things(), psutil.Process().memory_info().rss
        for number in range(WARM_UP, WARM_UP + BATCHES):
            micro_batch(number)
        gc.collect()

        grown = psutil.Process().memory_info().rss - memory
        assert grown < MEMORY_BOUND, f"{grown / 1024:.0f} KiB more than before"
        assert eventually(lambda: no_more_than(things))
    assert len(broker.pairs(target)) == WARM_UP + BATCHES
