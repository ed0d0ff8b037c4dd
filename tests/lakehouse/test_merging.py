"""`merge_sink` on real tables of Iceberg and Delta Lake: deletes, keys, names, types."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as f

from pyspark_upsert_kafka import OptionError, SchemaError, merge_sink
from tests.lakehouse.engines import ICEBERG, Lake

USERS = "id BIGINT, name STRING"


def test_the_table_is_made_from_the_first_batch(lake: Lake) -> None:
    """With the columns of the row, and none of the message; the last change of each key counts."""
    table = lake.table()

    lake.merge(table, USERS, (1, "a", "upsert"), (2, "b", "upsert"), (1, "c", "upsert"), (2, None, "delete"))  # fmt: skip
    lake.merge(table, USERS, (1, "d", "upsert"), (3, "e", "upsert"), (9, None, "delete"))

    assert lake.columns(table) == "id:bigint,name:string"
    assert lake.rows(table) == [(1, "d"), (3, "e")]


def test_properties_of_a_table_that_is_made(lake: Lake) -> None:
    """Iceberg's writes deleted rows beside its files, as suits small batches."""
    table = lake.table()
    lake.merge(table, USERS, (1, "a", "upsert"), schema="evolve")
    found = dict(tuple(row) for row in lake.session.sql(f"SHOW TBLPROPERTIES {table}").collect())

    if lake.engine.name == "iceberg":
        assert found["format-version"] == "2"
        assert found["write.merge.mode"] == "merge-on-read"
    else:
        assert found["delta.enableTypeWidening"] == "true"


def test_a_path(lake: Lake) -> None:
    """A table of Delta Lake needs no catalog."""
    if lake.engine.name != "delta":
        pytest.skip("paths are for Delta Lake")
    path = str(lake.folder / "by path" / "users")

    lake.merge(path, USERS, (1, "a", "upsert"), (2, "b", "upsert"))
    lake.merge(path, USERS, (1, None, "delete"), deletes="soft", schema="evolve")
    lake.merge(f"delta.`{path}`", f"{USERS}, n BIGINT", (3, "c", 7, "upsert"), schema="evolve")

    assert lake.rows(path, "id", "name", "is_deleted", "n") == [
        (1, "a", True, None), (2, "b", None, None), (3, "c", None, 7),
    ]  # fmt: skip


def test_nobody_knows_whose_table_it_would_be(lake: Lake) -> None:
    """A catalog of neither engine is named, and what to do."""
    lake.session.conf.set("spark.sql.catalog.other", "com.example.Catalog")
    batch = lake.changes(USERS, (1, "a", "upsert"))

    # Whether the class is there at all is Spark's to say, before the connector asks anything.
    with pytest.raises(Exception, match=r"com.example.Catalog|other"):
        merge_sink("other.db.users", primary_key="id")(batch, 0)
    if lake.engine.name == "iceberg":
        with pytest.raises(OptionError, match=r"'spark_catalog' .*CREATE TABLE ... USING iceberg"):
            merge_sink("spark_catalog.default.users", primary_key="id")(batch, 0)


def test_a_row_that_is_deleted_may_stay(lake: Lake) -> None:
    """Its column says so, the others are as they were; a later upsert revives it."""
    table = lake.table()
    soft = {"deletes": "soft"}

    lake.merge(table, USERS, (1, "a", "upsert"), (2, "b", "upsert"), (3, "c", "upsert"), **soft)
    assert lake.rows(table) == [(1, "a", False), (2, "b", False), (3, "c", False)]
    lake.merge(table, USERS, (1, None, "delete"), (2, "new", "upsert"), (2, None, "delete"), **soft)
    assert lake.rows(table) == [(1, "a", True), (2, "new", True), (3, "c", False)]
    lake.merge(table, USERS, (1, "z", "upsert"), (4, "x", "upsert"), (4, None, "delete"), (5, None, "delete"), **soft)  # fmt: skip
    assert lake.rows(table) == [(1, "z", False), (2, "new", True), (3, "c", False), (4, "x", True)]


