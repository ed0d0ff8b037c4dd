"""Which change is newer by columns of its own, and updates that send a part of a row."""

from __future__ import annotations

import logging
import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as f

from pyspark_upsert_kafka import SchemaError, merge_sink
from pyspark_upsert_kafka.core import errors
from tests.lakehouse.engines import Lake

VERSIONED = "id INT, name STRING, version INT"


def test_a_change_of_a_lower_version_changes_nothing(lake: Lake) -> None:
    """Deletes too, whatever the batches; of equal versions the later change counts, and NULL is below all."""
    table = lake.table()
    how: dict[str, Any] = {"deletes": "soft", "sequence_by": "VERSION"}

    lake.merge(
        table, VERSIONED,
        (1, "a", 5, "upsert"), (1, "old", 4, "upsert"), (2, "b", None, "upsert"), (3, "c", 5, "upsert"),
        (4, None, 9, "delete"), (5, "e", 5, "upsert"), (6, "f", None, "upsert"),
        **how,
    )  # fmt: skip
    lake.merge(
        table, VERSIONED,
        (1, "older", 3, "upsert"), (1, None, 4, "delete"), (2, "bb", -7, "upsert"), (3, "same", 5, "upsert"),
        (4, "late", 8, "upsert"), (5, None, 6, "delete"), (6, "ff", None, "upsert"), (6, None, None, "delete"),
        **how,
    )  # fmt: skip
    expected = [
        (1, "a", 5, False), (2, "bb", -7, False), (3, "same", 5, False), (4, None, 9, True), (5, "e", 6, True),
        (6, "ff", None, True),
    ]  # fmt: skip
    assert lake.rows(table) == expected
    lake.merge(
        table, VERSIONED,
        (1, None, None, "delete"), (4, "again", 10, "upsert"), (5, "late", 5, "upsert"), (3, "low", 1, "upsert"),
        (3, None, 2, "delete"),
        **how,
    )  # fmt: skip

    assert lake.rows(table) == [*expected[:3], (4, "again", 10, False), *expected[4:]]


def test_versions_of_several_columns(lake: Lake) -> None:
    """They are compared in their order, each by its type; NaN is as low as NULL, and the table may have wider types."""
    table = lake.create("id INT, `order` DECIMAL(12, 2), x DOUBLE, at TIMESTAMP, `a.b` STRING")
    columns = "id INT, `ORDER` DECIMAL(10, 1), X FLOAT, at TIMESTAMP, `a.b` STRING"
    at = [datetime(2026, 1, 1, hour, tzinfo=timezone.utc) for hour in range(3)]
    one, two = Decimal("1.0"), Decimal("2.0")

    for batch in (
        [(1, one, 9.0, at[1], "a"), (2, one, math.nan, at[1], "a"), (3, one, -0.0, at[1], "a"), (4, one, None, at[1], "a")],
        [(1, one, 8.0, at[2], "lower"), (2, one, -math.inf, at[0], "b"), (3, one, 0.0, at[0], "lower"), (4, one, math.nan, at[2], "b")],
        [(1, two, None, None, "b"), (2, one, math.nan, at[2], "lower"), (3, one, 0.0, at[2], "b"), (4, one, None, at[1], "lower")],
    ):  # fmt: skip
        lake.merge(
            table, columns, *((*row, "upsert") for row in batch),
            deletes="ignore", sequence_by="order, x,AT",
        )  # fmt: skip

    assert lake.rows(table, "id", "`a.b`") == [(1, "b"), (2, "b"), (3, "b"), (4, "b")]


def test_the_time_of_a_message_as_its_version(lake: Lake) -> None:
    """The table gets its column, so that a delete, which has no row, counts as well."""
    table = lake.table()
    columns = "id INT, _timestamp TIMESTAMP"
    at = [datetime(2026, 1, 1, hour, tzinfo=timezone.utc) for hour in range(4)]

    for batch in (
        [(1, at[1], "upsert"), (2, at[1], "upsert")],
        [(1, at[0], "delete"), (2, at[3], "delete")],
        [(2, at[2], "upsert")],
    ):
        lake.merge(table, columns, *batch, deletes="soft", sequence_by="_timestamp")

    hour = f.hour("_timestamp")
    found = lake.read(table).select("id", hour, "is_deleted").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, 1, False), (2, 3, True)]


def test_what_cannot_be_a_version(lake: Lake) -> None:
    """A column that the batch or the table lacks, that has no order, or another type than that of the table."""
    table = lake.create("id INT, name STRING")
    how = {"deletes": "ignore", "sequence_by": "version"}

    with pytest.raises(SchemaError, match=r"sequence_by names 'version', which is no column. The"):
        lake.merge(table, "id INT", (1, "upsert"), **how)
    for kind, value in (("ARRAY<INT>", [1]), ("STRUCT<a: INT>", (1,)), ("MAP<INT, INT>", {1: 1})):
        with pytest.raises(SchemaError, match=r"'version', which is .*: its values have no order"):
            lake.merge(table, f"id INT, version {kind}", (1, value, "upsert"), **how)
    with pytest.raises(SchemaError, match=r"has no column 'version' \(INT\)"):
        lake.merge(table, VERSIONED, (1, "a", 1, "upsert"), **how)
    lake.merge(table, VERSIONED, (1, "a", 1, "upsert"), **how, schema="evolve")
    with pytest.raises(SchemaError, match="column 'version' is STRING in the changes and INT in"):
        lake.merge(table, "id INT, version STRING", (1, "2", "upsert"), **how)
    lake.merge(table, "id INT, version SMALLINT", (1, 0, "upsert"), (2, 7, "upsert"), **how)

    assert lake.rows(table) == [(1, "a", 1), (2, None, 7)]


