"""Types that hold no other types: single words, and those with numbers in brackets or more words."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.ddl.cursor import Tokens
from pyspark_upsert_kafka.core.ddl.tokens import Token

_WORDS: dict[str, DataType] = {
    "BOOLEAN": BooleanType(), "TINYINT": ByteType(), "SMALLINT": ShortType(), "INT": IntegerType(),
    "INTEGER": IntegerType(), "BIGINT": LongType(), "FLOAT": FloatType(), "STRING": StringType(),
    "BYTES": BinaryType(), "DATE": DateType(), "VARIANT": VariantType(),
}  # fmt: skip
_NO_COUNTERPART = {
    "TIME": "no format here carries a time of day: where messages hold it as text, declare STRING",
    "RAW": "its bytes can be read by Flink's serializer only",
    "NULL": "declare the type that the column is meant to have",
    "STRUCTURED": "declare its fields with ROW<...>",
    "BITMAP": "its bytes can be read by Flink only: declare BYTES",
}
_DIGITS_IN_SPARK = 6
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")
_YEAR_MONTH = ("YEAR", "MONTH")


def read_simple_type(tokens: Tokens) -> DataType:
    """A type that holds no other types.

    Raises:
        OptionError: It is unknown, or Spark has no counterpart.
    """
    begin = tokens.peek()
    if begin.kind != "word":
        tokens.refuse("expected a type")
    word = begin.text.upper()
    if word in _WORDS:
        tokens.next()
        return _WORDS[word]
    if word in _READERS:
        tokens.next()
        return _READERS[word](tokens, begin)
    why = _NO_COUNTERPART.get(word, "it is no type of Flink's SQL that is known here")
    raise begin.place.error(f"type {word} cannot be read or written: {why}.")


def _text(tokens: Tokens, _: Token) -> DataType:
    tokens.accept("VARYING")
    _numbers(tokens, "a length")
    return StringType()


def _bytes(tokens: Tokens, _: Token) -> DataType:
    tokens.accept("VARYING")
    _numbers(tokens, "a length")
    return BinaryType()


def _numbers(tokens: Tokens, what: str, at_most: int = 1) -> list[int]:
    """The numbers in round brackets, if there are any."""
    begin = tokens.peek()
    if not begin.is_mark("("):
        return []
    numbers = [tokens.number(what) for _ in tokens.separated()]
    if len(numbers) > at_most:
        raise begin.place.error(f"expected {at_most} at most, but found {len(numbers)} numbers.")
    return numbers


def _decimal(tokens: Tokens, begin: Token) -> DataType:
    numbers = _numbers(tokens, "a precision", at_most=2) or [10]
    precision, scale = numbers[0], (numbers[1:] or [0])[0]
    if not 1 <= precision <= 38 or scale > precision:
        raise begin.place.error("expected DECIMAL(p, s) with p from 1 to 38 and s from 0 to p.")
    return DecimalType(precision, scale)


def _double(tokens: Tokens, _: Token) -> DataType:
    tokens.accept("PRECISION")
    return DoubleType()


def _timestamp(tokens: Tokens, begin: Token) -> DataType:
    _check_digits(_numbers(tokens, "a precision"), begin)
    if tokens.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return TimestampType()
    if tokens.accept("WITH", "TIME", "ZONE"):
        raise begin.place.error(
            "type TIMESTAMP WITH TIME ZONE cannot be read or written: Spark keeps no zone with a "
            "time. Declare TIMESTAMP_LTZ, a point in time."
        )
    tokens.accept("WITHOUT", "TIME", "ZONE")
    return TimestampNTZType()


def _timestamp_ltz(tokens: Tokens, begin: Token) -> DataType:
    _check_digits(_numbers(tokens, "a precision"), begin)
    return TimestampType()


def _check_digits(digits: list[int], begin: Token) -> None:
    if digits and digits[0] > 9:
        raise begin.place.error(f"expected {begin.text.upper()}(p) with p from 0 to 9.")
    if digits and digits[0] > _DIGITS_IN_SPARK:
        name = f"{begin.text.upper()}({digits[0]})"
        raise begin.place.error(
            f"type {name} cannot be read or written: Spark has microseconds and would lose digits. "
            f"Declare {begin.text.upper()}({_DIGITS_IN_SPARK})."
        )


def _interval(tokens: Tokens, _: Token) -> DataType:
    first = _interval_field(tokens, (*_DAY_TIME, *_YEAR_MONTH))
    fields = _DAY_TIME if first in _DAY_TIME else _YEAR_MONTH
    last = first
    if tokens.accept("TO"):
        last = _interval_field(tokens, fields[fields.index(first) + 1 :])
    begin, end = fields.index(first), fields.index(last)
    is_day_time = fields is _DAY_TIME
    return DayTimeIntervalType(begin, end) if is_day_time else YearMonthIntervalType(begin, end)


def _interval_field(tokens: Tokens, allowed: tuple[str, ...]) -> str:
    if not tokens.peek().is_word(*allowed):
        tokens.refuse(f"expected {' or '.join(allowed) or 'no TO'}")
    field = tokens.next().text.upper()
    _numbers(tokens, "a precision", at_most=2)
    return field


_READERS: dict[str, Callable[[Tokens, Token], DataType]] = {
    "CHAR": _text, "CHARACTER": _text, "VARCHAR": _text, "BINARY": _bytes, "VARBINARY": _bytes,
    "DECIMAL": _decimal, "DEC": _decimal, "NUMERIC": _decimal, "DOUBLE": _double,
    "TIMESTAMP": _timestamp, "TIMESTAMP_LTZ": _timestamp_ltz, "INTERVAL": _interval,
}  # fmt: skip
