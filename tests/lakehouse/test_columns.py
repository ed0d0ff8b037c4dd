"""Columns that a table does not have, types that it cannot hold, and values that were not sent."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import functions as f

from pyspark_upsert_kafka import SchemaError, merge_sink
from tests.lakehouse.engines import Lake

UNAVAILABLE = "__debezium_unavailable_value"


def test_a_new_column_is_refused_or_added(lake: Lake) -> None:
    """'fixed' names it, and nothing is written; 'evolve' adds it, and drops none."""
    table = lake.table()
    lake.merge(table, "id INT, name STRING", (1, "a", "upsert"), (2, "b", "upsert"))

    with pytest.raises(SchemaError, match=r"has no column 'age' \(INT\)"):
        lake.merge(table, "id INT, age INT", (1, 30, "upsert"))
    assert lake.rows(table) == [(1, "a"), (2, "b")]
    lake.merge(table, "id INT, age INT, `a.b` STRING", (1, 30, "x", "upsert"), schema="evolve")
    lake.merge(table, "id INT, name STRING", (2, "c", "upsert"), (3, "d", "upsert"))

    assert lake.columns(table) == "id:int,name:string,age:int,a.b:string"
    assert lake.rows(table) == [(1, "a", 30, "x"), (2, "c", None, None), (3, "d", None, None)]


def test_rows_that_stay_need_their_column(lake: Lake) -> None:
    """A table without it is one that lacks a column; one whose column has another type is refused."""
    table = lake.create("id INT")
    typed = lake.create("id INT, is_deleted STRING")

    with pytest.raises(SchemaError, match=r"has no column 'is_deleted' \(BOOLEAN\)"):
        lake.merge(table, "id INT", (1, "delete"), deletes="soft")
    with pytest.raises(SchemaError, match="'is_deleted' is BOOLEAN in the changes and STRING in"):
        lake.merge(typed, "id INT", (1, "delete"), deletes="soft", schema="evolve")
    lake.merge(table, "id INT", (1, "upsert"), (1, "delete"), deletes="soft", schema="evolve")

    assert lake.rows(table) == [(1, True)]


def test_types_that_fit(lake: Lake) -> None:
    """A narrower type is stored in the table's own; structs are matched by names, and what they lack is NULL."""
    table = lake.create("id BIGINT, n DOUBLE, x DECIMAL(12, 3), s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<a: BIGINT, b: INT>>")  # fmt: skip
    narrow = "id INT, n FLOAT, x DECIMAL(6, 1), s STRUCT<B: STRING>, l ARRAY<STRUCT<a: INT>>"

    lake.merge(table, narrow, (1, 0.5, Decimal(2), ("t",), [(7,), None], "upsert"), (2, None, None, None, None, "upsert"))  # fmt: skip

    first, second = lake.rows(table)
    assert (first[1], str(first[2]), *first[3:]) == (0.5, "2.000", (None, "t"), [(7, None), None])
    assert second == (2, None, None, None, None)


@pytest.mark.parametrize(
    ("there", "wanted", "value"),
    [("INT", "BIGINT", 2**40), ("FLOAT", "DOUBLE", 0.1), ("DECIMAL(10, 2)", "DECIMAL(14, 2)", Decimal(10**11))],
)  # fmt: skip
def test_types_are_widened(lake: Lake, there: str, wanted: str, value: object) -> None:
    """To a larger whole number, DOUBLE, more digits of a DECIMAL; 'fixed' names the column and both types."""
    table = lake.table()
    lake.merge(table, f"id INT, n {there}", (1, None, "upsert"), schema="evolve")

    with pytest.raises(SchemaError, match=r"column 'n' is .* in the changes and .* in the table"):
        lake.merge(table, f"id INT, n {wanted}", (2, value, "upsert"))
    lake.merge(table, f"id INT, n {wanted}", (2, value, "upsert"), schema="evolve")
    lake.merge(table, f"id INT, n {there}", (1, None, "upsert"), schema="evolve")

    assert lake.rows(table)[1] == (2, value)
    assert lake.columns(table).endswith(f"n:{wanted.lower().replace(' ', '')}")


def test_fields_of_structs(lake: Lake) -> None:
    """They are added and widened as columns are."""
    table = lake.table()
    lake.merge(table, "id INT, s STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>", (1, (1,), [(1,)], "upsert"), schema="evolve")  # fmt: skip

    lake.merge(
        table, "id INT, s STRUCT<b: STRING, a: BIGINT>, l ARRAY<STRUCT<a: INT, b: INT>>",
        (2, ("x", 2**40), [(1, 2)], "upsert"), schema="evolve",
    )  # fmt: skip

    assert lake.rows(table) == [
        (1, (1, None), [(1, None)]),
        (2, (2**40, "x"), [(1, 2)]),
    ]


