"""Columns as Spark's DDL writes them, in the words of its ``SqlBaseParser.g4``; Spark's own parser needs a JVM."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
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
)

from pyspark_upsert_kafka.core.ddl.tokens import Dialect, Place, Token, Tokens
from pyspark_upsert_kafka.core.ddl.types import (
    in_angle_brackets,
    read_decimal,
    read_interval,
    read_numbers,
)
from pyspark_upsert_kafka.core.errors import SchemaError, UpsertKafkaError


class _Character(Place):
    """A place in columns, which are mostly one line: ``column`` counts the characters of the whole text."""

    def error(self, sentence: str) -> UpsertKafkaError:
        return SchemaError(
            f"The columns cannot be read at character {self.column}: {sentence} Columns are written as in Spark, "
            "for example: id BIGINT, name STRING."
        )


_SPARK = Dialect(
    words=r"\d*[^\W\d]\w*",
    comments=r"--(?:\\\n|[^\r\n])*|/\*[\s\S]*?\*/",
    name_quotes="`",
    text_quotes="'\"",
    places_in=lambda _: lambda offset: _Character(1, offset + 1),
)
_DIRECTION = re.compile(r"[\w`)\]'\"]\s+(asc|desc)\s*$", re.IGNORECASE)
_WORDS: dict[str, DataType] = {
    "BOOLEAN": BooleanType(), "TINYINT": ByteType(), "BYTE": ByteType(), "SMALLINT": ShortType(),
    "SHORT": ShortType(), "INT": IntegerType(), "INTEGER": IntegerType(), "BIGINT": LongType(),
    "LONG": LongType(), "FLOAT": FloatType(), "REAL": FloatType(), "DOUBLE": DoubleType(),
    "STRING": StringType(), "BINARY": BinaryType(), "DATE": DateType(), "TIMESTAMP": TimestampType(),
    "TIMESTAMP_LTZ": TimestampType(), "TIMESTAMP_NTZ": TimestampNTZType(), "VARIANT": VariantType(),
}  # fmt: skip


def spark_columns(text: str) -> StructType:
    """The columns in a text such as ``id BIGINT NOT NULL, name STRING``.

    Raises:
        SchemaError: It is not understood; it names the place and what stands there.

    >>> spark_columns("id BIGINT NOT NULL, `a b` ARRAY<STRUCT<x: DECIMAL(4, 2)>>").simpleString()
    'struct<id:bigint,a b:array<struct<x:decimal(4,2)>>>'
    """
    tokens = Tokens(text, _SPARK)
    columns = _fields(tokens)
    if tokens.peek().kind != "end":
        tokens.refuse("expected ',' or the end")
    return columns


def _fields(tokens: Tokens) -> StructType:
    fields = [_field(tokens)]
    while tokens.accept_mark(","):
        fields.append(_field(tokens))
    return StructType(fields)


def _field(tokens: Tokens) -> StructField:
    name = tokens.name("a column's name").text
    tokens.accept_mark(":")
    type_, nullable = _type(tokens), True
    if tokens.accept("NOT"):
        tokens.expect("NULL")
        nullable = False
    if tokens.accept("COMMENT"):
        tokens.text("the comment")
    return StructField(name, type_, nullable)


def _type(tokens: Tokens) -> DataType:
    begin = tokens.peek()
    word = begin.text.upper()
    if begin.kind != "word" or (word not in _WORDS and word not in _READERS):
        tokens.refuse("expected a type of Spark")
    tokens.next()
    with tokens.one_level(begin):
        return _WORDS[word] if word in _WORDS else _READERS[word](tokens, begin)


def _array(tokens: Tokens, _: Token) -> DataType:
    (element,) = in_angle_brackets(tokens, 1, _type)
    return ArrayType(element)


def _map(tokens: Tokens, _: Token) -> DataType:
    key, value = in_angle_brackets(tokens, 2, _type)
    return MapType(key, value)


def _struct(tokens: Tokens, _: Token) -> DataType:
    tokens.expect_mark("<")
    fields = StructType() if tokens.peek().is_mark(">") else _fields(tokens)
    tokens.expect_mark(">")
    return fields


def _sized_text(tokens: Tokens, _: Token) -> DataType:
    """CHAR and VARCHAR: no text is cut to its length when it is read."""
    if not read_numbers(tokens, "a length"):
        tokens.refuse("expected a length in round brackets")
    return StringType()


def _interval(tokens: Tokens, _: Token) -> DataType:
    return read_interval(tokens, has_precision=False)


_READERS: dict[str, Callable[[Tokens, Token], DataType]] = {
    "ARRAY": _array, "MAP": _map, "STRUCT": _struct, "DECIMAL": read_decimal, "DEC": read_decimal,
    "NUMERIC": read_decimal, "CHAR": _sized_text, "CHARACTER": _sized_text, "VARCHAR": _sized_text,
    "INTERVAL": _interval,
}  # fmt: skip


def columns_as_ddl(schema: StructType) -> str:
    """The columns as Spark's DDL, but for NOT NULL of elements, which it has no word for.

    >>> of_row = StructType([StructField("B", ArrayType(StructType()), nullable=False)])
    >>> columns_as_ddl(StructType([StructField("a b", of_row)]))
    '`a b` STRUCT<B: ARRAY<STRUCT<>> NOT NULL>'
    """
    return ", ".join(map(_column, schema))


def type_as_ddl(kind: DataType) -> str:
    """A type as Spark's DDL, with the limit of `columns_as_ddl`."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(_column(field, ': ') for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_as_ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_as_ddl(kind.keyType)}, {type_as_ddl(kind.valueType)}>"
    return kind.simpleString().upper()


def name_as_ddl(name: str) -> str:
    """A column's name, in backticks only where it needs them.

    >>> name_as_ddl("id"), name_as_ddl("a b")
    ('id', '`a b`')
    """
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.IGNORECASE | re.ASCII):
        return name
    return quoted(name)


def _column(field: StructField, separator: str = " ") -> str:
    return f"{name_as_ddl(field.name)}{separator}{type_as_ddl(field.dataType)}" + (
        "" if field.nullable else " NOT NULL"
    )


def quoted(name: str) -> str:
    """A column's name, whatever is in it.

    >>> quoted("a.`b`")
    '`a.``b```'
    """
    return "`" + name.replace("`", "``") + "`"


def direction_of(expression: str) -> str | None:
    """The direction at the end of an expression, which Spark reads as its name, and so would not sort by; None = there is none.

    >>> direction_of("version desc"), direction_of("desc")
    ('DESC', None)
    """
    found = _DIRECTION.search(expression)
    return found and found[1].upper()
