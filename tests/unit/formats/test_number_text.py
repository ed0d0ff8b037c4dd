"""Text to numbers: exact, and refused where it would not be."""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.formats import text_columns, text_values
from tests.laws import law, pinned

DIGITS = st.from_regex(
    r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


EDGES = [
    "0", "-0", "1", "1.0", "10e-1", "1e2", "0.5", "-0.5", "1.5", "2.5", "0.005", "-0.005", "0.0049999", "0.015", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "99999999999999999999999999999999999999", "99999999999999999999999999999999999999.5", "1e37", "1e38",
    "16777217", "16777217.0000001", "1.00000017881393432617187499", "1.000000178813934326171875", "7.006492321624086e-46", "1e-46", "3.4028235e38",
    "3.4028235677973366e38", "3.4028236e38", "-1e39", "0.000000000000000000000000000000000000005",
]  # fmt: skip
"""Where a range ends, and where a number lies in the middle of two."""


@pinned("text", EDGES)
@law(300)
@given(text=DIGITS)
def test_numbers_are_exact_or_refused(text):
    """An integer is the number that stands there, or an error; no digit is lost on the way."""
    exact = Fraction(Decimal(text))
    try:
        value = text_values.integer(text, 64)
    except ValueError:
        assert exact.denominator != 1 or not -(2**63) <= exact < 2**63
    else:
        assert value == exact


@pinned("text", EDGES, scale=0)
@pinned("text", EDGES, scale=2)
@pinned("text", EDGES, scale=38)
@law(300)
@given(text=DIGITS, scale=st.integers(0, 38))
def test_decimals_are_rounded_half_up(text, scale):
    """A decimal is the nearest one of its scale, ties away from zero, or an error."""
    exact = Fraction(Decimal(text)) * 10**scale
    nearest = int(abs(exact) + Fraction(1, 2)) * (1 if exact >= 0 else -1)
    try:
        value = text_values.decimal(text, 38, scale)
    except ValueError:
        assert abs(nearest) >= 10**38
    else:
        assert Fraction(value) * 10**scale == nearest


@pinned("text", EDGES)
@law(300)
@given(text=DIGITS)
def test_floats_are_the_nearest(text):
    """A FLOAT is rounded once, from the text: no other 32-bit float is nearer."""
    exact = Fraction(Decimal(text))
    try:
        value = text_values.single(text)
    except ValueError:
        assert abs(exact) > Fraction(3.4028235e38)
    else:
        bits = struct.unpack("i", struct.pack("f", abs(value)))[0]
        around = [
            struct.unpack("f", struct.pack("i", b))[0] for b in (bits - 1, bits + 1) if b >= 0
        ]
        distance = abs(Fraction(value) - exact)
        assert all(distance <= abs(Fraction(n) - abs(exact)) for n in around if n < 3.5e38)
    assert text_values.double(text) == float(text)


JAVA = [
    ("0", "0"), ("0.00", "0"), ("1.50", "1.5"), ("100", "1E+2"), ("-120.0", "-1.2E+2"),
    ("0.000001", "0.000001"), ("0.0000001", "1E-7"), ("0.00000012", "1.2E-7"),
    ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
]  # fmt: skip


@pytest.mark.parametrize(("plain", "java"), JAVA)
def test_decimals_as_java_writes_them(plain, java):
    """BigDecimal.stripTrailingZeros().toString(), to the letter."""
    assert text_columns.java_text(plain) == java
    assert Decimal(java) == Decimal(plain)


@pytest.mark.parametrize(
    "text", ["", "-", ".", "1_0", " 1", "0x1", "\uff11", "NaN1", "1e", "infinity"]
)
def test_what_is_no_number(text):
    """Only what JSON and Java call a number is one."""
    for read in (text_values.double, text_values.single, lambda t: text_values.integer(t, 64)):
        with pytest.raises(ValueError):
            read(text)


def test_huge_exponents_cost_nothing():
    """An exponent is never spelled out in digits."""
    with pytest.raises(ValueError, match="whole number"):
        text_values.integer("1e999999999", 64)
    with pytest.raises(ValueError, match="DECIMAL"):
        text_values.decimal("1e999999999", 38, 0)
    assert text_values.decimal("1e-999999999", 38, 2) == 0
    assert text_values.integer("0e999999999", 64) == 0
