"""Which column of a DataFrame of changes is what, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns, change_columns
from pyspark_upsert_kafka.core.errors import SchemaError

CHANGES = "_change_type string, _partition int, _offset bigint"


def schema(ddl: str) -> StructType:
    """The columns of ``a int, b map<string,int>``, without Spark."""
    fields: list[dict[str, object]] = []
    for column in ddl.split(", "):
        name, kind = column.split(" ")
        fields.append(
            {"name": name, "type": TYPES.get(kind, kind), "nullable": True, "metadata": {}}
        )
    return StructType.fromJson({"type": "struct", "fields": fields})


TYPES: dict[str, object] = {
    "int": "integer",
    "bigint": "long",
    "list": {"type": "array", "elementType": "string", "containsNull": True},
}


def test_columns_are_told_apart() -> None:
    """What has a reserved name is metadata, in any case; the rest is the row."""
    found = change_columns(
        schema(
            "name string, ID int, _Offset bigint, _partition int, _timestamp long, _change_type string"
        ),
        "id",
        "f",
    )

    assert found == ChangeColumns(
        all=("name", "ID", "_Offset", "_partition", "_timestamp", "_change_type"),
        keys=("ID",),
        row=("name", "ID"),
        metadata=("_Offset", "_partition", "_timestamp"),
        change_type="_change_type",
        partition="_partition",
        offset="_Offset",
    )


def test_a_topic_may_be_part_of_the_key() -> None:
    """Where several topics are read, a row belongs to one of them."""
    found = change_columns(schema(f"id int, _topic string, {CHANGES}"), ["id", "_topic"], "f")

    assert found.row == ("id", "_topic")
    assert found.metadata == ("_partition", "_offset")


@pytest.mark.parametrize(
    ("columns", "keys", "message"),
    [
        ("id int, _partition int, _offset bigint", ["id"], "f needs the column '_change_type', and there is none. It says"),
        ("id int, _change_type string, _offset bigint", ["id"], "f needs the column '_partition'.*ordered by _partition and _offset.*, by 'metadata._partition' = 'partition'"),
        ("id int, _change_type string, _partition int", ["id"], "f needs the column '_offset'.*The columns: id, _change_type, _partition"),
        (f"id int, {CHANGES}", ["ident"], "f: the key 'ident' is no column. The columns: id, _change_type"),
        (f"id int, {CHANGES}", [], "needs the columns of the key"),
        (f"id int, {CHANGES}", None, "needs the columns of the key"),
        (f"id int, {CHANGES}", ["id", 1], "f: the columns of the key are given by name, and 1 is none"),
        (f"id int, {CHANGES}", ["id", "ID"], "f: the key 'ID' is given twice"),
        (f"id int, {CHANGES}", ["_offset"], "'_offset' belongs to a message"),
        (f"id list, {CHANGES}", ["id"], "the key 'id' is ARRAY<STRING>; columns of a key have a simple type"),
        (f"id int, Id int, {CHANGES}", ["id"], "two columns of the name 'Id'"),
        ("id int, _change_type int, _partition int, _offset bigint", ["id"], "'_change_type' must be STRING, but is INT"),
        (f"id int, {CHANGES.replace('bigint', 'string')}", ["id"], "'_offset' must be BIGINT, but is STRING"),
    ],
)  # fmt: skip
def test_what_cannot_be(columns: str, keys: Any, message: str) -> None:
    """Each wrong column or key is named before anything runs."""
    with pytest.raises(SchemaError, match=message):
        change_columns(schema(columns), keys, "f")


def test_a_key_may_be_one_name() -> None:
    """A text is one column, not a list of letters."""
    assert change_columns(schema(f"id int, {CHANGES}"), "id", "f").keys == ("id",)
