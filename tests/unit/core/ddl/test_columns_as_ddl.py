"""Columns as Spark's DDL has them."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.ddl.spark_columns import columns_as_ddl, name_as_ddl


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("id", "id"),
        ("_Id_2", "_Id_2"),
        ("2", "`2`"),
        ("a b", "`a b`"),
        ("a`b", "`a``b`"),
        ("größe", "`größe`"),
        ("\u212a", "`\u212a`"),  # the sign for Kelvin, which is a k in lower case
        ("", "``"),
    ],
)
def test_a_name_is_quoted_where_it_must_be(name: str, written: str) -> None:
    """Letters of ASCII, digits and underscores need no backticks, unless a digit is first."""
    assert name_as_ddl(name) == written


def test_types_within_types() -> None:
    """Each is written with the fields that it has, and NOT NULL where it is a field."""
    struct = StructType(
        [StructField("a", LongType(), nullable=False), StructField("b c", ArrayType(StringType()))]
    )
    columns = StructType(
        [
            StructField("id", DecimalType(10, 2), nullable=False),
            StructField("rows", MapType(StringType(), struct)),
        ]
    )

    assert columns_as_ddl(columns) == (
        "id DECIMAL(10,2) NOT NULL, "
        "rows MAP<STRING, STRUCT<a: BIGINT NOT NULL, `b c`: ARRAY<STRING>>>"
    )
