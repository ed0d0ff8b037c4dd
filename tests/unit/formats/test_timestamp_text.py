"""Dates and timestamps as text, by value and by column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.formats.timestamp_text import (
    OtherStandardError,
    TimestampText,
    date_texts,
    dates,
    days,
)
from tests.laws import law, pinned
from tests.unit.formats.json.corpus import DAY, FIRST, LAST, TEXTS

SPELLINGS = [TimestampText(s, zoned=z) for s in ("SQL", "ISO-8601") for z in (True, False)]


def by_value(spelling: TimestampText, text: str) -> int | None:
    """Microseconds, or None for what is refused."""
    try:
        return spelling.micros(text)
    except ValueError:
        return None


def by_column(spelling: TimestampText, text: str) -> int | None:
    """The same by the columnar way."""
    try:
        return spelling.column(pa.array([text, None])).cast(pa.int64())[0].as_py()
    except ValueError:
        return None


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("text", TEXTS)
def test_columns_read_what_values_read(spelling, text):
    """The columnar way may refuse, but never reads a text otherwise."""
    if by_column(spelling, text) is not None:
        assert by_column(spelling, text) == by_value(spelling, text)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pinned(
    "micros",
    [
        FIRST,
        LAST,
        0,
        1,
        -1,
        999,
        1_000,
        999_999,
        1_000_000,
        -1_000_000,
        60_000_000,
        1_706_659_200_120_000,
    ],
)
@law(100)
@given(micros=st.integers(FIRST, LAST))
def test_what_is_written_is_read(spelling, micros):
    """Writing and reading, by column and by value, are inverse in every spelling."""
    kind = pa.timestamp("us", "UTC") if spelling.zoned else pa.timestamp("us")
    (body,) = spelling.texts(pa.array([micros], kind)).to_pylist()
    text = body + spelling.suffix
    assert by_value(spelling, text) == micros
    assert by_column(spelling, text) == micros


@pinned("day", [FIRST // DAY, LAST // DAY, 0, -1, 789, 11_016, 11_017])
@law(200)
@given(day=st.integers(FIRST // DAY, LAST // DAY))
def test_dates_are_inverse_too(day):
    """A date's text reads back, by value and by column."""
    (text,) = date_texts(pa.array([day], pa.date32())).to_pylist()
    assert days(text) == day
    assert dates(pa.array([text])).cast(pa.int32()).to_pylist() == [day]


@pytest.mark.parametrize("text", TEXTS)
def test_date_columns_read_what_values_read(text):
    """A text that is no date is refused by both."""
    try:
        expected = days(text)
    except ValueError:
        expected = None
    try:
        (found,) = dates(pa.array([text])).cast(pa.int32()).to_pylist()
    except ValueError:
        found = None
    assert found == expected


def test_other_standard_is_named():
    """A text in the spelling of the other standard says which one that is."""
    with pytest.raises(OtherStandardError) as raised:
        TimestampText("SQL", zoned=True).micros("2024-01-31T12:30:00Z")
    assert raised.value.standard == "ISO-8601"
    with pytest.raises(OtherStandardError) as raised:
        TimestampText("ISO-8601", zoned=False).micros("2024-01-31 12:30:00")
    assert raised.value.standard == "SQL"


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("2024-01-31T12:30:00", True),
        ("2024-01-31 12:30:00.1234567890", False),
        ("2024-02-31 12:30:00", False),
        ("2024-02-31T12:30:00", False),
    ],
)
def test_a_column_says_whether_the_other_standard_may_read_it(text, is_other):
    """Only where all are timestamps: what is none in one standard is none in the other."""
    with pytest.raises(ValueError) as raised:
        TimestampText("SQL", zoned=False).column(pa.array([text]))
    assert isinstance(raised.value, OtherStandardError) == is_other
    if is_other:
        TimestampText("ISO-8601", zoned=False).column(pa.array([text]))


def test_nulls_stay_nulls():
    """Columns of nulls, and none at all, pass both ways."""
    for spelling in SPELLINGS:
        for texts in (pa.nulls(2, pa.string()), pa.array([], pa.string())):
            column = spelling.column(texts)
            assert column.null_count == len(texts)
            assert spelling.texts(column).null_count == len(texts)
    assert dates(pa.nulls(1, pa.string())).null_count == 1


def test_digits_behind_the_sixth_are_cut_off_where_there_are_some():
    """Beside values with fewer digits, and beside NULL."""
    fractions = ["", ".1", ".123456", ".1234567", ".123456789"]
    texts = [None, *(f"2024-01-31 12:30:00{fraction}" for fraction in fractions)]
    spelling = TimestampText("SQL", zoned=False)

    assert spelling.column(pa.array(texts)).cast(pa.int64()).to_pylist() == [
        None if text is None else spelling.micros(text) for text in texts
    ]
