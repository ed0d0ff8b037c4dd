"""``ogg-json``: what each message becomes, with a primary key and without one."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest

from tests.unit.formats.cdc import decoding
from tests.unit.formats.cdc.decoding import DEL, INS, POST, PRE, UPS

rows = partial(decoding.rows, "ogg-json")
decoded = partial(decoding.decoded, "ogg-json")
error = partial(decoding.error, "ogg-json")


def message(op: Any, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    """A message."""
    return {"op_type": op, "before": before, "after": after, **more}


INSERT = message("I", None, {"id": 1, "name": "Ada"})
UPDATE = message("U", {"id": 1, "name": "Ada"}, {"id": 2, "name": "Ada"})
DELETE = message("D", {"id": 2, "name": "Ada"})


def test_inserts_updates_and_deletes() -> None:
    """As Debezium's: images without a primary key, upserts and deletes with one."""
    assert rows(INSERT, UPDATE, DELETE) == [
        (0, INS, 1, "Ada"),
        (1, PRE, 1, "Ada"),
        (1, POST, 2, "Ada"),
        (2, DEL, 2, "Ada"),
    ]
    assert rows(INSERT, UPDATE, DELETE, key=["id"]) == [
        (0, UPS, 1, "Ada"),
        (1, DEL, 1, None),
        (1, UPS, 2, "Ada"),
        (2, DEL, 2, None),
    ]


@pytest.mark.parametrize("empty", [b"{}", b"{ \n\t}"])
@pytest.mark.parametrize("copies", [1, 100])
def test_an_object_without_fields_is_no_row(empty: bytes, copies: int) -> None:
    """GoldenGate writes it where it has no row; one whose fields are NULL, or are no columns, is a row."""

    def text(op: str, before: bytes, after: bytes) -> bytes:
        return b'{"op_type":"%b","before":%b,"after":%b}' % (op.encode(), before, after)

    row = b'{"id":1,"name":"Ada"}'
    insert, delete = text("I", empty, row), text("D", row, empty)
    assert rows(*[insert, delete] * copies)[:2] == [(0, INS, 1, "Ada"), (1, DEL, 1, "Ada")]
    assert rows(text("U", empty, row), key=["id"]) == [(0, UPS, 1, "Ada")]
    for before in (b'{"id":null}', b'{"other":{}}'):
        assert rows(*[text("U", before, row)] * copies)[:2] == [
            (0, PRE, None, None),
            (0, POST, 1, "Ada"),
        ]
    for bad, why in (
        (text("U", empty, row), 'The "before" field of UPDATE message is null'),
        (text("D", empty, empty), 'The "before" field of DELETE message is null'),
        (text("I", empty, empty), 'the "after" field of INSERT message is null or missing'),
    ):
        assert error(bad).startswith(why)
    assert error(text("D", empty, row), key=["id"]).startswith('The "before" field of DELETE')
    twice = b'{"op_type":"D","before":{},"before":{"id":1,"name":"x"}}'
    assert rows(twice) == [(0, DEL, 1, "x")]


def test_a_truncate_is_passed_over() -> None:
    """It is no row and no error."""
    assert decoded(message("T")).passed_over == {0: "a truncate of the table ('op_type' is 'T')"}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"after": {}}, 'the message has no "op_type"'),
        (message("X"), 'unknown "op_type" value "X", expected one of I, U, D, T'),
        (message("I"), 'the "after" field of INSERT message is null or missing'),
        (
            message("U", None, {"id": 1}),
            'The "before" field of UPDATE message is null, if you are using Ogg Postgres',
        ),
        (
            message("D"),
            'The "before" field of DELETE message is null, if you are using Ogg Postgres',
        ),
    ],
)
def test_what_cannot_be_decoded(bad: Any, why: str) -> None:
    """Each has its sentence."""
    assert error(bad).startswith(why)


def test_metadata() -> None:
    """Its times have no zone, and are spelt in two ways; another text is NULL."""
    keys = [
        "value.table",
        "value.primary-keys",
        "value.ingestion-timestamp",
        "value.event-timestamp",
    ]
    more = {"table": "S.P", "primary_keys": ["id"], "op_ts": "2020-05-13 15:40:06.000001"}
    found = decoded(
        {**INSERT, **more, "current_ts": "2020-05-13T15:40:07.5"},
        {**DELETE, "current_ts": "now"},
        metadata=keys,
    )
    assert {key: column.to_pylist() for key, column in found.metadata.items()} == {
        "value.table": ["S.P", None],
        "value.primary-keys": [["id"], None],
        "value.ingestion-timestamp": [
            datetime(2020, 5, 13, 15, 40, 7, 500_000, timezone.utc),
            None,
        ],
        "value.event-timestamp": [datetime(2020, 5, 13, 15, 40, 6, 1, timezone.utc), None],
    }
