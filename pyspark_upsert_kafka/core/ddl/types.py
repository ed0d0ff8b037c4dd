"""Types of Flink's SQL, and the Spark types that hold their values; ``core/ddl/spark_columns.py`` reads those that Spark's DDL writes alike.

================================== ====================================================================
Flink                              Spark
================================== ====================================================================
CHAR(n), VARCHAR(n), STRING        STRING; no text is cut to its length when it is read, as in Flink
BINARY(n), VARBINARY(n), BYTES     BINARY
BOOLEAN                            BOOLEAN
TINYINT, SMALLINT, INT, BIGINT     BYTE, SHORT, INT, LONG
FLOAT, DOUBLE [PRECISION]          FLOAT, DOUBLE
DECIMAL, DEC, NUMERIC (p, s)       DECIMAL(p, s); (10, 0) when not given
DATE                               DATE
TIMESTAMP(p)                       TIMESTAMP_NTZ, for p up to 6
TIMESTAMP_LTZ(p)                   TIMESTAMP, for p up to 6
INTERVAL ...                       INTERVAL of the same fields
ARRAY<t>, t ARRAY                  ARRAY
MAP<k, v>, MULTISET<t>, t MULTISET MAP; a multiset maps each element to its number
ROW<...>, ROW(...)                 STRUCT
VARIANT                            VARIANT
================================== ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql.types import (
    ArrayType,
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
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.ddl.tokens import Token, Tokens, check_depth

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
Read = TypeVar("Read")
_DIGITS_IN_SPARK = 6
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")
_YEAR_MONTH = ("YEAR", "MONTH")


def read_type(tokens: Tokens) -> tuple[DataType, bool]:
    """Reads a type, and whether it may be NULL.

    Raises:
        OptionError: It is unknown, or Spark has no counterpart.
    """
    begin = tokens.peek()
    with tokens.one_level(begin) as is_outermost:
        type_ = _type(tokens)
        nullable = read_nullability(tokens)
        while tokens.peek().is_word("ARRAY", "MULTISET"):
            is_array = tokens.next().is_word("ARRAY")
            type_ = ArrayType(type_, nullable) if is_array else _multiset(type_)
            nullable = read_nullability(tokens)
    if is_outermost:  # INT ARRAY ARRAY ... has no brackets
        check_depth(_depth(type_), begin)
    return type_, nullable


def _depth(type_: DataType) -> int:
    """How deep types stand in a type; without a call for each level."""
    level, depth = [type_], 0
    while level:
        depth += 1
        level = [inner for each in level for inner in types_within(each)]
    return depth


def types_within(type_: DataType) -> list[DataType]:
    """The types that a type is made of, one level deep: of fields, of elements, of keys and values.

    >>> types_within(ArrayType(StringType())), types_within(StringType())
    ([StringType()], [])
    """
    if isinstance(type_, ArrayType):
        return [type_.elementType]
    if isinstance(type_, MapType):
        return [type_.keyType, type_.valueType]
    return [field.dataType for field in type_.fields] if isinstance(type_, StructType) else []


def read_nullability(tokens: Tokens) -> bool:
    """Reads whether NULL is allowed: not after NOT NULL; after NULL or nothing, it is."""
    if tokens.accept("NOT"):
        tokens.expect("NULL")
        return False
    tokens.accept("NULL")
    return True


def _type(tokens: Tokens) -> DataType:
    begin = tokens.peek()
    if begin.kind != "word":
        tokens.refuse("expected a type")
    word = begin.text.upper()
    if word not in _WORDS and word not in _READERS:
        why = _NO_COUNTERPART.get(word, "it is no type of Flink's SQL that is known here")
        raise begin.place.error(f"type {word} cannot be read or written: {why}.")
    tokens.next()
    return _WORDS[word] if word in _WORDS else _READERS[word](tokens, begin)


def in_angle_brackets(tokens: Tokens, count: int, read: Callable[[Tokens], Read]) -> list[Read]:
    """Reads that many types in angle brackets.

    Args:
        tokens: The tokens, at the bracket that opens.
        count: How many types.
        read: Reads one.
    """
    tokens.expect_mark("<")
    found = [read(tokens)]
    for _ in range(count - 1):
        tokens.expect_mark(",")
        found.append(read(tokens))
    tokens.expect_mark(">")
    return found


def _array(tokens: Tokens, _: Token) -> DataType:
    ((type_, nullable),) = in_angle_brackets(tokens, 1, read_type)
    return ArrayType(type_, nullable)


def _map(tokens: Tokens, _: Token) -> DataType:
    (key, _nullable_key), (value, nullable) = in_angle_brackets(tokens, 2, read_type)
    return MapType(key, value, nullable)


def _multiset_of(tokens: Tokens, _: Token) -> DataType:
    return _multiset(in_angle_brackets(tokens, 1, read_type)[0][0])


def _multiset(type_: DataType) -> DataType:
    return MapType(type_, IntegerType(), valueContainsNull=False)


def _row(tokens: Tokens, _: Token) -> DataType:
    closing = ">" if tokens.accept_mark("<") else ")"
    if closing == ")":
        tokens.expect_mark("(", "'<' or '('")
    fields = [_field(tokens)]
    while tokens.accept_mark(","):
        fields.append(_field(tokens))
    tokens.expect_mark(closing, f"',' or '{closing}'")
    return StructType(fields)


def _field(tokens: Tokens) -> StructField:
    name = tokens.name("a field's name")
    type_, nullable = read_type(tokens)
    if tokens.peek().kind == "text":  # its description
        tokens.next()
    return StructField(name.text, type_, nullable)


def read_numbers(tokens: Tokens, what: str, at_most: int = 1) -> list[int]:
    """Reads the numbers in round brackets, if there are any; an error says ``what`` they are."""
    begin = tokens.peek()
    if not begin.is_mark("("):
        return []
    numbers = [tokens.number(what) for _ in tokens.separated()]
    if len(numbers) > at_most:
        raise begin.place.error(f"expected {at_most} at most, but found {len(numbers)} numbers.")
    return numbers


def _sized(tokens: Tokens, begin: Token) -> DataType:
    """A text or bytes: nothing is cut to the length."""
    tokens.accept("VARYING")
    read_numbers(tokens, "a length")
    return BinaryType() if begin.is_word("BINARY", "VARBINARY") else StringType()


def read_decimal(tokens: Tokens, begin: Token) -> DataType:
    """Reads precision and scale behind the word DECIMAL, which is the token ``begin``; without them they are (10, 0)."""
    precision, scale = [*(read_numbers(tokens, "a precision", at_most=2) or [10]), 0][:2]
    if not 1 <= precision <= 38 or scale > precision:
        raise begin.place.error("expected DECIMAL(p, s) with p from 1 to 38 and s from 0 to p.")
    return DecimalType(precision, scale)


def _double(tokens: Tokens, _: Token) -> DataType:
    tokens.accept("PRECISION")
    return DoubleType()


def _timestamp(tokens: Tokens, begin: Token) -> DataType:
    _check_digits(read_numbers(tokens, "a precision"), begin)
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
    _check_digits(read_numbers(tokens, "a precision"), begin)
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
    return read_interval(tokens, has_precision=True)


def read_interval(tokens: Tokens, *, has_precision: bool) -> DataType:
    """Reads the fields behind the word INTERVAL: the only one, or the first and the last."""
    first = last = _interval_field(tokens, (*_DAY_TIME, *_YEAR_MONTH), has_precision)
    fields = _DAY_TIME if first in _DAY_TIME else _YEAR_MONTH
    if tokens.accept("TO"):
        last = _interval_field(tokens, fields[fields.index(first) + 1 :], has_precision)
    type_ = DayTimeIntervalType if fields is _DAY_TIME else YearMonthIntervalType
    return type_(fields.index(first), fields.index(last))


def _interval_field(tokens: Tokens, allowed: tuple[str, ...], has_precision: bool) -> str:
    if not tokens.peek().is_word(*allowed):
        tokens.refuse(f"expected {' or '.join(allowed) or 'no TO'}")
    field = tokens.next().text.upper()
    if has_precision:
        read_numbers(tokens, "a precision", at_most=2)
    return field


_READERS: dict[str, Callable[[Tokens, Token], DataType]] = {
    "ARRAY": _array, "MAP": _map, "MULTISET": _multiset_of, "ROW": _row,
    "CHAR": _sized, "CHARACTER": _sized, "VARCHAR": _sized, "BINARY": _sized, "VARBINARY": _sized,
    "DECIMAL": read_decimal, "DEC": read_decimal, "NUMERIC": read_decimal, "DOUBLE": _double,
    "TIMESTAMP": _timestamp, "TIMESTAMP_LTZ": _timestamp_ltz, "INTERVAL": _interval,
}  # fmt: skip
