"""The table of `merge_sink`: how it may be changed, and the statements that make and change it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.connector.lakehouse.lakehouse_tables import (
    _add_statement,
    _check_allowed,
    _create_statement,
    _lacking,
    _widen_statement,
    engine_of,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import SchemaChanges, table_name
from pyspark_upsert_kafka.core.column_changes import AddedColumn
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import SchemaError


@pytest.mark.parametrize(
    ("class_", "default", "engine"),
    [
        ("org.apache.iceberg.spark.SparkCatalog", "parquet", "iceberg"),
        ("org.apache.iceberg.spark.SparkSessionCatalog", "delta", "iceberg"),
        ("org.apache.spark.sql.delta.catalog.DeltaCatalog", "parquet", "delta"),
        ("io.unitycatalog.spark.UCSingleCatalog", "parquet", "delta"),
        ("", "delta", "delta"),
        ("com.example.Catalog", "iceberg", "iceberg"),
        ("com.example.Catalog", "parquet", None),
    ],
)
def test_whose_table_is_created(class_: str, default: str, engine: str | None) -> None:
    """The class of the catalog says it, or else Spark's default for tables."""
    assert engine_of(class_, default) == engine


@pytest.mark.parametrize(
    ("wanted", "there", "schema", "message"),
    [
        ("a INT, b INT", "a INT", "fixed", r"table 'lake.t' has no column 'b' \(INT\). Add it .* schema = 'evolve'"),
        ("a BIGINT", "a INT", "fixed", r"column 'a' is BIGINT in the changes and INT in the table 'lake.t', which cannot hold it. Change"),
        ("a STRING", "a INT", "fixed", r"column 'a' is STRING in the changes and INT in the table .* cannot be widened"),
        ("a STRING", "a INT", "evolve", r"column 'a' is STRING in the changes and INT in the table .* cannot be widened"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_hold_a_batch(
    wanted: str, there: str, schema: str, message: str
) -> None:
    """The column and both types are named, and what to do."""
    lacking = _lacking(spark_columns(wanted), spark_columns(there))

    with pytest.raises(SchemaError, match=message):
        _check_allowed(table_name("lake.t"), lacking, SchemaChanges(schema))


def test_what_a_table_may_become() -> None:
    """With 'evolve' it gets columns and wider types."""
    lacking = _lacking(spark_columns("a BIGINT, b INT"), spark_columns("a INT"))

    _check_allowed(table_name("lake.t"), lacking, SchemaChanges.EVOLVE)


def test_a_column_without_a_type() -> None:
    """It is NULL in all rows: nobody knows what the table would have to hold. Where the table has it, NULL fits."""
    nothing = StructType([StructField("a", NullType())])

    assert _lacking(nothing, spark_columns("a INT")) == []
    with pytest.raises(SchemaError, match="column 'a' is VOID, which no table can store: cast it"):
        _lacking(nothing, StructType())


def test_a_table_is_made() -> None:
    """No column is NOT NULL, neither in structs, so that a column can be left out one day."""
    parts = StructType([StructField("x y", IntegerType(), nullable=False)])
    columns = StructType(
        [StructField("id", LongType(), nullable=False), StructField("a.b", ArrayType(parts))]
    )

    assert _create_statement("`t`", columns, "iceberg", {"format-version": "2"}) == (
        "CREATE TABLE IF NOT EXISTS `t` (`id` BIGINT, `a.b` ARRAY<STRUCT<`x y`: INT>>) USING iceberg "
        "TBLPROPERTIES ('format-version' = '2')"
    )
    assert _create_statement("`t`", StructType(columns.fields[:1]), "delta", {}) == (
        "CREATE TABLE IF NOT EXISTS `t` (`id` BIGINT) USING delta"
    )


def test_properties_may_hold_quotes() -> None:
    """A text in SQL ends where it should."""
    made = _create_statement("`t`", StructType(), "delta", {"it's": "a\\b'c"})

    assert made.endswith(r"TBLPROPERTIES ('it\'s' = 'a\\b\'c')")


def test_a_table_is_changed() -> None:
    """Fields of structs are columns with a path."""
    added = [AddedColumn(("a.b", "element", "c"), StringType()), AddedColumn(("d",), LongType())]

    assert _add_statement("`t`", added) == (
        "ALTER TABLE `t` ADD COLUMNS (`a.b`.`element`.`c` STRING, `d` BIGINT)"
    )
    assert _widen_statement("`t`", ("a", "b"), "BIGINT") == (
        "ALTER TABLE `t` ALTER COLUMN `a`.`b` TYPE BIGINT"
    )
