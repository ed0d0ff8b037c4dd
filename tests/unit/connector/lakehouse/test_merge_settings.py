"""The arguments of `merge_sink`: names of tables, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_upsert_kafka import OptionError, merge_sink
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import (
    Deletes,
    MergeSettings,
    SchemaChanges,
    TableName,
    table_name,
)


def test_defaults() -> None:
    """Deletes delete, and the columns stay as they are."""
    assert merge_sink("lake.users", primary_key="id").settings == MergeSettings(
        TableName(("lake", "users")), ("id",), Deletes.HARD, SchemaChanges.FIXED, None, None
    )


def test_all_arguments() -> None:
    """Each of them becomes a frozen value."""
    sink = merge_sink(
        "/lake/users",
        primary_key=["id", "a,b"],
        deletes="soft",
        schema="evolve",
        unavailable="?",
        deleted_column="gone",
        sequence_by=["version", "at"],
        ignore_null_updates=True,
        first_batch="table",
        properties={"format-version": "3"},
    )

    assert sink.settings == MergeSettings(
        TableName(("delta", "/lake/users"), is_path=True),
        ("id", "a,b"),
        Deletes.SOFT,
        SchemaChanges.EVOLVE,
        "?",
        "gone",
        ("version", "at"),
        ignores_nulls=True,
        begins_with_table=True,
        properties={"format-version": "3"},
    )


def test_a_text_of_several_columns() -> None:
    """As the option 'primary-key' has it."""
    settings = merge_sink(
        "users", primary_key=" a, b ", deletes="soft", sequence_by="v ,w"
    ).settings
    assert (settings.primary_key, settings.sequence_by) == (("a", "b"), ("v", "w"))


def test_rows_that_stay_are_marked() -> None:
    """The column has a name unless another one is given."""
    assert merge_sink("t", primary_key="id", deletes="soft").settings.deleted_column == "is_deleted"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"primary_key": ""}, "primary_key is a list of the names of columns, or a text with commas"),
        ({"primary_key": []}, "primary_key is a list"),
        ({"primary_key": None}, "primary_key is a list"),
        ({"primary_key": ["id", 1]}, "primary_key is a list"),
        ({"primary_key": "a,,b"}, "primary_key is a list"),
        ({"primary_key": "id, ID"}, "names a column twice"),
        ({"deletes": "HARD"}, "deletes must be 'hard' or 'soft' or 'ignore', and is 'HARD'"),
        ({"deletes": None}, "deletes must be"),
        ({"schema": "evolved"}, "schema must be 'fixed' or 'evolve', and is 'evolved'"),
        ({"unavailable": ""}, "unavailable is the text"),
        ({"unavailable": 1}, "unavailable is the text"),
        ({"deletes": "soft", "deleted_column": ""}, "deleted_column must be the name"),
        ({"deleted_column": "gone"}, "deleted_column = 'gone' is for deletes = 'soft', and deletes is 'hard'"),
        ({"sequence_by": "v"}, "sequence_by needs deletes = 'soft' or 'ignore', and deletes is 'hard': after a hard delete nothing would"),
        ({"sequence_by": "", "deletes": "soft"}, "sequence_by is a list of the names of columns"),
        ({"sequence_by": [], "deletes": "soft"}, "sequence_by is a list of the names of columns"),
        ({"sequence_by": 5, "deletes": "soft"}, "sequence_by is a list of the names of columns"),
        ({"sequence_by": "v,V", "deletes": "soft"}, "sequence_by = 'v,V' names a column twice"),
        ({"sequence_by": "v, ID", "deletes": "soft"}, "names 'ID', a column of the key"),
        ({"sequence_by": "v desc", "deletes": "ignore"}, "ends with DESC, and takes the names of columns only"),
        ({"sequence_by": ["v asc "], "deletes": "ignore"}, "ends with ASC, and takes the names of columns only"),
        ({"ignore_null_updates": "yes"}, "ignore_null_updates must be True or False, and is 'yes'"),
        ({"first_batch": "full"}, "first_batch must be 'changes' or 'table', and is 'full'"),
        ({"first_batch": "table", "deletes": "ignore"}, "deletes = 'ignore' keeps them"),
        ({"properties": {"format-version": 3}}, "properties are names and values"),
        ({"properties": {"": "3"}}, "properties are names and values"),
        ({"properties": "format-version=3"}, "properties are names and values"),
        ({"table": "lake/users"}, "the path of a table is absolute"),
    ],
)  # fmt: skip
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    """A mistake is told at the call, and not in the first batch."""
    with pytest.raises(OptionError, match=message):
        merge_sink(**{"table": "users", "primary_key": "id", **given})


def test_a_misspelt_argument() -> None:
    """Python itself refuses it."""
    with pytest.raises(TypeError, match="primary_keys"):
        merge_sink("users", primary_keys="id")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("text", "sql", "is_path"),
    [
        ("users", "`users`", False),
        (" lake.db.users ", "`lake`.`db`.`users`", False),
        ("lake.`my db`.`a.b`", "`lake`.`my db`.`a.b`", False),
        ("`a``b`.c-d", "`a``b`.`c-d`", False),
        ("lake.db.`a/b`", "`lake`.`db`.`a/b`", False),
        ("/tmp/lake/users", "`delta`.`/tmp/lake/users`", True),
        ("s3a://lake/us ers", "`delta`.`s3a://lake/us ers`", True),
        ("file:/tmp/x", "`delta`.`file:/tmp/x`", True),
        ("delta.`/tmp/x`", "`delta`.`/tmp/x`", True),
        ("delta.users", "`delta`.`users`", False),
    ],
)
def test_names_and_paths(text: str, sql: str, is_path: bool) -> None:
    """A slash outside backticks makes a path; parts of names may hold anything in backticks."""
    name = table_name(text)

    assert (name.sql, name.is_path) == (sql, is_path)


def test_how_it_is_shown() -> None:
    """In messages a table has the name that users know."""
    assert str(table_name("/tmp/x")) == "/tmp/x"
    assert str(table_name("lake.`a b`")) == "lake.a b"


@pytest.mark.parametrize("text", ["", " ", None, 7, "a..b", "a.", ".a", "a b", "`a", "a`b`", "``"])
def test_what_is_no_table(text: str) -> None:
    """It is told at once, with what was given."""
    with pytest.raises(OptionError, match="merge_sink: table is"):
        table_name(text)


@pytest.mark.parametrize("text", ["lake/users", "./users", "delta.`lake/users`"])
def test_a_path_is_absolute(text: str) -> None:
    """Delta Lake takes a relative one for the name of a table."""
    with pytest.raises(OptionError, match=r"the path of a table is absolute.*lake/users|absolute"):
        table_name(text)
