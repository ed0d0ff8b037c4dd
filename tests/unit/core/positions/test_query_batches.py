"""What micro-batches have read and written: the line of one, and the sums over several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.core.positions.progress import (
    QueryBatch,
    QueryTotals,
    SourceBatch,
    SourceTotals,
    Written,
)

A, B, U = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)

SOURCE = SourceBatch({A: 7, B: 5}, {A: 1000, B: 500}, 12, 10.0, 0)
UNKNOWN = SourceBatch({}, {A: 1, U: None}, 9876, None, None)
NO_TOPIC = SourceBatch({}, {}, 0, 0.0, None)


def batch(*sources: SourceBatch, written: Written | None = None) -> QueryBatch:
    """The third batch of the query ``copy``."""
    return QueryBatch("an id", "copy", 3, 1.234, sources, written)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (batch(SOURCE), "copy, batch 3 (1.2 s): t 12 rows, 10/s, lag 1,500, bad 0"),
        (
            batch(SOURCE, NO_TOPIC),
            "copy, batch 3 (1.2 s): t 12 rows, 10/s, lag 1,500, bad 0; no topic 0 rows, 0/s, lag 0, bad unknown",
        ),
        (
            batch(UNKNOWN),
            "copy, batch 3 (1.2 s): t and 1 more 9,876 rows, lag unknown, bad unknown",
        ),
        (
            batch(replace(SOURCE, waiting={A: 201, B: 0})),
            "copy, batch 3 (1.2 s): t 12 rows, 10/s, lag 1,500 (201 in open transactions), bad 0",
        ),
        (batch(), "copy, batch 3 (1.2 s): wrote unknown"),
    ],
)
def test_the_line_of_a_batch(found: QueryBatch, line: str) -> None:
    """One line, however many sources, topics and partitions there are; what is not known is called so."""
    assert str(found) == line


def test_the_sums_over_batches() -> None:
    """What is not known of a batch is left out of them, and they begin anew with another number of sources."""
    first = QueryTotals.first(batch(SOURCE, written=Written(2, 1, 30)))
    unknown = replace(SOURCE, rows=3, bad_messages=None)
    both = first.followed_by(batch(unknown))

    assert (both.sources, both.written) == ((SourceTotals(15, 0),), Written(2, 1, 30))
    assert both.followed_by(batch(SOURCE, NO_TOPIC)).sources == (
        SourceTotals(12, 0),
        SourceTotals(0, None),
    )
