"""Upserts and deletes as changes of whole rows: examples, and laws for any changes in any batches."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns
from pyspark_upsert_kafka.connector.changelog.row_images import normalized
from pyspark_upsert_kafka.core.errors import SchemaError

SCHEMA = pa.schema(
    [
        pa.field("_change_type", pa.string()),
        pa.field("id", pa.float64()),
        pa.field("_offset", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("tags", pa.map_(pa.string(), pa.float64())),
        pa.field("_partition", pa.int32(), nullable=False),
    ]
)
COLUMNS = ChangeColumns(
    tuple(SCHEMA.names),
    ("id",),
    ("id", "name", "tags"),
    ("_offset", "_partition"),
    "_change_type",
    "_partition",
    "_offset",
)
EMPTY = pa.schema([SCHEMA.field(name) for name in COLUMNS.row]).empty_table()
NAN = float("nan")


def change(offset: int, key: float | None, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A change; no name = a delete."""
    kind = "delete" if name is None else "upsert"
    row = {"_change_type": kind, "id": key, "name": name, "_partition": 0, "_offset": offset}
    return row | more


def table(changes: list[dict[str, Any]]) -> pa.Table:
    """Changes in columns."""
    return pa.Table.from_pylist(changes, SCHEMA)


def short(output: pa.Table) -> list[tuple[Any, ...]]:
    """What a test looks at."""
    return [
        (row["_change_type"], row["id"], row["name"], row["_offset"]) for row in output.to_pylist()
    ]


def test_a_life() -> None:
    """Each change of a key becomes what it does to the row that was there, with its own metadata."""
    life = [
        change(0, 1, None),
        change(1, 1, "a"),
        change(2, 1, "a"),
        change(3, 1, "b"),
        change(4, 1, None),
        change(5, 1, None),
        change(6, 1, "b"),
    ]

    last, output = normalized(EMPTY, table(life), COLUMNS)

    assert short(output) == [
        ("insert", 1, "a", 1),
        ("update_preimage", 1, "a", 3),
        ("update_postimage", 1, "b", 3),
        ("delete", 1, "b", 4),
        ("insert", 1, "b", 6),
    ]
    assert last.to_pylist() == [{"id": 1, "name": "b", "tags": None}]
    assert output.schema == SCHEMA


def test_rows_of_batches_before_are_known() -> None:
    """A delete shows the whole row that an earlier batch has left."""
    last, _ = normalized(EMPTY, table([change(0, 1, "a", tags=[("x", 1.0)])]), COLUMNS)
    last, output = normalized(last, table([change(1, 1)]), COLUMNS)

    assert output.to_pylist() == [change(1, 1, "a", tags=[("x", 1.0)], _change_type="delete")]
    assert last.num_rows == 0


def test_order_is_that_of_partition_and_offset() -> None:
    """Batches come in any order after a shuffle; offsets say which change was first."""
    mixed = [change(2, 1, "c"), change(0, 1, "a"), change(1, 1, "b")]

    last, output = normalized(EMPTY, table(mixed), COLUMNS)

    assert [row["name"] for row in output.to_pylist()] == ["a", "a", "b", "b", "c"]
    assert last["name"].to_pylist() == ["c"]


@pytest.mark.parametrize(("key", "same"), [(None, None), (NAN, NAN), (-0.0, 0.0)])
def test_keys_that_are_equal(key: float | None, same: float | None) -> None:
    """NULL is a key like any other, and zeros are one."""
    last, _ = normalized(EMPTY, table([change(0, key, "a")]), COLUMNS)
    last, output = normalized(last, table([change(1, same, "a"), change(2, same)]), COLUMNS)

    assert output["_change_type"].to_pylist() == ["delete"]
    assert last.num_rows == 0


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "GMT+8", "Z"])
def test_a_time_as_key_in_any_zone(zone: str) -> None:
    """Spark takes zones that polars does not know."""
    when = pa.timestamp("us", tz=zone)
    times = pa.array([1, 1, None, None], when)
    same = table([change(offset, 0.0, "a") for offset in range(4)])
    changes = same.set_column(1, pa.field("id", when), times)
    last = EMPTY.set_column(0, pa.field("id", when), pa.array([], when))

    last, output = normalized(last, changes, COLUMNS)

    assert output["_change_type"].to_pylist() == ["insert", "insert"]
    assert last["id"].cast("int64").to_pylist() == [1, None]


@pytest.mark.parametrize("kind", ["insert", "UPSERT", None])
def test_other_kinds_of_change_are_refused(kind: str | None) -> None:
    """A row that is neither an upsert nor a delete is never guessed about."""
    changes = table([change(0, 1, "a"), change(7, 1, "a", _change_type=kind, _partition=3)])

    with pytest.raises(SchemaError, match=r"of partition 3, offset 7 is .*_error IS NULL"):
        normalized(EMPTY, changes, COLUMNS)


def test_nothing_to_do() -> None:
    """No changes leave the rows as they are."""
    last = pa.Table.from_pylist([{"id": 1, "name": "a", "tags": None}], EMPTY.schema)

    assert normalized(last, SCHEMA.empty_table(), COLUMNS) == (last, SCHEMA.empty_table())


KEYS = st.sampled_from([None, 1.0, 2.0, NAN, 0.0, -0.0])
TAGS = st.none() | st.dictionaries(
    st.sampled_from("xy"), st.none() | st.sampled_from([NAN, 0.0, -0.0])
).map(lambda tags: [*tags.items()])
CHANGES = st.lists(st.tuples(KEYS, st.sampled_from([None, "a", "b"]), TAGS), max_size=20).map(
    lambda parts: [
        change(offset, key, name, tags=None if name is None else tags)
        for offset, (key, name, tags) in enumerate(parts)
    ]
)


def in_batches(changes: list[dict[str, Any]], ends: list[int]) -> tuple[pa.Table, list[Any]]:
    """The last rows and all output of changes that came in batches with these ends."""
    last, output = EMPTY, []
    for begin, end in zip([0, *ends], [*ends, len(changes)], strict=True):
        last, made = normalized(last, table(changes[begin:end]), COLUMNS)
        output += made.to_pylist()
    return last, output


def row_of(change: dict[str, Any]) -> Any:
    """A change's row as Python compares it."""
    tags = change["tags"]
    return change["name"], tags and {key: plain(item) for key, item in tags}


def plain(number: float | None) -> Any:
    """A number as Python compares it."""
    return "NaN" if number is not None and math.isnan(number) else number


@given(CHANGES, st.lists(st.integers(0, 20)))
def test_laws_of_whole_rows(changes: list[dict[str, Any]], ends: list[int]) -> None:
    """The output gives the snapshot, its preimages are the rows before, no update leaves a row as it was, in any batches."""
    cut = sorted(min(end, len(changes)) for end in ends)
    last, output = in_batches(changes, cut)

    applied: dict[Any, Any] = {}
    preimage = None
    for made in output:
        key, row, kind = plain(made["id"]), row_of(made), made["_change_type"]
        if kind == "insert":
            assert key not in applied
        elif kind in ("update_preimage", "delete"):
            assert applied.pop(key) == row
            preimage = row
            continue
        else:
            assert row != preimage
        applied[key] = row
    snapshot = {plain(change["id"]): row_of(change) for change in changes}
    snapshot = {key: row for key, row in snapshot.items() if row[0] is not None}
    assert applied == snapshot
    assert {plain(row["id"]): row_of(row) for row in last.to_pylist()} == snapshot
    assert repr(output) == repr(in_batches(changes, [])[1])
