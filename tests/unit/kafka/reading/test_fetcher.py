"""How many bytes the headers have of messages that a fetcher has taken."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.reading.fetcher import header_bytes


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
