"""``maxwell-json``: what each message becomes, with a primary key and without one."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest

from tests.unit.formats.cdc import decoding
from tests.unit.formats.cdc.decoding import DEL, INS, POST, PRE, UPS

COLUMNS = "id BIGINT, name STRING, note STRING"
rows = partial(decoding.rows, "maxwell-json", columns=COLUMNS)
decoded = partial(decoding.decoded, "maxwell-json", columns=COLUMNS)
error = partial(decoding.error, "maxwell-json", columns=COLUMNS)


def message(type_: Any, data: Any = None, old: Any = None, **more: Any) -> dict[str, Any]:
    """A message; without ``old`` where that is None."""
    return {"type": type_, "data": data, **({} if old is None else {"old": old}), **more}


def row(id_: Any, name: Any = None, note: Any = None) -> dict[str, Any]:
    """A row of the table."""
    return {"id": id_, "name": name, "note": note}


INSERT = message("insert", row(1, "Ada", "x"))
DELETE = message("delete", row(1, "Ada", "x"))


@pytest.mark.parametrize(
    ("data", "old", "before"),
    [
        (row(1, "b", "x"), {"name": "a"}, (1, "a", "x")),
        (row(1, "b", "x"), {"name": None}, (1, None, "x")),
        (row(1, None, "x"), {"name": "a"}, (1, "a", "x")),
        (row(1, None, None), {"name": None}, (1, None, None)),
        (row(1, "null", "x"), {"note": "null"}, (1, "null", "null")),
        (row(1, "b", "x"), {}, (1, "b", "x")),
        (row(1, "b", "x"), {"other": None}, (1, "b", "x")),
        (row(2, "b", "x"), {"id": 1}, (1, "b", "x")),
    ],
)
@pytest.mark.parametrize("lenient", ["false", "true"])
def test_the_row_before_an_update(
    data: Any, old: Any, before: tuple[Any, ...], lenient: str
) -> None:
    """A field that is missing in 'old' is that of the row after; one that is null there was NULL."""
    assert rows(message("update", data, old), ignore_parse_errors=lenient) == [
        (0, PRE, *before),
        (0, POST, *data.values()),
    ]


def test_inserts_and_deletes() -> None:
    """The rows of a bootstrap are inserts too; a delete has the whole row."""
    bootstrap = message("bootstrap-insert", row(2, "Alan"))
    assert rows(INSERT, bootstrap, DELETE) == [
        (0, INS, 1, "Ada", "x"),
        (1, INS, 2, "Alan", None),
        (2, DEL, 1, "Ada", "x"),
    ]
    assert rows(INSERT, bootstrap, DELETE, key=["id"]) == [
        (0, UPS, 1, "Ada", "x"),
        (1, UPS, 2, "Alan", None),
        (2, DEL, 1, None, None),
    ]


def test_an_update_of_the_key() -> None:
    """It is a delete of the old key and an upsert."""
    update = message("update", row(2, "Ada", "x"), {"id": 1})
    assert rows(update, key=["id"]) == [(0, DEL, 1, None, None), (0, UPS, 2, "Ada", "x")]
    both = message("update", row(2, "Ada", "y"), {"id": 1, "note": "x"})
    assert rows(both, key=["name", "note"]) == [(0, DEL, None, "Ada", "x"), (0, UPS, 2, "Ada", "y")]
    assert rows(message("update", row(2, "b"), {"name": "a"}), key=["id"]) == [
        (0, UPS, 2, "b", None)
    ]
    assert rows(message("update", row(2, "b")), key=["id"]) == [(0, UPS, 2, "b", None)]


@pytest.mark.parametrize(
    ("type_", "what"),
    [
        ("bootstrap-start", "the start of a bootstrap"),
        ("bootstrap-complete", "the end of a bootstrap"),
        ("table-create", "a change of a schema ('type' is 'table-create')"),
        ("table-alter", "a change of a schema ('type' is 'table-alter')"),
        ("database-drop", "a change of a schema ('type' is 'database-drop')"),
    ],
)
def test_what_changes_no_row_is_passed_over(type_: str, what: str) -> None:
    """It is no row and no error, whether it has data or not."""
    found = decoded(message(type_), message(type_, {}), INSERT)
    assert found.passed_over == {0: what, 1: what}
    assert [each[0] for each in decoding.rows_of(found)] == [2]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"data": row(1)}, 'the message has no "type"'),
        (message("INSERT", row(1)), 'unknown "type" value "INSERT", expected one of insert, '),
        (message("insert"), 'the "data" field of INSERT message is null or missing'),
        (message("update", None, {}), 'the "data" field of UPDATE message is null or missing'),
        (message("update", row(1)), 'the "old" field of UPDATE message is null or missing'),
        (message("delete"), 'the "data" field of DELETE message is null or missing'),
        (message("insert", {"id": "x"}), "field 'data.id': expected"),
    ],
)
def test_what_cannot_be_decoded(bad: Any, why: str) -> None:
    """Each has its sentence."""
    assert error(bad).startswith(why)


def test_metadata() -> None:
    """'ts' is in seconds."""
    found = decoded(
        message(
            "update",
            row(1),
            {},
            database="shop",
            table="people",
            ts=1_700_000_000,
            primary_key_columns=["id"],
        ),
        metadata=[
            "value.database",
            "value.table",
            "value.primary-key-columns",
            "value.ingestion-timestamp",
        ],
    )
    assert {key: column.to_pylist() for key, column in found.metadata.items()} == {
        "value.database": ["shop"] * 2,
        "value.table": ["people"] * 2,
        "value.primary-key-columns": [["id"]] * 2,
        "value.ingestion-timestamp": [datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)] * 2,
    }
