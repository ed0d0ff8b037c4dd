"""``canal-json``: what each message becomes, with a primary key and without one."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest

from tests.unit.formats.cdc import decoding
from tests.unit.formats.cdc.decoding import DEL, INS, POST, PRE, UPS

rows = partial(decoding.rows, "canal-json")
decoded = partial(decoding.decoded, "canal-json")
error = partial(decoding.error, "canal-json")


def message(type_: Any, data: Any = None, old: Any = None, **more: Any) -> dict[str, Any]:
    """A message of the table shop.people."""
    return {"database": "shop", "table": "people", "type": type_, "data": data, "old": old, **more}


def row(id_: Any, name: Any = None) -> dict[str, Any]:
    """A row; Canal sends numbers as texts."""
    return {"id": None if id_ is None else str(id_), "name": name}


INSERT = message("INSERT", [row(1, "Ada"), row(2, "Alan")])
UPDATE = message("UPDATE", [row(1, "Ada L."), row(2, None)], [{"name": "Ada"}, {"name": "Alan"}])
DELETE = message("DELETE", [row(1, "Ada L."), row(2, None)])


def test_messages_of_several_rows() -> None:
    """Each row of a message is a change of its own; of an update each gives the row before it and the row after it."""
    assert rows(INSERT, UPDATE, DELETE) == [
        (0, INS, 1, "Ada"),
        (0, INS, 2, "Alan"),
        (1, PRE, 1, "Ada"),
        (1, POST, 1, "Ada L."),
        (1, PRE, 2, "Alan"),
        (1, POST, 2, None),
        (2, DEL, 1, "Ada L."),
        (2, DEL, 2, None),
    ]
    assert rows(INSERT, UPDATE, DELETE, key=["id"]) == [
        (0, UPS, 1, "Ada"),
        (0, UPS, 2, "Alan"),
        (1, UPS, 1, "Ada L."),
        (1, UPS, 2, None),
        (2, DEL, 1, None),
        (2, DEL, 2, None),
    ]


def test_a_field_that_is_null_in_old_was_null() -> None:
    """One that is missing there has not changed; each row of a message has its own."""
    update = message("UPDATE", [row(1, "a"), row(2, "b")], [{"name": None}, {"other": None}])
    assert [each for each in rows(update) if each[1] is PRE] == [
        (0, PRE, 1, None),
        (0, PRE, 2, "b"),
    ]


def test_updates_of_keys_in_one_message() -> None:
    """Each is a delete and an upsert; of a key that occurs several times the last change is given."""
    update = message("UPDATE", [row(3, "b"), row(2, "a")], [{"id": "2"}, {"id": "1"}])
    assert rows(update, key=["id"]) == [(0, UPS, 3, "b"), (0, DEL, 1, None), (0, UPS, 2, "a")]


def test_the_last_change_of_a_key_in_a_message() -> None:
    """So that a message never holds two changes of a key, whose order their offset would not tell."""
    twice = message("INSERT", [row(1, "a"), row(2, "b"), row(1, "c")])
    assert rows(twice, twice, key=["id"]) == [
        (0, UPS, 2, "b"),
        (0, UPS, 1, "c"),
        (1, UPS, 2, "b"),
        (1, UPS, 1, "c"),
    ]


def test_no_rows() -> None:
    """An empty array is a message without rows."""
    assert rows(message("INSERT", []), message("DELETE", []), message("UPDATE", [], [])) == []


@pytest.mark.parametrize(
    "type_", ["CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"]
)
def test_changes_of_schemas_are_passed_over(type_: str) -> None:
    """They are no rows and no errors."""
    found = decoded(message(type_, isDdl=True, sql="..."), INSERT)
    assert found.passed_over == {0: f"a change of a schema ('type' is '{type_}')"}
    assert [int(place) for place in found.places] == [1, 1]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"data": [row(1)]}, 'the message has no "type"'),
        (message("insert", [row(1)]), 'unknown "type" value "insert", expected one of INSERT, '),
        (message("INSERT"), 'the "data" field of INSERT message is null or missing'),
        (message("UPDATE", [row(1)]), 'the "old" field of UPDATE message is null or missing'),
        (
            message("UPDATE", [row(1)], [None]),
            'the "old" field of UPDATE message is null or missing',
        ),
        (
            message("DELETE", [row(1), None]),
            'the "data" field of DELETE message is null or missing',
        ),
        (
            message("UPDATE", [row(1), row(2)], [{}]),
            'the "old" field has 1 rows, and the "data" field has 2',
        ),
        (message("INSERT", [row(1), {"id": "x"}]), "field 'data[].id': "),
    ],
)
def test_what_cannot_be_decoded(bad: Any, why: str) -> None:
    """A message of several rows is read whole, or is bad whole."""
    assert error(bad).startswith(why)


def test_an_update_without_old_needs_it_not_with_a_primary_key() -> None:
    """Nothing says that the key has changed."""
    assert rows(message("UPDATE", [row(1, "a")]), key=["id"]) == [(0, UPS, 1, "a")]


def test_several_rows_under_one_key() -> None:
    """With EXCEPT_KEY the key of the message is that of one row."""
    two = message("INSERT", [{"name": "a"}, {"name": "b"}])
    assert error(two, columns="name STRING", key=[], reads_key=True).startswith(
        "it has 2 rows, and with"
    )


@pytest.mark.parametrize("key", [None, ["id"]])
def test_watermarks_of_ticdc_are_passed_over(key: list[str] | None) -> None:
    """With its extension TiCDC writes one a second among the changes, and a field of its own into each message."""
    watermark = {
        "id": 0, "database": "", "table": "", "pkNames": None, "isDdl": False, "type": "TIDB_WATERMARK",
        "es": 1640007049196, "ts": 1640007050284, "sql": "", "sqlType": None, "mysqlType": None, "data": None, "old": None,
        "_tidb": {"watermarkTs": 429918007904436226},
    }  # fmt: skip
    change = INSERT | {"_tidb": {"commitTs": 163963314122145239}}
    for copies in (1, 100):
        found = decoded(*[watermark, change] * copies, key=key)
        assert not found.errors
        assert sorted(found.passed_over) == [*range(0, 2 * copies, 2)]
        assert found.passed_over[0] == "a watermark of TiCDC ('type' is 'TIDB_WATERMARK')"
        assert [*found.places] == [at for at in range(1, 2 * copies, 2) for _ in INSERT["data"]]


OTHER = message("INSERT", [{"id": "not a number"}]) | {"table": "orders"}


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({"table.include": "people"}, [1, 1]),
        ({"table.include": "peop.*"}, [1, 1]),
        ({"table.include": "peop"}, []),
        ({"database.include": "shop", "table.include": "people|users"}, [1, 1]),
        ({"database.include": "another"}, []),
    ],
)
def test_tables_and_databases_that_are_read(options: dict[str, str], places: list[int]) -> None:
    """Messages of others are ignored, whatever is in them; the whole name must match."""
    found = decoded(OTHER, INSERT, OTHER | {"type": "CREATE"}, b"", **options)
    assert [int(place) for place in found.places] == places
    assert not found.errors
    assert not found.passed_over


def test_a_message_that_does_not_say_its_table_is_read() -> None:
    """So that nothing is lost in silence; and what is no JSON is an error."""
    found = decoded({"type": "INSERT", "data": [row(1)]}, b"[", **{"table.include": "people"})
    assert [int(place) for place in found.places] == [0]
    assert [*found.errors] == [1]


def test_metadata() -> None:
    """Each row of a message has it."""
    found = decoded(
        message("INSERT", [row(1), row(2)], ts=1_700_000_000_123, es=1_700_000_000_000, pkNames=["id"], sqlType={"id": -5}),
        metadata=[
            "value.database", "value.table", "value.sql-type", "value.pk-names", "value.ingestion-timestamp",
            "value.event-timestamp",
        ],
    )  # fmt: skip
    time = datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    assert {key: column.to_pylist() for key, column in found.metadata.items()} == {
        "value.database": ["shop"] * 2,
        "value.table": ["people"] * 2,
        "value.sql-type": [[("id", -5)]] * 2,
        "value.pk-names": [["id"]] * 2,
        "value.ingestion-timestamp": [time.replace(microsecond=123_000)] * 2,
        "value.event-timestamp": [time] * 2,
    }
