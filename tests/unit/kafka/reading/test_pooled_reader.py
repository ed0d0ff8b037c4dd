"""How much is fetched at once, about what a range holds."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.reading.pooled_reader import (
    LARGE_FETCH,
    MEDIUM_FETCH,
    SMALL_FETCH,
    FetchSizes,
)


def fetched(size: int, *, average: int | None = None, **given: str) -> int:
    """What is fetched at once for a range of so many offsets."""
    sizes = FetchSizes()
    if average is not None:
        sizes.learn(Range("t", 0, 0, 1_000), 1_000 * average)
    properties = {name.replace("_", "."): value for name, value in given.items()}
    return sizes.choose(Range("t", 1, 50, 50 + size), properties)


@pytest.mark.parametrize(
    ("size", "average", "expected"),
    [
        (10, None, SMALL_FETCH),
        (1_000, None, MEDIUM_FETCH),
        (100_000, None, LARGE_FETCH),
        (100, 100, SMALL_FETCH),
        (1_000, 100, MEDIUM_FETCH),
        (100_000, 100, LARGE_FETCH),
        (10, 100_000, MEDIUM_FETCH),
        (100, 100_000, LARGE_FETCH),
        (1_000, 0, SMALL_FETCH),
        # A message has 16 bytes beside its own, and 1,024 of its own if none was seen.
        (2_016, None, MEDIUM_FETCH),
        (2_017, None, LARGE_FETCH),
        (1_024, 0, SMALL_FETCH),
        (1_025, 0, MEDIUM_FETCH),
        (131_072, 0, MEDIUM_FETCH),
        (131_073, 0, LARGE_FETCH),
    ],
)
def test_the_expected_bytes_decide(size, average, expected):
    """Offsets times the bytes of a message of that topic, as the last range had them; a guess at first."""
    assert fetched(size, average=average) == expected


def test_a_size_that_the_user_gives_needs_one_consumer_only():
    """All ranges are read alike then."""
    given = {"max_partition_fetch_bytes": "5000"}
    assert fetched(10, **given) == fetched(100_000, **given)


def test_each_topic_has_messages_of_its_own_size():
    """What was learned of one says nothing about another."""
    sizes = FetchSizes()
    sizes.learn(Range("large", 0, 0, 10), 10_000_000)

    assert sizes.choose(Range("large", 0, 0, 10), {}) == LARGE_FETCH
    assert sizes.choose(Range("other", 0, 0, 10), {}) == SMALL_FETCH
