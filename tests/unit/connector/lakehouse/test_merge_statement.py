"""The MERGE statement: what happens to which row, and which changes are older than it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import product
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.lakehouse.merge_settings import Deletes
from pyspark_upsert_kafka.connector.lakehouse.merge_statement import Merge

Row = tuple[Any, ...]

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


REBORN = """\
MERGE INTO `lake`.`users` AS t USING changes AS s ON t.`id` = s.`id` AND NOT s.`_merge_again`
WHEN MATCHED AND (NOT s.`_merge`.has_row OR s.`_merge`.is_reborn) THEN DELETE
WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`name` = s.`name`
WHEN NOT MATCHED AND s.`_merge`.has_row AND (NOT s.`_merge`.is_reborn OR s.`_merge_again`) \
THEN INSERT (`id`, `name`) VALUES (s.`id`, s.`name`)"""


def test_a_row_that_is_deleted_and_comes_again() -> None:
    """Where the table has columns that the changes do not have: its row is deleted, and inserted by the same row a second time."""
    assert merge(again="_merge_again").statement() == REBORN


ABSENT = """\
WHEN NOT MATCHED BY SOURCE AND NOT coalesce(t.`gone`, false) THEN UPDATE SET t.`gone` = true"""


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ({}, "WHEN NOT MATCHED BY SOURCE THEN DELETE"),
        ({"deletes": Deletes.SOFT, "deleted_column": "gone"}, ABSENT),
    ],
    ids=["hard", "soft"],
)
def test_a_batch_that_is_the_whole_table(more: dict[str, object], last: str) -> None:
    """Rows of other keys are deleted, or marked if they are not yet."""
    *others, found = merge(is_whole_table=True, **more).statement().splitlines()

    assert found == last
    assert others == merge(**more).statement().splitlines()


def test_a_value_that_was_not_sent_stays() -> None:
    """Where the row exists; a new row has no other value than the one of the changes."""
    *_, update, insert = merge(partial={"name": 2}).statement().splitlines()

    assert update == (
        "WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, "
        "t.`name` = CASE WHEN s.`_merge`.sent[2] IS NOT NULL THEN s.`name` ELSE t.`name` END"
    )
    assert insert.endswith("VALUES (s.`id`, s.`name`)")


def test_a_row_that_was_deleted_begins_empty() -> None:
    """Where NULL keeps the table's value: a row that is marked as deleted is as good as none."""
    more = {"partial": {"name": 0}, "revives_empty": True}
    soft = merge(deletes=Deletes.SOFT, deleted_column="gone", **more).statement()

    assert (
        "THEN s.`name` WHEN t.`gone` AND NOT s.`_merge`.is_deleted THEN NULL ELSE t.`name` END"
        in soft
    )
    assert "WHEN t." not in merge(**more).statement()


def test_what_a_delete_leaves_says_how_new_it_is() -> None:
    """A delete that leaves the row sets what shows the last change; one of a key without a row makes one."""
    more = {
        "columns": ["id", "name", "version"],
        "deletes": Deletes.SOFT,
        "deleted_column": "gone",
        "of_last_change": ["version"],
        "sequence": {"version": False},
    }
    marked, updated, inserted = merge(**more).statement().splitlines()[1:]

    assert marked.endswith("THEN UPDATE SET t.`gone` = true, t.`version` = s.`version`")
    older = "coalesce(s.`_merge`.{0}.s0 < t.`version`, s.`_merge`.{0}.s0 IS NULL AND t.`version` IS NOT NULL)"
    last, row = older.format("last"), older.format("row")
    assert marked.startswith(
        f"WHEN MATCHED AND NOT {last} AND (NOT s.`_merge`.has_row OR {row}) THEN"
    )
    assert updated.startswith(f"WHEN MATCHED AND NOT {last} THEN UPDATE SET t.`id` = s.`id`, ")
    assert inserted.startswith("WHEN NOT MATCHED THEN INSERT (`id`, `name`, `version`, `gone`)")


def test_nan_says_as_little_as_null() -> None:
    """Spark has NaN above all numbers: a row with it would never change again."""
    statement = merge(sequence={"v": True}).statement()

    assert "s.`_merge`.last.s0 < CASE WHEN isnan(t.`v`) THEN NULL ELSE t.`v` END" in statement


