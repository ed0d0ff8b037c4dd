"""How many bytes the headers have of messages that a fetcher has taken."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.kafka.range_fetch import BATCH_BYTES, Fetched, header_bytes
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], 0),
        ([(), [("a", None), ("b", b"cd")]], 4),
        ([[("a", b"bcd")], ()] * 1_000, 4_000),
        ([[("a", b"x" * 1_000_000)]], 1_000_001),
    ],
)
def test_bytes_of_headers(headers, expected):
    """Names and values, of a header without a value its name; of many messages about, by a sample."""
    assert header_bytes(headers) == pytest.approx(expected, rel=0.02)


def test_what_has_no_messages_has_no_bytes():
    """A client that says nothing of bytes has none to tell of."""
    nothing = BytesColumn.of([])

    assert Fetched(RawBatch("t", 0, nothing, nothing, []), 5).size_bytes == 0


@pytest.mark.parametrize(("count", "most"), [(10, 10), (10_000, 80)])
def test_few_of_many_messages_are_looked_at(count: int, most: int):
    """To count the bytes of all would cost time."""
    looked_at = 0

    class Counted(list):
        """One header."""

        def __iter__(self):
            nonlocal looked_at
            looked_at += 1
            return super().__iter__()

    header_bytes([Counted([("a", b"b")]) for _ in range(count)])

    assert min(count, 50) <= looked_at <= most


def test_a_batch_takes_no_more_messages_at_sixteen_mebibytes():
    """Several of them are in memory at a time, those of Arrow and of Python among them."""
    assert BATCH_BYTES == 2**24
