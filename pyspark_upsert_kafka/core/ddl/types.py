"""Types of Flink's SQL, and the Spark types that hold their values.

================================== ====================================================================
Flink                              Spark
================================== ====================================================================
CHAR(n), VARCHAR(n), STRING        STRING; Flink cuts no text to its length when it reads either
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
MAP<k, v>, MULTISET<t>, t MULTISET MAP; of a multiset from each element to how often it is there
ROW<...>, ROW(...)                 STRUCT
VARIANT                            VARIANT
================================== ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StructField, StructType

from pyspark_upsert_kafka.core.ddl.cursor import Tokens
from pyspark_upsert_kafka.core.ddl.simple_types import read_simple_type


def read_type(tokens: Tokens) -> tuple[DataType, bool]:
    """A type, and whether it may be NULL.

    Raises:
        OptionError: It is unknown, or Spark has no counterpart.
    """
    kind = _type(tokens)
    nullable = read_nullability(tokens)
    while tokens.peek().is_word("ARRAY", "MULTISET"):
        is_array = tokens.next().is_word("ARRAY")
        kind = ArrayType(kind, nullable) if is_array else _multiset(kind)
        nullable = read_nullability(tokens)
    return kind, nullable


def read_nullability(tokens: Tokens) -> bool:
    """Whether NULL is allowed: NOT NULL says no, NULL and nothing say yes."""
    if tokens.accept("NOT"):
        tokens.expect("NULL")
        return False
    tokens.accept("NULL")
    return True


def _type(tokens: Tokens) -> DataType:
    for word, read in _NESTED.items():
        if tokens.accept(word):
            return read(tokens)
    return read_simple_type(tokens)


def _array(tokens: Tokens) -> DataType:
    ((kind, nullable),) = _parameters(tokens, 1)
    return ArrayType(kind, nullable)


def _map(tokens: Tokens) -> DataType:
    (key, _key_nullable), (value, nullable) = _parameters(tokens, 2)
    return MapType(key, value, nullable)


def _multiset_of(tokens: Tokens) -> DataType:
    ((kind, _nullable),) = _parameters(tokens, 1)
    return _multiset(kind)


def _multiset(kind: DataType) -> DataType:
    return MapType(kind, IntegerType(), valueContainsNull=False)


def _parameters(tokens: Tokens, count: int) -> list[tuple[DataType, bool]]:
    """That many types in angle brackets."""
    tokens.expect_mark("<")
    found = [read_type(tokens)]
    for _ in range(count - 1):
        tokens.expect_mark(",")
        found.append(read_type(tokens))
    tokens.expect_mark(">")
    return found


def _row(tokens: Tokens) -> DataType:
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
    kind, nullable = read_type(tokens)
    if tokens.peek().kind == "text":  # its description
        tokens.next()
    return StructField(name.text, kind, nullable)


_NESTED: dict[str, Callable[[Tokens], DataType]] = {
    "ARRAY": _array, "MAP": _map, "MULTISET": _multiset_of, "ROW": _row,
}  # fmt: skip
