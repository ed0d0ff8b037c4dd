"""Rows to CSV messages: the spelling of each type, quotes, nulls, and what cannot be written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from math import inf, nan

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import EncodeError
from tests.unit.formats.csv.codecs import encoder, written
from tests.unit.formats.json.codecs import batch, columns

TEXT = StringType()
PAIR = StructType([StructField("x", IntegerType()), StructField("y", StringType())])
NOON = dt.datetime(2024, 1, 31, 12, 30)  # noqa: DTZ001
TESTS = {"escape_character": "*", "quote_character": "'", "field_delimiter": ";"}


@pytest.mark.parametrize(
    ("kind", "value", "field"),
    [
        (LongType(), -(2**63), "-9223372036854775808"),
        (BooleanType(), True, "true"),
        (DoubleType(), 1.5, "1.5"),
        (DoubleType(), nan, "NaN"),
        (DoubleType(), inf, "Infinity"),
        (DoubleType(), -inf, "-Infinity"),
        (DoubleType(), -0.0, "-0.0"),
        (FloatType(), 0.1, "0.1"),
        (DecimalType(10, 2), Decimal("123.40"), "123.40"),
        (DecimalType(10, 2), Decimal("100.00"), "100.00"),
        (DecimalType(38, 0), Decimal(123400000000000000000000000001), "123400000000000000000000000001"),
        (BinaryType(), b"\x6b\x03\x0b", "awML"),
        (BinaryType(), b"\xfb\xff", '"+/8="'),
        (DateType(), dt.date(2024, 1, 31), "2024-01-31"),
        (TimestampType(), NOON.replace(tzinfo=dt.timezone.utc), '"2024-01-31 12:30:00Z"'),
        (TimestampNTZType(), NOON.replace(microsecond=120000), '"2024-01-31 12:30:00.12"'),
        (ArrayType(TEXT), ["a", "b"], "a;b"),
        (ArrayType(TEXT), ["a b", "c"], '"a b;c"'),
        (ArrayType(IntegerType()), [1, None, 3], "1;;3"),
        (ArrayType(TEXT), [], ""),
        (PAIR, (42, "Hello"), "42;Hello"),
        (PAIR, (None, None), ";"),
        (LongType(), None, ""),
        (TEXT, None, ""),
        (PAIR, None, ""),
    ],
)  # fmt: skip
def test_the_spelling_of_each_type(kind, value, field):
    """Each type has Flink's spelling."""
    assert written(kind, value) == [field]
    assert written(kind, value, value) == [field] * 2


def test_decimals_in_scientific_notation():
    """Decimals are as short as they can be when that is wanted; no number is quoted."""
    short = {"write_bigdecimal_in_scientific_notation": True}
    assert written(DecimalType(10, 2), Decimal("100.00"), **short) == ["1E+2"]
    assert written(DecimalType(10, 2), Decimal("1.50"), **short) == ["1.5"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("abc", "abc"),
        ("", ""),
        ("a-b", "a-b"),
        ("a b", '"a b"'),
        ("a+b", '"a+b"'),
        ("#", '"#"'),
        ("a,b", '"a,b"'),
        ('a"b', '"a""b"'),
        ("a\r\nb", '"a\r\nb"'),
        ("é" * 24, "é" * 24),
        ("é" * 25, '"' + "é" * 25 + '"'),
        ("a" * 22 + "😀", "a" * 22 + "😀"),
        ("a" * 23 + "😀", '"' + "a" * 23 + '😀"'),
    ],
)
def test_texts_are_quoted_as_jackson_does(text, field):
    """Long texts and those with a character up to the comma are quoted."""
    assert written(TEXT, text) == [field]
    assert written(TEXT, text, "x", None) == [field, "x", ""]


@pytest.mark.parametrize(
    ("kind", "value", "field"),
    [
        (TEXT, "123'4*", "'123''4**'"),
        (TEXT, "a;b'c", "'a;b''c'"),
        (TEXT, "12", "'12'"),
        (IntegerType(), 12, "12"),
        (TEXT, "null", "null"),
    ],
)
def test_escapes_and_other_characters(kind, value, field):
    """The quote and the escape character are doubled; digits come before the semicolon."""
    assert written(kind, value, **TESTS) == [field]


