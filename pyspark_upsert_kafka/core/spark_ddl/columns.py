"""Columns and types in the words of Spark's ``SqlBaseParser.g4``."""

from __future__ import annotations

from collections.abc import Callable

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

from pyspark_upsert_kafka.core.spark_ddl.cursor import Cursor

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
