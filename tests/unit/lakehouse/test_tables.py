"""Whose table is created, and what is said of a table that cannot hold a batch."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.table.spark_columns import spark_columns
from pyspark_upsert_kafka.lakehouse.column_types import needed
from pyspark_upsert_kafka.lakehouse.settings import SchemaChanges
from pyspark_upsert_kafka.lakehouse.table_name import table_name
from pyspark_upsert_kafka.lakehouse.tables import check_allowed, engine_of


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
    lacking = list(needed(spark_columns(wanted), spark_columns(there)))

    with pytest.raises(SchemaError, match=message):
        check_allowed(table_name("lake.t"), lacking, SchemaChanges(schema))


def test_what_a_table_may_become() -> None:
    """With 'evolve' it gets columns and wider types."""
    lacking = list(needed(spark_columns("a BIGINT, b INT"), spark_columns("a INT")))

    check_allowed(table_name("lake.t"), lacking, SchemaChanges.EVOLVE)
