"""Every type name of Flink's SQL: the Spark type it has, or the sentence that refuses it."""

from __future__ import annotations

import re

import pytest
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructType

from pyspark_upsert_kafka.core.ddl.tokens import Tokens
from pyspark_upsert_kafka.core.ddl.types import read_type
from pyspark_upsert_kafka.core.errors import OptionError

TYPES = {
    "CHAR": "string", "CHAR(3)": "string", "CHARACTER(3)": "string", "CHARACTER VARYING(9)": "string",
    "VARCHAR": "string", "VARCHAR(2147483647)": "string", "STRING": "string",
    "BINARY(4)": "binary", "VARBINARY(9)": "binary", "BINARY VARYING(9)": "binary", "BYTES": "binary",
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "SMALLINT": "smallint",
    "INT": "int", "INTEGER": "int", "BIGINT": "bigint",
    "FLOAT": "float", "DOUBLE": "double", "DOUBLE PRECISION": "double",
    "DECIMAL": "decimal(10,0)", "DECIMAL(5)": "decimal(5,0)", "DEC(38, 38)": "decimal(38,38)",
    "NUMERIC(10, 2)": "decimal(10,2)",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz", "TIMESTAMP(0)": "timestamp_ntz",
    "TIMESTAMP(6) WITHOUT TIME ZONE": "timestamp_ntz",
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": "timestamp", "TIMESTAMP WITH LOCAL TIME ZONE": "timestamp",
    "TIMESTAMP_LTZ": "timestamp", "TIMESTAMP_LTZ(3)": "timestamp",
    "INTERVAL YEAR": "interval year", "INTERVAL YEAR(4) TO MONTH": "interval year to month",
    "INTERVAL MONTH": "interval month",
    "INTERVAL DAY(3) TO SECOND(6)": "interval day to second", "INTERVAL DAY": "interval day",
    "INTERVAL DAY TO HOUR": "interval day to hour", "INTERVAL DAY TO MINUTE": "interval day to minute",
    "INTERVAL HOUR TO SECOND(3)": "interval hour to second", "INTERVAL HOUR": "interval hour",
    "INTERVAL MINUTE TO SECOND": "interval minute to second", "INTERVAL SECOND(3)": "interval second",
    "INTERVAL SECOND(3, 6)": "interval second", "DECIMAL(1)": "decimal(1,0)", "DECIMAL(1, 1)": "decimal(1,1)",
    "ARRAY<INT>": "array<int>", "INT ARRAY": "array<int>", "INT ARRAY ARRAY": "array<array<int>>",
    "MAP<STRING, ARRAY<INT>>": "map<string,array<int>>",
    "MULTISET<STRING>": "map<string,int>", "STRING MULTISET": "map<string,int>",
    "ROW<a INT, `b c` STRING>": "struct<a:int,b c:string>",
    "ROW(a INT 'the first', b ROW<c DATE>)": "struct<a:int,b:struct<c:date>>",
    "ROW<A MAP<INT, INT>>": "struct<A:map<int,int>>",
    "VARIANT": "variant",
    "bigint": "bigint",
}  # fmt: skip

