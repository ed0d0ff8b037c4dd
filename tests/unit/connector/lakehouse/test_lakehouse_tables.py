"""The table of `merge_sink`: how it may be changed, and the statements that change it and merge into it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import product

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
    Merge,
    _add_statement,
    _check_allowed,
    _create_statement,
    _lacking,
    _widen_statement,
    engine_of,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import (
    Deletes,
    SchemaChanges,
    table_name,
)
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


HARD = """\
MERGE INTO `lake`.`users` AS t USING changes AS s ON t.`id` = s.`id`
WHEN MATCHED AND NOT s.`_merge`.has_row THEN DELETE
WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`name` = s.`name`
WHEN NOT MATCHED AND s.`_merge`.has_row THEN INSERT (`id`, `name`) VALUES (s.`id`, s.`name`)"""

SOFT = """\
MERGE INTO `lake`.`users` AS t USING changes AS s ON t.`id` = s.`id`
WHEN MATCHED AND NOT s.`_merge`.has_row THEN UPDATE SET t.`gone` = true
WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`name` = s.`name`, t.`gone` = s.`_merge`.is_deleted
WHEN NOT MATCHED AND s.`_merge`.has_row THEN INSERT (`id`, `name`, `gone`) \
VALUES (s.`id`, s.`name`, s.`_merge`.is_deleted)"""

IGNORE = """\
MERGE INTO `lake`.`users` AS t USING changes AS s ON t.`id` = s.`id`
WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`name` = s.`name`
WHEN NOT MATCHED AND s.`_merge`.has_row THEN INSERT (`id`, `name`) VALUES (s.`id`, s.`name`)"""


def merge(**more: object) -> Merge:
    """A MERGE of two columns, with some values changed."""
    values = {
        "table": "`lake`.`users`",
        "changes": "changes",
        "keys": ["id"],
        "columns": ["id", "name"],
        "deletes": Deletes.HARD,
        "deleted_column": None,
        "unavailable": {},
        "flags": "_merge",
        **more,
    }
    return Merge(**values)


@pytest.mark.parametrize(
    ("more", "statement"),
    [
        ({}, HARD),
        ({"deletes": Deletes.SOFT, "deleted_column": "gone"}, SOFT),
        ({"deletes": Deletes.IGNORE}, IGNORE),
    ],
    ids=["hard", "soft", "ignore"],
)
def test_what_a_delete_does(more: dict[str, object], statement: str) -> None:
    """It deletes the row, marks it, or has no clause at all."""
    assert merge(**more).statement() == statement


def test_a_value_that_was_not_sent_stays() -> None:
    """Where the row exists; a new row has no other value than the one of the changes."""
    *_, update, insert = merge(unavailable={"name": 2}).statement().splitlines()

    assert update == (
        "WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, "
        "t.`name` = CASE WHEN s.`_merge`.unavailable[2] THEN t.`name` ELSE s.`name` END"
    )
    assert insert.endswith("VALUES (s.`id`, s.`name`)")


def test_any_name_may_be_that_of_a_column() -> None:
    """Dots, backticks and spaces are part of a name."""
    statement = merge(keys=["a.b", "c`d"], columns=["a.b", "c`d"]).statement()

    assert "ON t.`a.b` = s.`a.b` AND t.`c``d` = s.`c``d`\n" in statement
    assert "INSERT (`a.b`, `c``d`) VALUES (s.`a.b`, s.`c``d`)" in statement


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


def test_a_table_is_changed() -> None:
    """Fields of structs are columns with a path."""
    added = [AddedColumn(("a.b", "element", "c"), StringType()), AddedColumn(("d",), LongType())]

    assert _add_statement("`t`", added) == (
        "ALTER TABLE `t` ADD COLUMNS (`a.b`.`element`.`c` STRING, `d` BIGINT)"
    )
    assert _widen_statement("`t`", ("a", "b"), "BIGINT") == (
        "ALTER TABLE `t` ALTER COLUMN `a`.`b` TYPE BIGINT"
    )


@pytest.mark.parametrize(
    ("place", "differs", "is_lower"),
    [
        (["part"], "s.`_merge`.partition <> t.`part`", "s.`_merge`.partition < t.`part`"),
        (
            ["part", "of"],
            "s.`_merge`.partition <> t.`part` OR s.`_merge`.topic <> t.`of`",
            "s.`_merge`.partition < t.`part` OR (s.`_merge`.partition = t.`part` AND s.`_merge`.topic < t.`of`)",
        ),
    ],
    ids=["partition", "partition and topic"],
)
def test_an_older_change_of_another_partition_changes_nothing(
    place: list[str], differs: str, is_lower: str
) -> None:
    """If the table says when and where a row was changed, each clause that changes a row looks at it."""
    statement = merge(timestamp="at", place=place).statement()

    *matched, insert = statement.splitlines()[1:]
    is_older = (
        f"coalesce(({differs}) AND (s.`_merge`.time < t.`at` OR (s.`_merge`.time <=> t.`at` AND "
        f"({is_lower})) OR (s.`_merge`.time IS NULL AND t.`at` IS NOT NULL)), false)"
    )
    assert len(matched) == 2
    assert all(line.startswith(f"WHEN MATCHED AND NOT {is_older}") for line in matched)
    assert "coalesce" not in insert


@pytest.mark.parametrize("place", [["part"], ["part", "of"]], ids=["partition", "and topic"])
def test_which_change_is_older(place: list[str]) -> None:
    """A lower time, or of equal times a lower place; no time is the lowest, and a row that does not say where it was is older."""
    statement = merge(timestamp="at", place=place).statement()
    condition = statement.split("AND NOT ", 2)[1].removesuffix(" ")
    asked = f"SELECT {condition} FROM change AS s, told AS t"
    asked = asked.replace("s.`_merge`.", "s.").replace("<=>", "IS")
    places = [(partition, topic) for partition in (0, 1) for topic in ("a", "b")]
    told = [*product((None, 1, 2), [*places, (None, None)])]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE change (time, partition, topic)")
        database.execute("CREATE TABLE told (at, part, of)")
        for (time, change), (at, row) in product(product((None, 1, 2), places), told):
            database.execute("DELETE FROM change")
            database.execute("DELETE FROM told")
            database.execute("INSERT INTO change VALUES (?, ?, ?)", (time, *change))
            database.execute("INSERT INTO told VALUES (?, ?, ?)", (at, *row))
            (is_older,) = database.execute(asked).fetchone()

            here, there = change[: len(place)], row[: len(place)]
            expected = None not in there and here != there
            expected = expected and (time or 0, *here) < (at or 0, *there)
            assert bool(is_older) == expected, (time, change, at, row)