def test_flinks_own_example():
    """The messages of Flink's ``testSerializationProperties``."""
    schema = columns(f0=TEXT, f1=IntegerType(), f2=TEXT)
    rows = batch(schema, ("Test", 12, "Hello"), ("Test", 12, "2019-12-26 12:12:12"))
    first, second = encoder(schema, quote_character="#").encode(rows)
    assert (first, second) == (b"Test,12,Hello", b"Test,12,#2019-12-26 12:12:12#")
    assert (
        encoder(schema, disable_quote_character=True).encode(rows)[1]
        == b"Test,12,2019-12-26 12:12:12"
    )


def test_numbers_are_quoted_when_the_delimiter_is_in_them():
    """Flink writes -5 bare where the delimiter is a minus sign, and then reads two fields."""
    assert written(IntegerType(), -5, field_delimiter="-") == ['"-5"']


@pytest.mark.parametrize(
    ("literal", "field"), [("null", "null"), ("", ""), ("n a", "n a"), ("n,a", '"n,a"')]
)
def test_the_null_literal_is_quoted_only_when_it_must_be(literal, field):
    """NULL is the literal as it stands, in every type."""
    schema = columns(a=TEXT, b=LongType(), c=ArrayType(TEXT))
    (message,) = encoder(schema, null_literal=literal).encode(batch(schema, (None, None, None)))
    assert message.decode() == ",".join([field] * 3)


def test_a_message_is_never_empty():
    """Where a lone field is empty it is quoted: an empty message is no record."""
    schema = columns(c=TEXT)
    assert encoder(schema).encode(batch(schema, ("",), (None,), ("a",))) == [b'""', b'""', b"a"]
    with pytest.raises(
        EncodeError, match="Column 'c' cannot be written: its message would be empty"
    ):
        encoder(schema, disable_quote_character=True).encode(batch(schema, ("",)))


def test_no_rows_are_no_messages():
    """An empty batch is written as no message."""
    schema = columns(a=TEXT, b=LongType(), c=ArrayType(TEXT), d=PAIR)
    assert encoder(schema).encode(batch(schema)) == []


@pytest.mark.parametrize("kind", [TEXT, IntegerType()])
def test_a_key_cannot_be_the_null_literal(kind):
    """A key that reads back as NULL would be another key."""
    value = "0" if kind is TEXT else 0
    with pytest.raises(
        EncodeError, match="Column 'c' cannot be written: '0' is the 'null-literal'"
    ):
        written(kind, value, side="key", null_literal="0")
    assert written(kind, value, null_literal="0") == ["0"]


@pytest.mark.parametrize(
    ("kind", "value", "options", "reason"),
    [
        (TEXT, "a,b", {"disable_quote_character": True}, "a character that needs quotes"),
        (TEXT, "a\nb", {"disable_quote_character": True}, "a character that needs quotes"),
        (ArrayType(TEXT), ["a;b"], {}, "an element holds ';', the 'array-element-delimiter'"),
        (ArrayType(TEXT), [None], {"null_literal": "a;"}, "an element holds ';'"),
        (PAIR, (1, ";"), {}, "an element holds ';'"),
        (ArrayType(TEXT), [" "], {}, "a lone element that is blank or NULL"),
        (ArrayType(TEXT), [None], {"null_literal": "null"}, "a lone element that is blank or NULL"),
        (
            ArrayType(TEXT),
            ["", ""],
            {"array_element_delimiter": " "},
            "elements whose text together",
        ),
        (ArrayType(TEXT), ["a", "b"], {"null_literal": "a;b"}, "elements whose text together is"),
        (PAIR, (None, ""), {"array_element_delimiter": "\t"}, "elements whose text together is"),
        (DateType(), -800_000, {}, "expected a year from 0001 to 9999"),
    ],
)
def test_what_nobody_could_read_back_is_an_error(kind, value, options, reason):
    """Flink writes these, and what it reads back is something else."""
    with pytest.raises(EncodeError) as error:
        written(kind, value, **options)
    assert str(error.value).startswith("Column 'c' cannot be written: ")
    assert reason in str(error.value)