REFUSED = {
    "TIME": "type TIME cannot be read or written: no format here carries a time of day",
    "TIME(3)": "where messages hold it as text, declare STRING.",
    "TIMESTAMP(9)": "type TIMESTAMP(9) cannot be read or written: Spark has microseconds and would lose digits. "
    "Declare TIMESTAMP(6).",
    "TIMESTAMP_LTZ(7)": "type TIMESTAMP_LTZ(7) cannot be read or written",
    "TIMESTAMP(10)": "expected TIMESTAMP(p) with p from 0 to 9.",
    "TIMESTAMP WITH TIME ZONE": "type TIMESTAMP WITH TIME ZONE cannot be read or written",
    "RAW('java.lang.Object', '...')": "type RAW cannot be read or written",
    "NULL": "type NULL cannot be read or written",
    "STRUCTURED<'a.B', x INT>": "type STRUCTURED cannot be read or written: declare its fields with ROW<...>.",
    "BITMAP": "type BITMAP cannot be read or written",
    "MONEY": "type MONEY cannot be read or written: it is no type of Flink's SQL that is known here.",
    "DECIMAL(39, 2)": "expected DECIMAL(p, s) with p from 1 to 38 and s from 0 to p.",
    "DECIMAL(2, 3)": "expected DECIMAL(p, s)",
    "DECIMAL(1, 1, 1)": "expected 2 at most, but found 3 numbers.",
    "DECIMAL(a)": "expected a precision, a whole number, but found 'a'.",
    "DECIMAL(0)": "expected DECIMAL(p, s)",
    "VARCHAR(1, 2)": "expected 1 at most, but found 2 numbers.",
    "TIMESTAMP(1, 2)": "expected 1 at most, but found 2 numbers.",
    "INTERVAL SECOND(1, 2, 3)": "expected 2 at most, but found 3 numbers.",
    "INTERVAL SECOND TO DAY": "expected no TO, but found 'DAY'.",
    "INTERVAL YEAR TO DAY": "expected MONTH, but found 'DAY'.",
    "INTERVAL WEEK": "expected DAY or HOUR or MINUTE or SECOND or YEAR or MONTH, but found 'WEEK'.",
    "ARRAY": "expected '<', but found the end.",
    "ARRAY<INT": "expected '>', but found the end.",
    "MAP<INT>": "expected ',', but found '>'.",
    "ROW": "expected '<' or '(', but found the end.",
    "ROW<a INT": "expected ',' or '>', but found the end.",
    "'INT'": "expected a type, but found a text in quotes.",
    "INT NOT": "expected NULL, but found the end.",
}


@pytest.mark.parametrize(("sql", "spark"), TYPES.items())
def test_types(sql: str, spark: str) -> None:
    """Each type has its Spark type, and nothing of it is left to read."""
    tokens = Tokens(sql)

    assert read_type(tokens)[0].simpleString() == spark
    assert tokens.peek().kind == "end"


@pytest.mark.parametrize(("sql", "sentence"), REFUSED.items())
def test_refused_types(sql: str, sentence: str) -> None:
    """Each type without a counterpart is named, with its place and what to do."""
    with pytest.raises(OptionError, match=re.escape(sentence)) as error:
        read_type(Tokens(sql))

    assert str(error.value).startswith("SQL, line 1, column ")


def test_not_null_within_a_type() -> None:
    """NOT NULL is kept in elements, values and fields; a count in a multiset is never NULL."""
    sql = "ROW<a INT NOT NULL, b ARRAY<INT NOT NULL>, c MAP<STRING, INT NOT NULL>, d MULTISET<BIGINT>, e INT NULL>"
    number = IntegerType()

    kind, nullable = read_type(Tokens(sql + " NOT NULL"))

    assert not nullable
    assert kind == (
        StructType()
        .add("a", number, nullable=False)
        .add("b", ArrayType(number, containsNull=False))
        .add("c", MapType(StringType(), number, valueContainsNull=False))
        .add("d", MapType(LongType(), number, valueContainsNull=False))
        .add("e", number)
    )


@pytest.mark.parametrize(
    "sql",
    ["ARRAY<" * 5_000 + "INT" + ">" * 5_000, "ROW<a " * 5_000, "INT" + " ARRAY" * 5_000],
    ids=["brackets", "rows", "words"],
)
def test_types_that_stand_within_each_other_too_deep(sql: str) -> None:
    """They are refused in words, however they are written; a hundred levels are read."""
    with pytest.raises(
        OptionError, match="types stand within each other more than 100 levels deep"
    ):
        read_type(Tokens(sql))
    read_type(Tokens("ARRAY<" * 98 + "INT ARRAY" + ">" * 98))


@pytest.mark.parametrize("type_", ["DECIMAL", "VARCHAR", "TIMESTAMP"])
def test_a_number_of_thousands_of_digits_in_a_type(type_: str) -> None:
    """Python makes no number of it; the error has its place, and shows the beginning only."""
    with pytest.raises(
        OptionError, match=r"line 1, column \d+: expected .* 18 digits at most"
    ) as error:
        read_type(Tokens(f"{type_}({'9' * 5_000})"))
    assert len(str(error.value)) < 300