def test_the_column_of_rows_that_are_deleted_has_any_name(lake: Lake) -> None:
    """The stream may have a column of the usual name; a column with the given name is refused."""
    table, columns = lake.table(), "id BIGINT, is_deleted STRING"

    lake.merge(table, columns, (1, "x", "upsert"), (1, None, "delete"), deletes="soft", deleted_column="gone.now")  # fmt: skip
    with pytest.raises(SchemaError, match=r"the stream has a column 'is_deleted'.*deleted_column"):
        lake.merge(table, columns, (1, "x", "upsert"), deletes="soft")

    assert lake.rows(table, "`id`", "`is_deleted`", "`gone.now`") == [(1, "x", True)]


def test_deletes_may_do_nothing(lake: Lake) -> None:
    """The row of a key stays, whatever comes after its last upsert."""
    table = lake.table()

    lake.merge(table, USERS, (1, "a", "upsert"), (1, None, "delete"), (2, None, "delete"), deletes="ignore")  # fmt: skip
    lake.merge(table, USERS, (1, None, "delete"), deletes="ignore")

    assert lake.rows(table) == [(1, "a")]


def test_whole_rows_before_and_after(lake: Lake) -> None:
    """Images are taken too; the row before an update that changes the key deletes the old key."""
    table = lake.table()
    lake.merge(table, USERS, (1, "a", "insert"), (2, "b", "+I"), (3, "c", "INSERT"))
    moved = lake.changes(
        USERS,
        (1, "a", "update_preimage"), (1, "A", "update_postimage"),
        (2, "b", "update_preimage"), (20, "b", "update_postimage"),
        (3, "c", "delete"),
    ).withColumn("_offset", f.col("_offset") - f.when(f.col("_change_type").endswith("postimage"), 1).otherwise(0))  # fmt: skip

    merge_sink(table, primary_key="id")(moved.repartition(2), 0)
    merge_sink(table, primary_key="id")(moved, 0)

    assert lake.rows(table) == [(1, "A"), (20, "b")]


def test_keys_change_places(lake: Lake) -> None:
    """A message of several changes: a key that one row leaves and another one takes is not deleted."""
    table = lake.table()
    lake.merge(table, USERS, (1, "a", "upsert"), (2, "b", "upsert"))
    changes = lake.changes(
        USERS, (1, "a", "-U"), (2, "a", "+U"), (2, "b", "-U"), (1, "b", "+U")
    ).withColumn("_offset", f.lit(7).cast("bigint"))

    for deletes in ("hard", "soft"):
        sink = merge_sink(table, primary_key="id", deletes=deletes, schema="evolve")
        sink(changes, 0)
        assert lake.rows(table, "id", "name") == [(1, "b"), (2, "a")]


@pytest.mark.parametrize("kind", ["upsert", "delete"])
def test_a_key_that_is_null(lake: Lake, kind: str) -> None:
    """It is refused before anything is written, with its column and its place."""
    table = lake.table()
    batch = lake.changes(f"{USERS}, part STRING", (1, "a", "p", "upsert"), (2, "b", None, kind))
    offset = batch.agg(f.max("_offset")).first()[0]

    message = (
        f"column 'part' of the primary key is NULL in the change at partition 0, offset {offset}"
    )
    with pytest.raises(SchemaError, match=message):
        merge_sink(table, primary_key="id, part")(batch, 0)
    assert not lake.session.catalog.tableExists(table)


def test_a_kind_that_is_not_known(lake: Lake) -> None:
    """It is told with its place, and nothing is guessed; rows of bad messages are such ones."""
    table = lake.table()

    for kind in ("updated", None):
        batch = lake.changes(USERS, (1, "a", kind), (1, "b", "upsert"))
        with pytest.raises(
            Exception, match=r"SchemaError: merge_sink: '_change_type' of partition 0"
        ):
            merge_sink(table, primary_key="id")(batch, 0)
    assert not lake.session.catalog.tableExists(table)


