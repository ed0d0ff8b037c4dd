"""Floats as text: Java's layout, and no digit too many."""

from __future__ import annotations

import re
import struct
from math import inf, nan

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.formats.text_columns import float_texts
from tests.laws import law

# By Double.toString and Float.toString of Java 25.
DOUBLES = [
    (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-12.5, "-12.5"), (0.001, "0.001"), (9.999e-4, "9.999E-4"),
    (9999999.999, "9999999.999"), (1e7, "1.0E7"), (-12345678.9, "-1.23456789E7"), (1e16, "1.0E16"),
    (1e20, "1.0E20"), (1e23, "1.0E23"), (2e23, "2.0E23"), (1.5e-9, "1.5E-9"), (2.0**-44, "5.684341886080802E-14"),
    (5e-324, "4.9E-324"), (1e-323, "9.9E-324"), (1.5e-323, "1.5E-323"), (2.2250738585072014e-308,
    "2.2250738585072014E-308"), (1.7976931348623157e308, "1.7976931348623157E308"), (nan, "NaN"), (inf, "Infinity"),
    (-inf, "-Infinity"), (None, None),
]  # fmt: skip
FLOATS = [
    (1e10, "1.0E10"), (16777216.0, "1.6777216E7"), (1e7, "1.0E7"), (9999999.0, "9999999.0"), (2.0**-149, "1.4E-45"),
    (2.0**-148, "2.8E-45"), (3.4028234663852886e38, "3.4028235E38"), (0.10000000149011612, "0.1"),
    (0.0010000000474974513, "0.001"), (99999997952.0, "1.0E11"), (nan, "NaN"), (-inf, "-Infinity"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "table"), [(pa.float64(), DOUBLES), (pa.float32(), FLOATS)], ids=["double", "float"]
)
def test_the_spelling_of_java(kind, table):
    """Each number has Java's spelling, alone and whatever stands beside it."""
    numbers, texts = [number for number, _ in table], [text for _, text in table]
    assert float_texts(pa.array(numbers, kind)).to_list() == texts
    for number, text in table:
        assert float_texts(pa.array([number], kind)).to_list() == [text]


LAYOUT = re.compile(r"-?(?:\d{1,7}\.\d+|[1-9]\.\d+E-?\d+)")


@example(
    numbers=[
        0.0,
        -0.0,
        5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        1e7,
        9999999.999999998,
        1e-3,
        0.0009999999999999998,
        2.0**53,
        2.0**63,
        1e16,
        1e22,
        1e23,
        2e-3,
        1.0,
    ]
)
@law(300)
@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_texts_are_the_numbers(numbers):
    """A text is the number and no longer than Python's, which has the fewest digits."""
    for number, text in zip(numbers, float_texts(pa.array(numbers)).to_list(), strict=True):
        assert struct.pack("d", float(text)) == struct.pack("d", number)
        assert LAYOUT.fullmatch(text)
        assert len(digits(text)) <= max(2, len(digits(repr(number))))


def digits(text):
    """The digits of a number that matter."""
    return text.lower().partition("e")[0].replace(".", "").strip("-0")
