"""Which messages of a batch become rows, and which of several errors of a message counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyspark_upsert_kafka.connector.bad_messages import BadMessage, first_per_message
from pyspark_upsert_kafka.connector.reading.decoded_messages import select
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

BATCH = RawBatch(
    "t", 0, BytesColumn.of([b"k"] * 4), BytesColumn.of([b"v", None, b"v", None]), [5, 6, 7, 8]
)
DELETES = np.array([False, True, False, True])
BAD = [BadMessage(2, "value", "?"), BadMessage(3, "key", "?")]


@pytest.mark.parametrize(
    ("deletes", "bad", "hidden", "keep_deletes", "selected"),
    [
        (None, [], set(), True, [0, 1, 2, 3]),
        (None, [], {0, 3}, True, [1, 2]),
        (DELETES, [], set(), True, [0, 1, 2, 3]),
        (DELETES, [], set(), False, [0, 2]),
        (DELETES, [], {0}, False, [2]),
        (DELETES, BAD, {2, 3}, True, [0, 1]),
        (DELETES, BAD, {2, 3}, False, [0]),
        (DELETES, BAD, set(), True, [0, 1, 2, 3]),
        (DELETES, BAD, set(), False, [0, 2, 3]),  # a bad tombstone is an error, and no delete
    ],
)
def test_messages_that_become_rows(deletes, bad, hidden, keep_deletes, selected):
    """Hidden messages never do, deletes when they are kept, and bad messages unless they are hidden."""
    selection = select(BATCH, deletes, bad, hidden=hidden, keep_deletes=keep_deletes)

    assert selection.take(pa.array(range(4))).to_pylist() == selected
    assert len(selection) == len(selected)


@pytest.mark.parametrize("deletes", [None, DELETES])
def test_where_all_messages_become_rows_no_column_is_copied(deletes):
    """Most batches are such."""
    selection = select(BATCH, deletes, BAD, hidden=set(), keep_deletes=True)
    column = pa.array(range(4))

    assert selection.take(column) is column


@pytest.mark.parametrize(
    ("found", "skipped", "kept"),
    [
        ([], set(), []),
        ([(3, "value"), (1, "value")], set(), [(1, "value"), (3, "value")]),
        ([(1, "key"), (1, "value"), (1, "headers")], set(), [(1, "key")]),
        ([(1, "key"), (2, "value")], {1}, [(2, "value")]),
    ],
)
def test_one_error_per_message(found, skipped, kept):
    """The first one that is found, in offset order; none of a message that a format skips."""
    bad = [BadMessage(index, stage, "?") for index, stage in found]

    assert [(each.index, each.stage) for each in first_per_message(bad, skipped)] == kept