def test_columns_that_must_be_there(lake: Lake) -> None:
    """The order of changes and their kind are needed."""
    batch = lake.changes(USERS, (1, "a", "upsert"))

    for column in ("_offset", "_partition", "_change_type"):
        with pytest.raises(SchemaError, match=f"merge_sink needs the column '{column}'"):
            merge_sink(lake.table(), primary_key="id")(batch.drop(column), 0)
    with pytest.raises(SchemaError, match="merge_sink: the key 'ident' is no column"):
        merge_sink(lake.table(), primary_key="ident")(batch, 0)


def test_an_empty_batch_does_nothing(lake: Lake) -> None:
    """No table is made, and no commit."""
    table = lake.table()
    empty = lake.changes(USERS)

    merge_sink(table, primary_key="id")(empty, 0)
    assert not lake.session.catalog.tableExists(table)
    lake.merge(table, USERS, (1, "a", "upsert"))
    before = commits(lake, table)
    merge_sink(table, primary_key="id")(empty, 0)
    assert commits(lake, table) == before


def commits(lake: Lake, table: str) -> int:
    """How many commits a table has had."""
    if lake.engine.name == "iceberg":
        return lake.session.table(f"{table}.snapshots").count()
    return lake.session.sql(f"DESCRIBE HISTORY {table}").count()


def test_a_batch_is_one_commit(lake: Lake) -> None:
    """Readers see all changes of a batch or none."""
    table = lake.table()
    lake.merge(table, USERS, (1, "a", "upsert"), (2, "b", "upsert"))
    before = commits(lake, table)
    batch = lake.changes(USERS, (1, None, "delete"), (2, "c", "upsert"), (3, "d", "upsert"))

    merge_sink(table, primary_key="id")(batch, 0)

    assert commits(lake, table) == before + 1


def test_an_existing_table(lake: Lake) -> None:
    """Its rows and its columns stay: columns that the stream does not have, and those of other spelling."""
    table = lake.create("name STRING, ID INT, extra STRING")
    lake.session.sql(f"INSERT INTO {table} VALUES ('old', 1, 'x'), ('older', 2, 'y')")

    lake.merge(table, "Id INT, NAME STRING", (1, "new", "upsert"), (3, "c", "upsert"))

    assert lake.rows(table) == [("c", 3, None), ("new", 1, "x"), ("older", 2, "y")]


def test_metadata_columns_of_the_table(lake: Lake) -> None:
    """They are stored where the table has them, as of the last change."""
    table = lake.create("id BIGINT, name STRING, _OFFSET BIGINT, _change_type STRING")

    lake.merge(table, USERS, (1, "a", "upsert"), (1, "b", "+U"))

    (row,) = lake.rows(table)
    assert row == (1, "b", lake._offset - 1, "+U")


def test_names_of_columns(lake: Lake) -> None:
    """Dots, backticks, spaces and words of SQL, in keys too."""
    table = lake.table()
    columns = "`order` BIGINT, `a.b` STRING, `c``d` STRING, `e f` STRUCT<`g.h`: INT>"
    if lake.engine.name == "delta":
        columns = columns.replace("`e f`", "`e_f`")  # it refuses spaces, without column mapping
    key = ["order", "a.b"]

    lake.merge(table, columns, (1, "x", "y", (1,), "upsert"), (1, "z", "y", (1,), "upsert"), key=key)  # fmt: skip
    lake.merge(table, columns, (1, "x", "new", (2,), "upsert"), key=key, unavailable="?")
    lake.merge(table, columns, (1, "z", None, None, "delete"), key=key)

    assert lake.rows(table) == [(1, "x", "new", (2,))]


