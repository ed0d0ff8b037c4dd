"""WHERE over tables that change: which rows are deleted, and what is computed of them."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.sql.compiler import compile_script
from tests.unit.sql.tables import CDC_TABLES, TABLES


def sql(query: str) -> str:
    """The last query of a script, as Spark's, without the quotes of names."""
    return compile_script(f"{TABLES}{CDC_TABLES}{query}").jobs[-1].query.sql.replace("`", "")


def test_a_row_that_does_not_fit_is_a_delete() -> None:
    """NULL does not fit either; a delete stays one."""
    assert sql("SELECT id FROM users WHERE age > 1") == (
        "SELECT users.id AS id, users._change_type AS _change_type FROM (SELECT users.id, users.name, users.age, CASE WHEN "
        "users._change_type <> 'delete' AND users.age > 1 THEN users._change_type ELSE 'delete' END AS _change_type FROM "
        "{table_0} AS users) AS users"
    )


def test_a_group_that_does_not_fit_is_a_delete() -> None:
    """Groups are written as upserts otherwise."""
    query = (
        "SELECT * FROM (SELECT region, COUNT(*) AS n FROM views GROUP BY region) AS g WHERE n > 1"
    )

    assert "CASE WHEN g.n > 1 THEN 'upsert' ELSE 'delete' END AS _change_type" in sql(query)


@pytest.mark.parametrize(
    ("query", "computed"),
    [
        ("SELECT id, 10 / age AS a FROM users WHERE age <> 0", "END AS a"),
        ("SELECT id, age AS a FROM users WHERE age <> 0", "THEN users.age END AS a"),
        ("SELECT id, 'x' AS a FROM users WHERE age <> 0", "'x' AS a"),
        ("SELECT i, 10 / age AS a FROM (SELECT id AS i, age FROM users WHERE age <> 0) AS u",
         "CASE WHEN u._change_type <> 'delete' THEN CAST(10 DIV (u.age) AS INT) END AS a"),
        ("SELECT id, 10 / age AS a FROM users", "SELECT users.id AS id, CAST(10 DIV (users.age) AS INT) AS a"),
    ],
)  # fmt: skip
def test_a_row_that_does_not_fit_has_a_key_only(query: str, computed: str) -> None:
    """What may fail for such a row is not computed for it, in no query around the filter; nor is it cast."""
    found = sql(query)

    assert computed in found
    assert ("users.id AS id" in found) or ("u.i AS i" in found)


def test_rows_before_and_after_are_filtered_by_themselves() -> None:
    """The row before an update that fits, without one after it, is the delete."""
    assert sql("SELECT id FROM people WHERE age > 1").endswith(
        "FROM {table_0} AS people WHERE people.age > 1"
    )


@pytest.mark.parametrize("condition", ["id > 5", "id IN (1, 2) OR NOT (id BETWEEN 7 AND 9)", "CAST(id AS STRING) LIKE '1%'"])  # fmt: skip
def test_a_condition_on_the_key_is_a_filter(condition: str) -> None:
    """A key fits always or never, so that no key is deleted that was never written."""
    found = sql(f"SELECT id, 10 / age AS a FROM users WHERE {condition}")

    assert "FROM {table_0} AS users WHERE " in found
    assert "CASE" not in found


@pytest.mark.parametrize(
    "condition", ["id > age", "id > 5 AND name = 'a'", "id < UNIX_TIMESTAMP()"]
)
def test_another_condition_is_no_filter(condition: str) -> None:
    """It may change while the key stays."""
    assert " WHERE " not in sql(f"SELECT id FROM users WHERE {condition}")


def test_filters_in_one_another() -> None:
    """The inner one says which rows are deletes for the outer one."""
    found = sql("SELECT id FROM (SELECT * FROM users WHERE age > 1) AS u WHERE name = 'a'")

    assert "CASE WHEN u._change_type <> 'delete' AND u.name = 'a' THEN" in found
    assert "CASE WHEN users._change_type <> 'delete' AND users.age > 1 THEN" in found