@pytest.mark.timeout(900)
def test_writers_that_do_not_agree_on_the_order(lake: Lake) -> None:
    """Two queries write the same keys at once: the greatest version stands, whoever commits last."""
    table, rounds = lake.table(), 2
    sink = merge_sink(table, primary_key="id", deletes="soft", sequence_by="version")
    lake.merge(table, VERSIONED, (0, "a", -1, "upsert"), deletes="soft", sequence_by="version")
    versions = [[0, 4], [5, 1]]
    batches = [
        [
            lake.changes(VERSIONED, *((id_, f"v{of[turn]}", of[turn], "upsert") for id_ in range(9)))
            for turn in range(rounds)
        ]
        for of in versions
    ]  # fmt: skip
    start = threading.Barrier(2)

    def write(own: int) -> None:
        start.wait()
        for number, batch in enumerate(batches[own]):
            sink(batch, number)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, own) for own in range(2)]:
            done.result()

    assert lake.rows(table) == [(id_, "v5", 5, False) for id_ in range(9)]


NESTED = "id INT, n INT, s STRUCT<a: INT, b: INT>, l ARRAY<INT>, m MAP<STRING, INT>, x DOUBLE"


def test_null_keeps_the_value_of_the_table(lake: Lake) -> None:
    """Of a row that is there, in columns of every type; a struct is one value. A new row has NULL."""
    table = lake.table()

    for batch in (
        [(1, 1, (1, 2), [1], {"k": 1}, math.nan, "upsert"), (2, None, (1, 2), None, None, 1.0, "upsert")],
        [(1, None, None, None, None, None, "upsert"), (2, 2, (3, None), None, {}, None, "upsert"), (3, None, None, [], None, None, "upsert")],
    ):  # fmt: skip
        lake.merge(table, NESTED, *batch, ignore_null_updates=True)

    first, *others = lake.rows(table)
    assert first[:5] == (1, 1, (1, 2), [1], {"k": 1})
    assert math.isnan(first[5])
    assert others == [(2, 2, (3, None), None, {}, 1.0), (3, None, None, [], None, None)]


@pytest.mark.parametrize("deletes", ["hard", "soft", "ignore"])
def test_several_updates_of_a_part_in_a_batch(lake: Lake, deletes: str) -> None:
    """They are laid over each other in order; a row that comes after its delete begins empty."""
    table, columns = lake.table(), "id INT, a INT, b INT, c STRING"
    lake.merge(table, columns, *((id_, 0, 0, "x", "upsert") for id_ in (1, 2, 3)), deletes=deletes, ignore_null_updates=True)  # fmt: skip
    batches: list[list[tuple[Any, ...]]] = [
        [
            (1, 1, None, None, "upsert"), (1, None, 2, None, "upsert"), (1, 3, None, "?", "upsert"),
            (2, 1, None, "y", "upsert"), (2, None, None, None, "delete"), (2, None, 2, "?", "upsert"),
            (3, None, None, None, "delete"),
            (4, 1, None, "?", "upsert"), (4, None, 4, None, "upsert"),
        ],
        [(3, None, 3, None, "upsert"), (4, None, None, "z", "upsert")],
    ]  # fmt: skip

    for batch in batches:
        for _ in range(2):
            lake.merge(table, columns, *batch, deletes=deletes, ignore_null_updates=True, unavailable="?")  # fmt: skip

    ignored = [(2, 1, 2, "y"), (3, 0, 3, "x")]
    revived = [(2, None, 2, None), (3, None, 3, None)]
    middle = ignored if deletes == "ignore" else revived
    assert lake.rows(table, "id", "a", "b", "c") == [(1, 3, 2, "x"), *middle, (4, 1, 4, "z")]


def test_parts_of_a_row_by_their_versions(lake: Lake) -> None:
    """A part that is older than the table's row changes nothing, though a newer one is in its batch."""
    table, columns = lake.table(), "id INT, a INT, b INT, version INT"
    how: dict[str, Any] = {"deletes": "soft", "sequence_by": "version", "ignore_null_updates": True}

    lake.merge(table, columns, (1, 1, 1, 5, "upsert"), (2, 1, 1, 5, "upsert"), **how)
    lake.merge(
        table, columns,
        (1, 9, 9, 3, "upsert"), (1, None, 7, 7, "upsert"),
        (2, None, None, 4, "delete"), (2, None, 7, 7, "upsert"), (2, 8, None, 8, "upsert"),
        **how,
    )  # fmt: skip

    assert lake.rows(table) == [(1, 1, 7, 7, False), (2, 8, 7, 8, False)]