def test_which_change_is_older_by_its_sequence() -> None:
    """Column by column, NULL below everything; of equal ones the log decides, if the table says where its row was changed."""
    values = [*product((None, 1, 2), repeat=2)]
    places = [(time, partition) for time in (1, 2) for partition in (0, 1)]
    sequence = {"a": False, "b": False}

    for knows_place in (False, True):
        log = {"timestamp": "at", "place": ["part"]} if knows_place else {}
        with closing(sqlite3.connect(":memory:")) as database:
            is_older = asked(database, merge(sequence=sequence, **log), ("s0", "s1"), ("a", "b"))
            for change, row, (time, partition), (at, part) in product(
                values, values, places, places
            ):
                expected = [value or 0 for value in change] < [value or 0 for value in row]
                if knows_place and change == row and partition != part:
                    expected = (time, partition) < (at, part)
                found = is_older((*change, time, partition, None), (*row, at, part, None))
                assert found == expected, (change, row, time, partition, at, part)


def asked(
    database: sqlite3.Connection, of: Merge, sequence: tuple[str, ...], stored: tuple[str, ...]
) -> Callable[[Row, Row], bool]:
    """A function that says whether a change is older than a row, by what the statement asks."""
    condition = of.statement().splitlines()[1].split("AND NOT ", 1)[1]
    condition = condition.removesuffix(" AND NOT s.`_merge`.has_row THEN DELETE")
    condition = condition.replace("s.`_merge`.last.", "s.").replace("<=>", "IS")
    of_change, of_row = (*sequence, "time", "partition", "topic"), (*stored, "at", "part", "of")
    database.execute(f"CREATE TABLE change ({', '.join(of_change)})")
    database.execute(f"CREATE TABLE told ({', '.join(of_row)})")

    def is_older(change: Row, row: Row) -> bool:
        for table, values in (("change", change), ("told", row)):
            database.execute(f"DELETE FROM {table}")
            database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        (found,) = database.execute(f"SELECT {condition} FROM change AS s, told AS t").fetchone()
        return bool(found)

    return is_older


def test_any_name_may_be_that_of_a_column() -> None:
    """Dots, backticks and spaces are part of a name."""
    statement = merge(keys=["a.b", "c`d"], columns=["a.b", "c`d"]).statement()

    assert "ON t.`a.b` = s.`a.b` AND t.`c``d` = s.`c``d`\n" in statement
    assert "INSERT (`a.b`, `c``d`) VALUES (s.`a.b`, s.`c``d`)" in statement


@pytest.mark.parametrize(
    ("place", "differs", "is_lower"),
    [
        (["part"], "s.`_merge`.last.partition <> t.`part`", "s.`_merge`.last.partition < t.`part`"),
        (
            ["part", "of"],
            "s.`_merge`.last.partition <> t.`part` OR s.`_merge`.last.topic <> t.`of`",
            "s.`_merge`.last.partition < t.`part` OR (s.`_merge`.last.partition = t.`part` AND s.`_merge`.last.topic < t.`of`)",
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
        f"coalesce(({differs}) AND (s.`_merge`.last.time < t.`at` OR (s.`_merge`.last.time <=> t.`at` AND "
        f"({is_lower})) OR (s.`_merge`.last.time IS NULL AND t.`at` IS NOT NULL)), false)"
    )
    assert len(matched) == 2
    assert all(line.startswith(f"WHEN MATCHED AND NOT {is_older}") for line in matched)
    assert "coalesce" not in insert


@pytest.mark.parametrize("place", [["part"], ["part", "of"]], ids=["partition", "and topic"])
def test_which_change_is_older(place: list[str]) -> None:
    """A lower time, or of equal times a lower place; no time is the lowest, and a row that does not say where it was is older."""
    places = [(partition, topic) for partition in (0, 1) for topic in ("a", "b")]
    told = [*product((None, 1, 2), [*places, (None, None)])]
    with closing(sqlite3.connect(":memory:")) as database:
        is_older = asked(database, merge(timestamp="at", place=place), (), ())
        for (time, change), (at, row) in product(product((None, 1, 2), places), told):
            here, there = change[: len(place)], row[: len(place)]
            expected = None not in there and here != there
            expected = expected and (time or 0, *here) < (at or 0, *there)
            assert is_older((time, *change), (at, *row)) == expected, (time, change, at, row)
