"""Columns and types in the words of Spark's ``SqlBaseParser.g4``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

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

from pyspark_upsert_kafka.core.errors import SchemaError

_TOKEN = re.compile(
    r"\s*(?:(?P<word>\w+)|`(?P<name>(?:[^`]|``)+)`|(?P<text>'[^']*'|\"[^\"]*\")|(?P<mark>[^\s`'\"]))"
)


class Cursor:
    """Reads a text from its beginning to its end.

    >>> cursor = Cursor("id BIGINT")
    >>> cursor.name(), cursor.accept("STRING"), cursor.accept("BIGINT")
    ('id', False, True)
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise _error(at, "the quote that begins here does not end")
            kind = str(match.lastgroup)
            self._tokens.append((kind, match[kind], match.start(kind)))
            at = match.end()
        self._tokens.append(("end", "the end", end))
        self._next = 0

    @property
    def word(self) -> str:
        """The next token in capitals if it is a word or a mark; else nothing."""
        kind, text, _ = self._tokens[self._next]
        return text.upper() if kind in ("word", "mark") else ""

    @property
    def is_at_end(self) -> bool:
        """Whether everything is read."""
        return self._tokens[self._next][0] == "end"

    def skip(self) -> None:
        """Reads a token."""
        self._next += 1

    def accept(self, expected: str) -> bool:
        """Reads this word or mark if it stands next."""
        found = self.word == expected
        self._next += found
        return found

    def expect(self, expected: str) -> None:
        """Reads this word or mark; raises SchemaError if something else stands there."""
        if not self.accept(expected):
            self.refuse(f"'{expected}'")

    def name(self) -> str:
        """Reads a name, in backticks or not."""
        kind, text, _ = self._tokens[self._next]
        if kind not in ("word", "name"):
            self.refuse("a column's name")
        self._next += 1
        return text.replace("``", "`") if kind == "name" else text

    def text(self) -> None:
        """Reads a text in quotes."""
        if self._tokens[self._next][0] != "text":
            self.refuse("a text in quotes")
        self._next += 1

    def number(self) -> int:
        """Reads a whole number."""
        text = self.word
        if not text.isdecimal():
            self.refuse("a whole number")
        self._next += 1
        return int(text)

    def refuse(self, expected: str) -> NoReturn:
        """Raises SchemaError with what was expected, and what the next token is instead."""
        kind, text, at = self._tokens[self._next]
        raise _error(at, f"expected {expected}, but found {text if kind == 'end' else repr(text)}")


def _error(at: int, what: str) -> SchemaError:
    return SchemaError(
        f"The columns cannot be read at character {at + 1}: {what}. Columns are written as in Spark, "
        "for example: id BIGINT, name STRING."
    )


_WORDS: dict[str, DataType] = {
    "BOOLEAN": BooleanType(), "TINYINT": ByteType(), "BYTE": ByteType(), "SMALLINT": ShortType(),
    "SHORT": ShortType(), "INT": IntegerType(), "INTEGER": IntegerType(), "BIGINT": LongType(),
    "LONG": LongType(), "FLOAT": FloatType(), "REAL": FloatType(), "DOUBLE": DoubleType(),
    "STRING": StringType(), "BINARY": BinaryType(), "DATE": DateType(), "TIMESTAMP": TimestampType(),
    "TIMESTAMP_LTZ": TimestampType(), "TIMESTAMP_NTZ": TimestampNTZType(), "VARIANT": VariantType(),
}  # fmt: skip
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")
_YEAR_MONTH = ("YEAR", "MONTH")


def spark_columns(text: str) -> StructType:
    """The columns in a text such as ``id BIGINT NOT NULL, name STRING``.

    Raises:
        SchemaError: It is not understood; it names the place and what stands there.

    >>> spark_columns("id BIGINT NOT NULL, `a b` ARRAY<STRUCT<x: DECIMAL(4, 2)>>").simpleString()
    'struct<id:bigint,a b:array<struct<x:decimal(4,2)>>>'
    """
    cursor = Cursor(text)
    columns = _fields(cursor)
    if not cursor.is_at_end:
        cursor.refuse("',' or the end")
    return columns


def _fields(cursor: Cursor) -> StructType:
    fields = [_field(cursor)]
    while cursor.accept(","):
        fields.append(_field(cursor))
    return StructType(fields)


def _field(cursor: Cursor) -> StructField:
    name = cursor.name()
    cursor.accept(":")
    kind, nullable = _type(cursor), True
    if cursor.accept("NOT"):
        cursor.expect("NULL")
        nullable = False
    if cursor.accept("COMMENT"):
        cursor.text()
    return StructField(name, kind, nullable)


def _type(cursor: Cursor) -> DataType:
    word = cursor.word
    if word not in _WORDS and word not in _READERS:
        cursor.refuse("a type of Spark")
    cursor.skip()
    return _WORDS[word] if word in _WORDS else _READERS[word](cursor)


def _array(cursor: Cursor) -> DataType:
    cursor.expect("<")
    element = _type(cursor)
    cursor.expect(">")
    return ArrayType(element)


def _map(cursor: Cursor) -> DataType:
    cursor.expect("<")
    key = _type(cursor)
    cursor.expect(",")
    value = _type(cursor)
    cursor.expect(">")
    return MapType(key, value)


def _struct(cursor: Cursor) -> DataType:
    cursor.expect("<")
    fields = StructType() if cursor.word == ">" else _fields(cursor)
    cursor.expect(">")
    return fields


def _decimal(cursor: Cursor) -> DataType:
    numbers = _numbers(cursor) or [10]
    precision, scale = numbers[0], (numbers[1:] or [0])[0]
    if len(numbers) > 2 or not 0 <= scale <= precision <= 38:
        cursor.refuse("DECIMAL(p, s) with p up to 38 and s up to p before this")
    return DecimalType(precision, scale)


def _sized_text(cursor: Cursor) -> DataType:
    """CHAR and VARCHAR: no text is cut to its length when it is read."""
    if len(_numbers(cursor)) != 1:
        cursor.refuse("a length before this")
    return StringType()


def _numbers(cursor: Cursor) -> list[int]:
    """The numbers in round brackets, if there are any."""
    numbers: list[int] = []
    if cursor.accept("("):
        numbers.append(cursor.number())
        while cursor.accept(","):
            numbers.append(cursor.number())
        cursor.expect(")")
    return numbers


def _interval(cursor: Cursor) -> DataType:
    fields = _DAY_TIME if cursor.word in _DAY_TIME else _YEAR_MONTH
    first = last = _one_of(cursor, fields)
    if cursor.accept("TO"):
        last = _one_of(cursor, fields[first + 1 :]) + first + 1
    kind = DayTimeIntervalType if fields is _DAY_TIME else YearMonthIntervalType
    return kind(first, last)


def _one_of(cursor: Cursor, words: tuple[str, ...]) -> int:
    """Reads one of the words; says which."""
    if cursor.word not in words:
        cursor.refuse(" or ".join(words) or "nothing more of the interval")
    at = words.index(cursor.word)
    cursor.skip()
    return at


_READERS: dict[str, Callable[[Cursor], DataType]] = {
    "ARRAY": _array, "MAP": _map, "STRUCT": _struct, "DECIMAL": _decimal, "DEC": _decimal,
    "NUMERIC": _decimal, "CHAR": _sized_text, "CHARACTER": _sized_text, "VARCHAR": _sized_text,
    "INTERVAL": _interval,
}  # fmt: skip
