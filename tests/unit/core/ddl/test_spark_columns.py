"""Columns as Spark's DDL writes them; that Spark reads them likewise is in tests/spark/test_spark_ddl.py."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import SchemaError

COLUMNS = [
    "a BOOLEAN, b TINYINT, c BYTE, d SMALLINT, e SHORT, f INT, g INTEGER, h BIGINT, i LONG",
    "a FLOAT, b REAL, c DOUBLE, d STRING, e BINARY, f DATE, g VARIANT",
    "a TIMESTAMP, b TIMESTAMP_LTZ, c TIMESTAMP_NTZ",
    "a DECIMAL, b DEC(5), c NUMERIC(5, 2), d decimal(38,38)",
    "a ARRAY<INT>, b MAP<STRING, ARRAY<BIGINT>>, c STRUCT<x: INT, y STRING NOT NULL COMMENT 'why'>",
    "a ARRAY<ARRAY<ARRAY<INT>>>, b STRUCT<>, c STRUCT<`p q`: STRUCT<r: INT>>",
    "a INTERVAL DAY TO SECOND, b INTERVAL HOUR, c INTERVAL YEAR TO MONTH, d INTERVAL MONTH",
    "id BIGINT NOT NULL, `a b` STRING COMMENT 'x, y', `tick``s` INT, `größe` INT",
    "id: BIGINT, name: string",
    "  id\tbigint ,\n name  string  ",
    "order STRING, timestamp TIMESTAMP, array ARRAY<INT>, _1 INT, 2nd INT",
    'a INT, -- the first\nb STRING COMMENT "x, y" /* the second,\n and last */',
    "a INT COMMENT 'it''s'",
]
"""Texts that both parsers read alike."""

REFUSED = [
    ("", 1, "expected a column's name, but found the end"),
    ("id", 3, "expected a type of Spark, but found the end"),
    ("id BIGNT", 4, "expected a type of Spark, but found 'BIGNT'"),
    ("id BIGINT,", 11, "expected a column's name, but found the end"),
    ("id BIGINT name STRING", 11, "expected ',' or the end, but found 'name'"),
    ("id ARRAY<INT", 13, "expected '>', but found the end"),
    ("id MAP<INT>", 11, "expected ',', but found '>'"),
    ("id DECIMAL(39)", 4, "expected DECIMAL(p, s) with p from 1 to 38 and s from 0 to p."),
    ("id DECIMAL(3, 2, 1)", 11, "expected 2 at most, but found 3 numbers."),
    ("id VARCHAR", 11, "expected a length"),
    ("id INT NOT", 11, "expected NULL, but found the end"),
    ("`id INT", 1, "the quote or comment that begins here does not end."),
    ("id INT COMMENT 'why", 16, "the quote or comment that begins here does not end."),
    ("id INT /* why", 8, "the quote or comment that begins here does not end."),
    ("id INTERVAL SECOND TO DAY", 23, "expected no TO, but found 'DAY'"),
    ("id INTERVAL DAY(3)", 16, "expected ',' or the end, but found '('"),
    (
        "id INTERVAL WEEK",
        13,
        "expected DAY or HOUR or MINUTE or SECOND or YEAR or MONTH, but found 'WEEK'",
    ),
    (
        "id INTERVAL",
        12,
        "expected DAY or HOUR or MINUTE or SECOND or YEAR or MONTH, but found the end",
    ),
    ('"id" INT', 1, "expected a column's name, but found a text in quotes"),
    ("5 INT", 1, "expected a column's name, but found '5'"),
    ("id INT // why", 8, "expected ',' or the end, but found '/'"),
    ("id INT,\nname", 13, "expected a type of Spark, but found the end"),
]
"""Texts, the place of what is wrong with them, and what is said of it."""


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id BIGINT NOT NULL, `a b` STRING", "struct<id:bigint,a b:string>"),
        ("a DECIMAL, b DEC(5), c NUMERIC(5, 2)", "struct<a:decimal(10,0),b:decimal(5,0),c:decimal(5,2)>"),
        ("a STRUCT<x: ARRAY<INT>, y MAP<STRING, LONG>>", "struct<a:struct<x:array<int>,y:map<string,bigint>>>"),
        ("a INTERVAL DAY TO SECOND, b INTERVAL YEAR", "struct<a:interval day to second,b:interval year>"),
        ("a VARCHAR(5), b CHAR(2)", "struct<a:string,b:string>"),
    ],
)  # fmt: skip
def test_columns(text: str, columns: str) -> None:
    """Each type has the Spark type of its name."""
    assert spark_columns(text).simpleString() == columns


@pytest.mark.parametrize("text", COLUMNS)
def test_texts_that_spark_reads(text: str) -> None:
    """They are read here too, and NOT NULL is kept."""
    columns = spark_columns(text)

    assert isinstance(columns, StructType)
    assert ("NOT NULL," in text) == (not all(field.nullable for field in columns))


@pytest.mark.parametrize(("text", "place", "what"), REFUSED)
def test_what_is_not_understood(text: str, place: int, what: str) -> None:
    """It is refused with its place; nothing is guessed."""
    with pytest.raises(SchemaError) as error:
        spark_columns(text)
    assert f"at character {place}: {what}" in str(error.value)


def test_types_that_stand_within_each_other_too_deep() -> None:
    """They are refused in words."""
    with pytest.raises(
        SchemaError, match="types stand within each other more than 100 levels deep"
    ):
        spark_columns("a " + "STRUCT<a ARRAY<" * 2_500)