def test_types_that_cannot_be_widened(lake: Lake) -> None:
    """The column and both types are named, and nothing is written."""
    table = lake.table()
    lake.merge(table, "id INT, n STRING", (1, "a", "upsert"))

    with pytest.raises(
        SchemaError, match="column 'n' is INT in the changes and STRING in the table"
    ):
        lake.merge(table, "id INT, n INT", (2, 1, "upsert"), schema="evolve")
    assert lake.rows(table) == [(1, "a")]


def test_what_the_engine_refuses(lake: Lake) -> None:
    """A table of Delta Lake changes types only with a property, which the error names."""
    if lake.engine.name != "delta":
        pytest.skip("Iceberg widens types of every table")
    table = lake.create("id INT, n INT")

    with pytest.raises(SchemaError, match=r"column 'n'|'n' is BIGINT.*delta.enableTypeWidening"):
        lake.merge(table, "id INT, n BIGINT", (1, 2**40, "upsert"), schema="evolve")
    lake.session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.merge(table, "id INT, n BIGINT", (1, 2**40, "upsert"), schema="evolve")

    assert lake.rows(table) == [(1, 2**40)]


def test_a_column_without_a_type(lake: Lake) -> None:
    """A column that is NULL in all rows of the first batch cannot be made."""
    batch = lake.changes("id INT", (1, "upsert")).withColumn("n", f.lit(None))

    with pytest.raises(SchemaError, match="column 'n' is VOID"):
        merge_sink(lake.table(), primary_key="id")(batch, 0)


def test_values_that_were_not_sent(lake: Lake) -> None:
    """The table's value stays, in every type that has a placeholder; a new row gets NULL."""
    table = lake.table()
    columns = (
        "id INT, n INT, s STRING, b BINARY, l ARRAY<STRING>, i ARRAY<INT>, m MAP<STRING, STRING>"
    )
    row = ("text", bytearray(b"x"), ["a", "b"], [1], {"k": "v"})
    bytes_ = UNAVAILABLE.encode()
    nothing_sent = (UNAVAILABLE, bytearray(bytes_), [UNAVAILABLE], list(bytes_), {UNAVAILABLE: UNAVAILABLE})  # fmt: skip
    options = {"unavailable": UNAVAILABLE}

    lake.merge(table, columns, (1, 1, *row, "upsert"), (2, 1, *row, "upsert"), **options)
    lake.merge(table, columns, (1, 2, *nothing_sent, "upsert"), (3, 2, *nothing_sent, "upsert"), **options)  # fmt: skip
    lake.merge(table, columns, (2, 3, None, None, None, None, None, "upsert"), **options)

    assert lake.rows(table) == [
        (1, 2, *row),
        (2, 3, None, None, None, None, None),
        (3, 2, None, None, None, None, None),
    ]


def test_the_newest_value_that_was_sent(lake: Lake) -> None:
    """Several changes of a key in one batch: the newest value counts, but none from before a delete."""
    table, columns = lake.table(), "id INT, n INT, s STRING"
    lake.merge(table, columns, *((n, 0, "old", "upsert") for n in range(1, 6)))
    changes = (
        (1, 1, "new", "upsert"), (1, 2, "?", "upsert"),
        (2, 1, "new", "upsert"), (2, None, None, "delete"), (2, 2, "?", "upsert"),
        (3, None, None, "delete"), (3, 1, "?", "upsert"),
        (4, 1, None, "upsert"), (4, 2, "?", "upsert"),
        (5, 0, "old", "-U"), (5, 2, "?", "+U"),
        (6, 1, "new", "upsert"), (6, 2, "?", "upsert"),
    )  # fmt: skip
    lake.merge(table, columns, *changes[:-4], *changes[-2:], unavailable="?")
    image = lake.changes(columns, *changes[-4:-2]).withColumn(
        "_offset", f.lit(10**6).cast("bigint")
    )
    merge_sink(table, primary_key="id", unavailable="?")(image, 0)

    assert lake.rows(table) == [
        (1, 2, "new"), (2, 2, None), (3, 1, None), (4, 2, None), (5, 2, "old"), (6, 2, "new"),
    ]  # fmt: skip