TYPES: dict[str, tuple[Any, Any]] = {
    "BOOLEAN": (True, False),
    "DOUBLE": (1.5, -0.0),
    "FLOAT": (0.5, 2.0),
    "DECIMAL(38, 18)": (Decimal("1.000000000000000001"), Decimal("-1.500000000000000000")),
    "STRING": ("ä\n'", ""),
    "BINARY": (bytearray(b"\0\xff"), bytearray()),
    "DATE": (date(2026, 1, 1), date(1, 1, 1)),
    "TIMESTAMP": (datetime(2026, 1, 1, 12), datetime(1970, 1, 1)),  # noqa: DTZ001
    "TIMESTAMP_NTZ": (datetime(2026, 1, 1, 12, 0, 0, 1), datetime(1970, 1, 1)),  # noqa: DTZ001
    "ARRAY<STRUCT<a: INT>>": ([(1,), (None,), None], []),
    "MAP<STRING, ARRAY<INT>>": ({"k": [1, None]}, {}),
    "STRUCT<a: MAP<STRING, INT>, b: STRUCT<c: STRING>>": (({"x": 1}, ("y",)), (None, None)),
}


def test_values_of_every_type(lake: Lake) -> None:
    """They are merged as they are, NULL among them."""
    table = lake.table()
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(TYPES))
    first, second = zip(*TYPES.values(), strict=True)
    nothing = (None,) * len(TYPES)

    lake.merge(table, f"id INT, {columns}", (1, *first, "upsert"), (2, *first, "upsert"), (3, *nothing, "upsert"))  # fmt: skip
    lake.merge(table, f"id INT, {columns}", (2, *second, "upsert"), (1, *nothing, "upsert"), (3, *first, "upsert"))  # fmt: skip

    assert lake.rows(table) == [(1, *nothing), (2, *second), (3, *first)]


def test_keys_of_every_type(lake: Lake) -> None:
    """Equal keys are found; NaN equals NaN, and 0.0 equals -0.0."""
    table = lake.table()
    at = datetime(2026, 1, 1, 12)  # noqa: DTZ001
    columns = "d DOUBLE, x DECIMAL(10, 2), at TIMESTAMP, day DATE, s STRING, flag BOOLEAN, n INT"
    rest = (Decimal("1.50"), at, at.date(), "k", True)

    lake.merge(
        table, columns,
        (math.nan, *rest, 1, "upsert"), (math.nan, *rest, 2, "upsert"), (-0.0, *rest, 3, "upsert"),
        (1.0, *rest, 4, "upsert"),
        key="d,x,at,day,s,flag",
    )  # fmt: skip
    lake.merge(
        table, columns, (math.nan, *rest, 5, "upsert"), (0.0, *rest, 6, "upsert"),
        (1.0, *rest, None, "delete"), (1.0, Decimal("1.51"), *rest[1:], 7, "upsert"),
        key="d,x,at,day,s,flag",
    )  # fmt: skip

    assert sorted(row[0] for row in lake.rows(table, "n")) == [5, 6, 7]


def test_variants(lake: Lake) -> None:
    """Delta Lake stores them; Iceberg says what they need."""
    table = lake.table()
    batch = lake.changes("id INT, doc STRING", (1, '{"a": 1}', "upsert"), (1, '{"a": 2}', "upsert"))
    batch = batch.withColumn("doc", f.parse_json("doc"))

    def merge() -> None:
        merge_sink(table, primary_key="id")(batch, 0)

    if lake.engine.name == "delta":
        merge()
        merge()
        assert lake.read(table).select(f.to_json("doc")).collect() == [('{"a":2}',)]
        return
    with pytest.raises(Exception, match=r"(?i)variant"):
        merge()