def test_char_is_no_version_and_no_key(lake: Lake) -> None:
    """It is filled with blanks, so that nothing equals it; Iceberg has no CHAR."""
    if lake.engine.name == "iceberg":
        pytest.skip("Iceberg stores CHAR as STRING")
    by_name = lake.create("k CHAR(5), v INT")
    path = str(lake.folder / "by path" / "char")
    lake.session.sql(f"CREATE TABLE delta.`{path}` (k CHAR(5), v INT) USING delta")
    version = lake.create("k STRING, v CHAR(5)")

    for table in (by_name, path):
        with pytest.raises(SchemaError, match=r"key column 'k' of the table .* is CHAR\(5\)"):
            lake.merge(table, "k STRING, v INT", ("a", 1, "upsert"), key="k")
    with pytest.raises(SchemaError, match=r"sequence column 'v' of the table .* is CHAR\(5\)"):
        lake.merge(
            version, "k STRING, v STRING", ("a", "1", "upsert"),
            key="k", deletes="ignore", sequence_by="v",
        )  # fmt: skip
    wide = lake.create("k VARCHAR(5), v INT")
    lake.merge(wide, "k STRING, v INT", ("a", 1, "upsert"), key="k")
    lake.merge(wide, "k STRING, v INT", ("a", 2, "upsert"), key="k")
    assert lake.rows(wide) == [("a", 2)]


def test_properties_of_a_table_that_is_made(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """Those that are given, over the usual ones; a table that is there keeps its own."""
    table = lake.table()
    given = {"format-version": "3"} if lake.engine.name == "iceberg" else {"delta.appendOnly": "false"}  # fmt: skip
    given |= {"owner.name": r"it's \ 'me'"}

    lake.merge(table, "id INT, n INT", *((n, n, "upsert") for n in range(100)), properties=given)
    lake.merge(table, "id INT, n INT", (7, -7, "upsert"), (8, None, "delete"), properties={"other": "x"})  # fmt: skip

    found = dict(tuple(row) for row in lake.session.sql(f"SHOW TBLPROPERTIES {table}").collect())
    assert {**found, **given} == found
    assert "other" not in found
    assert lake.rows(table) == sorted([(n, -n if n == 7 else n) for n in range(100) if n != 8], key=repr)  # fmt: skip
    if lake.engine.name == "iceberg":
        assert found["write.merge.mode"] == "merge-on-read"
        vectors = lake.session.table(f"{table}.all_delete_files").select("file_format").collect()
        assert {row[0] for row in vectors} == {"PUFFIN"}


def test_a_property_that_is_refused_when_the_table_is_there(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """Iceberg looks at some only when it writes. Giving another one changes nothing then: the log says what does."""
    if lake.engine.name != "iceberg":
        pytest.skip("Delta Lake looks at all of its own when it makes a table")
    table, changes = lake.table(), ("id INT, n INT", (1, 1, "upsert"))
    name = "write.merge.mode"
    for given in ("bogus", "copy-on-write"):
        caplog.clear()
        with pytest.raises(Exception, match="Unknown row-level operation mode: bogus"):
            lake.merge(table, *changes, properties={name: given})
        (told,) = caplog.messages
        assert "keeps the properties with which it was made" in told
        assert re.search(r"ALTER TABLE \S+ SET TBLPROPERTIES", told)

    lake.session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{name}' = 'copy-on-write')")
    lake.merge(table, *changes, properties={name: "copy-on-write"})

    assert lake.rows(table) == [(1, 1)]


def test_a_warning_names_keys_in_several_partitions(
    lake: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few of them, once; not where versions say which change is newer."""
    monkeypatch.setattr(errors, "_warned", set())
    keys = [(id_, v) for id_ in range(1, 5) for v in (1, 2)]
    changes = lake.changes("id INT, v INT", *((*key, "upsert") for key in keys), (9, 3, "upsert"))
    changes = changes.withColumn("_partition", f.col("v"))

    with caplog.at_level(logging.WARNING):
        merge_sink(lake.table(), primary_key="id", deletes="ignore", sequence_by="v")(changes, 0)
        assert caplog.messages == []
        for _ in range(2):
            merge_sink(lake.table(), primary_key="id")(changes, 0)

    (message,) = caplog.messages
    assert message.startswith("merge_sink: keys lie in several partitions")
    assert message.endswith(", partitions = [(1,), (2,)]; and 1 more.")


def test_a_tombstone_has_no_version(
    lake: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It deletes no row that has one, and a warning says what to do."""
    monkeypatch.setattr(errors, "_warned", set())
    table, how = lake.table(), {"deletes": "soft", "sequence_by": "version"}

    with caplog.at_level(logging.WARNING):
        lake.merge(table, VERSIONED, (1, "a", 1, "upsert"), (2, None, 2, "delete"), **how)
        assert caplog.messages == []
        lake.merge(table, VERSIONED, (1, None, None, "delete"), **how)

    assert lake.rows(table) == [(1, "a", 1, False), (2, None, 2, True)]
    (message,) = caplog.messages
    assert message.startswith("merge_sink: deletes have no value in 'version' (sequence_by)")
