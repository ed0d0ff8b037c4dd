"""How many bytes messages have that a fetcher has taken."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.reading.fetcher import header_bytes, key_bytes


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], 0),
        ([None, b"", b"abc"], 3),
        ([b"x" * 1_000_000, b"k"], 1_000_001),
        ([b"abc"] * 2_000, 6_000),
        ([b"abc", None] * 1_000, 3_000),
    ],
)
def test_bytes_of_keys(keys, expected):
    """Of a few they are counted; of many about, by a sample."""
    assert key_bytes(keys) == pytest.approx(expected, rel=0.02)


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
    """Names and values, of a header without a value its name."""
    assert header_bytes(headers) == pytest.approx(expected, rel=0.02)