def test_partitions(lake: Lake) -> None:
    """A row may move from one partition of the table to another, whether its key decides on that or not."""
    by_name = lake.create(USERS, "PARTITIONED BY (name)")
    tables = [by_name]
    if lake.engine.name == "iceberg":
        tables.append(lake.create(USERS, "PARTITIONED BY (bucket(4, id))"))

    for table in tables:
        lake.merge(table, USERS, *((n, f"p{n % 3}", "upsert") for n in range(20)))
        lake.merge(table, USERS, (1, "p2", "upsert"), (2, None, "delete"), (3, "p9", "upsert"))

        expected = {n: f"p{n % 3}" for n in range(20) if n != 2} | {1: "p2", 3: "p9"}
        assert dict(lake.rows(table)) == expected


def test_a_day_of_changes(lake: Lake) -> None:
    """Times as keys survive the session's time zone."""
    table, start = lake.table(), datetime(2026, 3, 29)  # noqa: DTZ001
    lake.session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        hours = [start + timedelta(hours=n) for n in range(24)]
        lake.merge(table, "at TIMESTAMP_NTZ, n INT", *((at, 1, "upsert") for at in hours), key="at")
        lake.merge(table, "at TIMESTAMP_NTZ, n INT", *((at, 2, "upsert") for at in hours), key="at")
    finally:
        lake.session.conf.set("spark.sql.session.timeZone", "UTC")

    assert sorted(lake.rows(table)) == [(at, 2) for at in hours]


@pytest.mark.skipif(ICEBERG.fits, reason="Iceberg reserves the name _partition")
@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_an_older_change_of_another_partition_changes_nothing(lake: Lake, deletes: str) -> None:
    """If the table has the columns ``_timestamp`` and ``_partition``: then it knows when and where a row was changed."""
    marked = ", is_deleted BOOLEAN" if deletes == "soft" else ""
    table = lake.create(f"{USERS}, _timestamp TIMESTAMP, _partition INT{marked}")
    columns = f"{USERS}, _timestamp TIMESTAMP, _partition INT, _offset BIGINT, _change_type STRING"
    at = [datetime(2026, 1, 1, 0, 0, second, tzinfo=timezone.utc) for second in range(30)]
    batches = (
        [(1, "new", at[20], 0, 5, "upsert"), (2, "new", at[20], 0, 6, "upsert"), (3, "x", at[1], 2, 1, "upsert")],
        [(1, "old", at[10], 1, 5, "upsert"), (2, None, at[10], 1, 6, "delete"), (3, None, at[2], 0, 7, "delete")],
    )  # fmt: skip

    for batch in batches:
        changes = lake.session.createDataFrame(batch, columns)
        merge_sink(table, primary_key="id", deletes=deletes)(changes, 0)

    kept = [] if deletes == "hard" else [(3, "x")]
    assert lake.rows(table, "id", "name") == [(1, "new"), (2, "new"), *kept]


@pytest.mark.skipif(ICEBERG.fits, reason="Iceberg reserves the name _partition")
def test_an_older_change_of_another_topic_changes_nothing(lake: Lake) -> None:
    """Partitions of two topics are different ones, though they have one number, if the table tells the topic too."""
    table = lake.create(f"{USERS}, _timestamp TIMESTAMP, _partition INT, _topic STRING")
    columns = f"{USERS}, _timestamp TIMESTAMP, _partition INT, _topic STRING, _offset BIGINT, _change_type STRING"
    at = [datetime(2026, 1, 1, 0, 0, second, tzinfo=timezone.utc) for second in range(30)]
    batches = (
        [(1, "new", at[20], 0, "a", 5, "upsert"), (2, "new", at[20], 0, "b", 6, "upsert")],
        [(1, "old", at[10], 0, "b", 5, "upsert"), (2, None, at[20], 0, "a", 6, "delete")],
    )  # fmt: skip

    for batch in batches:
        changes = lake.session.createDataFrame(batch, columns)
        merge_sink(table, primary_key="id")(changes, 0)

    assert lake.rows(table, "id", "name") == [(1, "new"), (2, "new")]
