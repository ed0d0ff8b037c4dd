"""The arguments of `merge_sink` are checked when it is called."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_upsert_kafka import OptionError, merge_sink
from pyspark_upsert_kafka.lakehouse.settings import Deletes, MergeSettings, SchemaChanges
from pyspark_upsert_kafka.lakehouse.table_name import TableName


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
    )

    assert sink.settings == MergeSettings(
        TableName(("delta", "/lake/users"), is_path=True),
        ("id", "a,b"),
        Deletes.SOFT,
        SchemaChanges.EVOLVE,
        "?",
        "gone",
    )


def test_a_text_of_several_columns() -> None:
    """As the option 'primary-key' has it."""
    assert merge_sink("users", primary_key=" a, b ").settings.primary_key == ("a", "b")


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
