"""What columns lack to hold the values of others."""

from __future__ import annotations

import pytest
from pyspark.sql.types import DataType, IntegerType, StringType, StructType

from pyspark_upsert_kafka.core.column_changes import (
    AddedColumn,
    field_named,
    fits,
    has_path,
    lacking,
    needed,
    united,
    without_field,
)
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns


def type_of(text: str) -> DataType:
    """A type by its name in Spark's DDL."""
    return spark_columns(f"it {text}")["it"].dataType


@pytest.mark.parametrize(
    ("wanted", "there", "does"),
    [
        ("INT", "INT", True),
        ("TINYINT", "SMALLINT", True),
        ("INT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("INT", "DOUBLE", True),
        ("BIGINT", "DOUBLE", False),
        ("SMALLINT", "FLOAT", True),
        ("INT", "FLOAT", False),
        ("FLOAT", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("TINYINT", "DECIMAL(3, 0)", True),
        ("TINYINT", "DECIMAL(3, 1)", False),
        ("SMALLINT", "DECIMAL(5, 0)", True),
        ("SMALLINT", "DECIMAL(5, 1)", False),
        ("INT", "DECIMAL(10, 0)", True),
        ("INT", "DECIMAL(10, 1)", False),
        ("BIGINT", "DECIMAL(19, 0)", True),
        ("BIGINT", "DECIMAL(19, 1)", False),
        ("DECIMAL(5, 2)", "DECIMAL(6, 3)", True),
        ("DECIMAL(5, 2)", "DECIMAL(6, 4)", False),
        ("DECIMAL(5, 2)", "DECIMAL(5, 1)", False),
        ("DECIMAL(5, 0)", "BIGINT", False),
        ("DOUBLE", "DECIMAL(38, 10)", False),
        ("STRING", "STRING", True),
        ("INT", "STRING", False),
        ("STRING", "INT", False),
        ("TIMESTAMP", "TIMESTAMP_NTZ", False),
        ("DATE", "TIMESTAMP", False),
        ("BINARY", "STRING", False),
    ],
)
def test_which_types_hold_which(wanted: str, there: str, does: bool) -> None:
    """Only without any loss: nothing is rounded, cut or read as a text."""
    assert fits(type_of(wanted), type_of(there)) is does


@pytest.mark.parametrize(
    ("wanted", "there", "text"),
    [
        ("a INT, b STRING", "B STRING, A BIGINT, c INT", []),
        ("a BIGINT", "a INT", ["a: BIGINT"]),
        ("a DOUBLE", "a FLOAT", ["a: DOUBLE"]),
        ("a DECIMAL(12, 1)", "a DECIMAL(10, 2)", ["a: DECIMAL(13,2)"]),
        ("a DECIMAL(38, 0)", "a DECIMAL(10, 2)", ["a: none"]),
        ("a DECIMAL(36, 0)", "a DECIMAL(10, 2)", ["a: DECIMAL(38,2)"]),
        ("a DECIMAL(37, 0)", "a DECIMAL(10, 2)", ["a: none"]),
        ("a DECIMAL(10, 3)", "a DECIMAL(10, 2)", ["a: none"]),
        ("a BIGINT", "a DECIMAL(10, 2)", ["a: DECIMAL(21,2)"]),
        ("a STRING", "a INT", ["a: none"]),
        ("a DOUBLE", "a INT", ["a: none"]),
        ("a STRUCT<x: INT>", "a STRING", ["a: none"]),
        ("a INT, b STRING, c DATE", "a INT", ["+b: STRING", "+c: DATE"]),
        ("a STRUCT<x: BIGINT, y: INT>", "A STRUCT<X: INT>", ["A.X: BIGINT", "+A.y: INT"]),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<>>", ["+a.element.x: INT"]),
        ("a MAP<INT, FLOAT>", "a MAP<INT, FLOAT>", []),
        ("a MAP<BIGINT, DOUBLE>", "a MAP<INT, FLOAT>", ["a.key: BIGINT", "a.value: DOUBLE"]),
    ],
)  # fmt: skip
def test_what_a_table_needs(wanted: str, there: str, text: list[str]) -> None:
    """Columns and fields are found by name in any case, and get the table's own spelling."""
    found = needed(spark_columns(wanted), spark_columns(there))

    assert [shown(each) for each in found] == text


def shown(change: object) -> str:
    """A change as the table of examples has it."""
    path = ".".join(change.path)
    if isinstance(change, AddedColumn):
        return f"+{path}: {change.type.simpleString().upper()}"
    return f"{path}: {change.wider.simpleString().upper() if change.wider else 'none'}"


def test_the_exact_spelling_comes_first() -> None:
    """With Spark's case sensitivity a table may have both."""
    both = spark_columns("ID INT")
    both = StructType([*both.fields, *spark_columns("id INT").fields])

    assert field_named("id", both).name == "id"
    assert field_named("Id", both).name == "ID"
    assert field_named("x", both) is None


@pytest.mark.parametrize(
    ("written", "read", "exempt", "columns"),
    [
        ("id BIGINT, name STRING", "id BIGINT, name STRING", (), []),
        ("id BIGINT NOT NULL", "id BIGINT", (), []),
        ("id BIGINT", "ID BIGINT NOT NULL", (), ["id NULL (here NOT NULL)"]),
        ("id BIGINT", "ID BIGINT NOT NULL", ("ID",), []),
        ("id BIGINT NOT NULL", "id BIGINT NOT NULL", (), []),
        ("id BIGINT, tier INT", "id BIGINT", (), ["tier INT"]),
        ("id BIGINT", "id INT NOT NULL", (), ["id BIGINT (here INT)"]),
        ("id STRING", "id INT", (), []),
    ],
)
def test_what_a_query_lacks(
    written: str, read: str, exempt: tuple[str, ...], columns: list[str]
) -> None:
    """New columns, wider types, and values that may be NULL by now, unless the column is NOT NULL whatever messages have."""
    found = lacking(spark_columns(written), spark_columns(read), exempt)

    assert [*found.values()] == columns


@pytest.mark.parametrize(
    ("path", "is_there"),
    [
        (["tags"], True), (["TAGS", "key"], True), (["tags", "value", "X"], True), (["tags", "value", "y"], False),
        (["tags", "element"], False), (["tags", "key", "x"], False), (["ids", "element"], True), (["ids", "value"], False),
        (["id", "x"], False), ([], True),
    ],
)  # fmt: skip
def test_a_path_leads_through_structs_arrays_and_maps(path: list[str], is_there: bool) -> None:
    """As the paths of changes do."""
    columns = spark_columns("id INT, ids ARRAY<INT>, tags MAP<STRING, STRUCT<x: INT>>")

    assert has_path(columns, path) is is_there


@pytest.mark.parametrize(
    ("newer", "older", "both"),
    [
        ("a INT NOT NULL", "a INT NOT NULL", "a INT NOT NULL"),
        ("a INT NOT NULL", "a INT", "a INT"),
        ("a INT", "a INT NOT NULL", "a INT"),
        ("a INT NOT NULL", "b INT NOT NULL", "a INT, b INT"),
        ("a INT", "A BIGINT", "a BIGINT"),
        ("a STRING", "a INT", "a STRING"),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<y: INT>>", "a ARRAY<STRUCT<x: INT, y: INT>>"),
        ("a MAP<STRING, INT>", "a MAP<STRING, BIGINT>", "a MAP<STRING, BIGINT>"),
        ("a ARRAY<INT>", "a INT", "a ARRAY<INT>"),
    ],
)
def test_what_holds_the_values_of_both(newer: str, older: str, both: str) -> None:
    """Only what is NOT NULL in both is NOT NULL."""
    assert united(spark_columns(newer), spark_columns(older)) == spark_columns(both)


def test_other_types_of_one_name_are_fields_all_the_same() -> None:
    """What is in them is not compared: the column is read into, or its messages are bad."""
    columns = spark_columns("a ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>, s STRUCT<x: INT>")
    fields = spark_columns("a STRUCT<y: INT>, m STRUCT<y: INT>, s ARRAY<STRUCT<y: INT>>")

    assert [*without_field(columns, fields)] == []


def test_a_text_is_a_text_in_any_collation() -> None:
    """It says how texts are compared, not which there are."""
    assert fits(StringType("UTF8_LCASE"), StringType())
    assert not fits(StringType("UTF8_LCASE"), IntegerType())
