"""Times with a zone, as text and as ``datetime``, and what is no such time."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from pyspark_upsert_kafka.core.clock import epoch_ms, epoch_ms_of


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01z", 1_000),
        ("1970-01-01 00:00:01+00:00", 1_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.5Z", 500),
        ("1970-01-01T00:00:00.123456Z", 124),  # what is before it stays before it
        ("1970-01-01T00:00:00.000001-00:30", 1_800_001),
        ("1969-12-31T23:59:59.9995Z", 0),
        ("2026-01-31T12:00Z", 1_769_860_800_000),
        ("1970-01-01T00:00:20.0000001Z", 20_001),
        ("1970-01-01T00:00:20.0000000Z", 20_000),
        ("1970-01-01T01:00:59.9999999+01:00", 60_000),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    """A time with a zone is milliseconds, rounded up."""
    assert epoch_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2026-01-31T12:00:00", "has no zone: write 2026-01-31T12:00:00Z for UTC"),
        ("yesterday", "expected a time such as 2026-01-31T12:00:00Z, but is 'yesterday'"),
        ("2026-02-30T12:00:00Z", "expected a time such as"),
        ("9999-12-31T23:59:59.9999999Z", "expected a time such as"),
        ("2023-11-14Z", "expected a time such as"),
        ("2023-11-14", "expected a time such as"),
        ("2023-11-14+01:00", "expected a time such as"),
        ("1969-12-31T23:59:59Z", "expected a time from 1970 on, but is '1969-12-31T23:59:59Z'"),
        ("", "expected a time such as"),
    ],
)
def test_no_times(text: str, sentence: str) -> None:
    """A time without a zone, and what is no time, is refused."""
    with pytest.raises(ValueError) as error:
        epoch_ms(text)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("time", "milliseconds"),
    [
        (datetime(1970, 1, 1, tzinfo=timezone.utc), 0),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=timezone.utc), 1_001),
        (datetime(2026, 1, 31, 12, tzinfo=timezone.utc), 1_769_860_800_000),
    ],
)
def test_times_of_programs(time: datetime, milliseconds: int) -> None:
    """A ``datetime`` with a zone is the same time as its text."""
    assert epoch_ms_of(time) == epoch_ms(time.isoformat()) == milliseconds


@pytest.mark.parametrize(
    ("time", "sentence"),
    [
        (datetime(2026, 1, 31), "has no zone: give it one, as in tzinfo=timezone.utc"),  # noqa: DTZ001
        (datetime(1969, 12, 31, tzinfo=timezone.utc), "expected a time from 1970 on"),
    ],
)
def test_no_times_of_programs(time: datetime, sentence: str) -> None:
    """Without a zone it could be any of a day's times."""
    with pytest.raises(ValueError, match=sentence):
        epoch_ms_of(time)
