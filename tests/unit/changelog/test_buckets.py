"""What a bucket keeps from micro-batch to micro-batch, and with which it does not go on."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.changelog import buckets
from pyspark_upsert_kafka.changelog.buckets import Bucket, Kept
from pyspark_upsert_kafka.changelog.columns import ChangeColumns
from pyspark_upsert_kafka.changelog.layout import Layout
from pyspark_upsert_kafka.changelog.packing import NO_KEYS, by_bucket, packed, unpacked
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.formats.exact_types import with_type

METADATA = [
    ("_change_type", pa.string()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
]
LAYOUT = Layout(4, ("id",), {"id": "bigint", "seen": "timestamp"})


def bucket(*row: str, layout: Layout = LAYOUT, number: int = 3) -> Bucket:
    """A bucket of a table with these columns, by default ``id`` and ``seen``."""
    row = row or ("id", "seen")
    metadata = ("_change_type", "_partition", "_offset")
    columns = ChangeColumns((*row, *metadata), ("id",), row, metadata[1:], *metadata)
    return Bucket(number, columns, layout)


def changes(*rows: dict[str, Any], zone: str = "UTC", **more: pa.DataType) -> bytes:
    """Packed upserts of partition 0, whose offsets are their places."""
    fields = [("id", pa.int64()), ("seen", pa.timestamp("us", zone)), *more.items(), *METADATA]
    of_message = {"_change_type": "upsert", "_partition": 0}
    return packed(
        pa.Table.from_pylist(
            [{**of_message, "_offset": at, **row} for at, row in enumerate(rows)], pa.schema(fields)
        )
    )


def kinds(whole: Any) -> list[str]:
    """The kinds of change in packed output."""
    return [kind for part in whole for kind in unpacked(part)["_change_type"].to_pylist()]


def rows_of(kept: Kept) -> pa.Table:
    """The rows that were written as a whole, where none have changed since."""
    assert kept.rows is not None
    assert kept.recent is None
    return unpacked(kept.rows)


def test_a_bucket_goes_on_where_it_was() -> None:
    """What one micro-batch leaves, the next one finds; of several packed values, the offsets say the order."""
    last, whole = bucket().apply(Kept(), [changes({"id": 1, "seen": 5}), changes()])
    assert kinds(whole) == ["insert"]

    later, earlier = ({"id": 1, "seen": at, "_offset": at} for at in (7, 6))
    last, whole = bucket().apply(last, [changes(later), changes(earlier)])

    assert kinds(whole) == ["update_preimage", "update_postimage"] * 2
    assert rows_of(last)["seen"].cast(pa.int64()).to_pylist() == [7]


def test_a_column_that_was_added() -> None:
    """Rows from before have NULL in it, and it is kept from then on."""
    last, _ = bucket().apply(Kept(), [changes({"id": 1}, {"id": 2})])
    wider = replace(LAYOUT, columns={**LAYOUT.columns, "name": "string"})
    now = bucket("id", "seen", "name", layout=wider)

    row = {"id": 1, "name": "a", "_offset": 9}
    last, whole = now.apply(last, [changes(row, {"id": 2}, name=pa.string())])

    (part,) = whole
    assert unpacked(part)["name"].to_pylist() == [None, "a"]
    assert (
        rows_of(last).select(["id", "name"]).to_pylist()
        == [
            {"id": 1, "name": "a"},
            {"id": 2, "name": None},
        ][::-1]
    )


def test_another_time_zone_of_the_session() -> None:
    """A timestamp is the same moment in each."""
    last, _ = bucket().apply(Kept(), [changes({"id": 1, "seen": 5})])

    _, whole = bucket().apply(last, [changes({"id": 1, "seen": 5}, zone="Asia/Tokyo")])

    assert kinds(whole) == []


PART = [pa.field("c", pa.int64(), nullable=False), pa.field("at", pa.timestamp("us", "UTC"), nullable=False)]  # fmt: skip
NULL_STRUCT = pa.StructArray.from_arrays(
    [pa.nulls(2, field.type) for field in PART], fields=PART, mask=pa.array([True, True])
)
"""As Spark has them: its fields are NULL too, though each is NOT NULL."""


def _not_null(name: str, values: pa.Array) -> list[pa.Field]:
    return [pa.field(name, values.type, nullable=False)]


def _null_around(values: pa.Array) -> pa.Array:
    """A NULL struct around them, and one of which they are the only field."""
    fields = _not_null("inner", values)
    return pa.StructArray.from_arrays([values], fields=fields, mask=pa.array([False, True]))


def _listed(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, 2, 2], pa.int32()), values)


def _mapped(values: pa.Array) -> pa.Array:
    keys = pa.array(["a", "b"])
    return pa.MapArray.from_arrays(pa.array([0, 2, 2], pa.int32()), keys, values)


@pytest.mark.parametrize(
    "values",
    [
        NULL_STRUCT,
        _listed(NULL_STRUCT),
        _mapped(NULL_STRUCT),
        _null_around(_listed(NULL_STRUCT)),
        _null_around(_mapped(NULL_STRUCT)),
        _listed(_mapped(NULL_STRUCT)),
    ],
    ids=["struct", "array", "map", "struct of array", "struct of map", "array of maps"],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_null_structs_of_not_null_fields(values: pa.Array, zone: str) -> None:
    """A state with them is read again, by themselves, in arrays, maps and structs, in another time zone too."""

    def upserts(held: pa.Array) -> bytes:
        table = unpacked(changes({"id": 1}, {"id": 2}, part=held.type))
        return packed(table.set_column(2, table.field("part"), held))

    layout = replace(LAYOUT, columns={**LAYOUT.columns, "part": "as it is"})
    now = bucket("id", "seen", "part", layout=layout)
    last, whole = now.apply(Kept(), [upserts(values)])
    assert kinds(whole) == ["insert"] * 2

    last, whole = now.apply(last, [upserts(with_type(values, _in_zone(values.type, zone)))])

    assert kinds(whole) == []
    assert rows_of(last)["part"].to_pylist() == values.to_pylist()


def _in_zone(kind: pa.DataType, zone: str) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_in_zone(each.type, zone)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_in_zone(kind.item_type, zone)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_zone(kind.value_type, zone)))
    return pa.timestamp("us", zone) if pa.types.is_timestamp(kind) else kind


def test_a_field_that_became_not_null() -> None:
    """A NULL that the state has under it is never shown as a value."""
    layout = replace(LAYOUT, columns={**LAYOUT.columns, "part": "struct<c:bigint>"})
    now = bucket("id", "seen", "part", layout=layout)
    nullable, strict = (pa.struct([pa.field("c", pa.int64(), nullable=n)]) for n in (True, False))
    one = {"id": 1, "part": {"c": 1}}
    good, _ = now.apply(Kept(), [changes(one, {"id": 2}, part=nullable)])
    bad, _ = now.apply(Kept(), [changes({"id": 1, "part": {"c": None}}, part=nullable)])

    _, whole = now.apply(good, [changes(one, {"id": 2}, part=strict)])
    assert kinds(whole) == []
    with pytest.raises(CheckpointError, match=r"'part\.c' is NOT NULL now, and NULL in rows"):
        now.apply(bad, [changes(one, part=strict)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"buckets": 8}, "the checkpoint has buckets=4, and this query has buckets=8"),
        ({"keys": ("id", "seen")}, "the checkpoint has the keys id, and this query has id, seen"),
        ({"columns": {"id": "bigint"}}, "column 'seen' has the type timestamp in the checkpoint, and now it is gone"),
        ({"columns": {"id": "string", "seen": "timestamp"}}, "column 'id' has the type bigint in the checkpoint, and now it has the type string"),
    ],
)  # fmt: skip
def test_a_state_of_another_layout(other: dict[str, Any], message: str) -> None:
    """A query that would look in the wrong bucket, or lose a column, is refused: by buckets without keys too."""
    for number in (3, NO_KEYS):
        last, _ = bucket(number=number).apply(Kept(), [changes()])
        with pytest.raises(CheckpointError, match=message):
            bucket(layout=replace(LAYOUT, **other), number=number).apply(last, [changes()])


def test_the_state_of_an_earlier_version_is_written_again() -> None:
    """An earlier version of this package would not look at recent rows: it finds a later version, and refuses."""
    now, _ = bucket().apply(Kept(), [many()])
    rows = rows_of(now)
    metadata = {b"layout": LAYOUT.to_json().replace('"version": 2', '"version": 1')}
    earlier = Kept(packed(rows.replace_schema_metadata(metadata)))

    again, whole = bucket().apply(earlier, [changes({"id": 1, "seen": 0})])

    assert kinds(whole) == ["update_preimage", "update_postimage"]
    assert b'"version": 2' in rows_of(again).schema.metadata[b"layout"]


def test_a_state_of_a_later_version() -> None:
    """What a later version has written is not guessed about."""
    with pytest.raises(CheckpointError, match="a later version of this package"):
        LAYOUT.check(LAYOUT.to_json().replace('"version": 2', '"version": 3'))


def test_a_bucket_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends in a sentence that says how many buckets it takes, not in a worker that is killed."""
    monkeypatch.setattr(buckets, "MAX_BUCKET_BYTES", 1000)
    many = changes(*({"id": at, "seen": at} for at in range(100)))

    with pytest.raises(CheckpointError, match=r"bucket 3 of 4 has 1,6\d\d bytes.*with buckets=16"):
        bucket().apply(Kept(), [many])


def test_rows_are_packed_bucket_by_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is in its bucket, in order; a bucket without keys comes along whenever there are rows."""
    monkeypatch.setattr("pyspark_upsert_kafka.changelog.packing.MAX_HELD_BYTES", 100)
    rows = pa.record_batch([["a", "b", "c", "d"], [5, 2, 5, 2]], ["name", "bucket"])

    def found(*batches: pa.RecordBatch) -> list[tuple[int, list[str]]]:
        return [(at, unpacked(part)["name"].to_pylist()) for at, part in by_bucket(batches)]

    once = [(NO_KEYS, []), (2, ["b", "d"]), (5, ["a", "c"])]
    assert found(rows) == once
    assert found(rows, rows) == [(NO_KEYS, []), (2, ["b", "d"] * 2), (5, ["a", "c"] * 2)]
    assert found(rows, rows, rows)[:3] == found(rows, rows)
    assert found() == []


WIDE = bucket(
    "id", "seen", "name", layout=replace(LAYOUT, columns={**LAYOUT.columns, "name": "string"})
)
MANY = range(80)


def many(**more: pa.DataType) -> bytes:
    """An upsert of each of many keys."""
    return changes(*({"id": at, "seen": at} for at in MANY), **more)


def test_few_changes_do_not_write_all_rows_again() -> None:
    """What was written as a whole stays as it is, until about an eighth of the keys have changed since."""
    first, _ = bucket().apply(Kept(), [many()])
    kept, whole = bucket().apply(first, [changes({"id": 7, "seen": 0}, {"id": 99, "seen": 1})])
    assert kinds(whole) == ["update_preimage", "update_postimage", "insert"]
    assert kept.rows is first.rows
    assert unpacked(kept.recent or b"").num_rows == 2

    gone = [{"id": at, "_change_type": "delete", "_offset": 200 + at} for at in (7, 8, 98)]
    kept, whole = bucket().apply(kept, [changes(*gone)])
    assert kinds(whole) == ["delete", "delete"]
    assert kept.rows is first.rows

    again, whole = bucket().apply(
        kept, [changes(*({"id": at, "seen": 5, "_offset": 300 + at} for at in range(8)))]
    )
    assert kinds(whole) == [*["update_preimage", "update_postimage"] * 6, "insert"]  # 5 was 5
    assert sorted(rows_of(again)["id"].to_pylist()) == sorted({*MANY, 99} - {8})


def test_no_changes_write_nothing() -> None:
    """The bucket without keys comes with each micro-batch."""
    first, _ = bucket().apply(Kept(), [changes()])
    kept, whole = bucket().apply(first, [changes()])
    assert kept is first
    assert kinds(whole) == []


def test_another_layout_writes_all_rows_again() -> None:
    """So that what is kept is of one layout, whose columns a later query is compared with."""
    narrow, _ = bucket().apply(Kept(), [many()])
    narrow, _ = bucket().apply(narrow, [changes({"id": 1, "seen": 0})])

    row = {"id": 2, "name": "b", "seen": 2, "_offset": 99}
    wide, whole = WIDE.apply(narrow, [changes(row, name=pa.string())])

    assert kinds(whole) == ["update_preimage", "update_postimage"]
    names = rows_of(wide).sort_by("id")["name"].to_pylist()
    assert names == ["b" if at == 2 else None for at in MANY]


def test_recent_rows_of_another_layout_are_refused() -> None:
    """They are of the layout that the rows were written with, or later: both are looked at."""
    wide, _ = WIDE.apply(Kept(), [many(name=pa.string())])
    wide, _ = WIDE.apply(wide, [changes({"id": 1, "seen": 0}, name=pa.string())])
    narrow, _ = bucket().apply(Kept(), [many()])

    with pytest.raises(
        CheckpointError,
        match="column 'name' has the type string in the checkpoint, and now it is gone",
    ):
        bucket().apply(Kept(narrow.rows, wide.recent), [changes({"id": 1})])


IDS = st.sampled_from([None, math.nan, 0.0, -0.0, *map(float, range(1, 30))])
UPSERT_OR_DELETE = st.sampled_from(["upsert", "upsert", "delete"])


@given(
    st.lists(st.lists(st.tuples(IDS, st.integers(0, 2), UPSERT_OR_DELETE), max_size=12), max_size=8)
)
def test_micro_batches_of_any_size_give_what_one_gives(
    batches: list[list[tuple[Any, ...]]],
) -> None:
    """Whatever is written as a whole, or beside it: the changes of whole rows are the same, and the rows in the end."""
    first = [(float(at), 0, "upsert") for at in range(20)]
    layout = Layout(4, ("id",), {"id": "double", "seen": "int"})
    keyed = bucket(layout=layout)
    number = itertools.count()

    def rows(batch: list[tuple[Any, ...]]) -> pa.Table:
        columns = [*zip(*batch, strict=True)] or [[], [], []]
        of_message = [
            pa.array([0] * len(batch), pa.int32()),
            pa.array([next(number) for _ in batch], pa.int64()),
        ]
        arrays = [
            pa.array(columns[0], pa.float64()),
            pa.array(columns[1], pa.int32()),
            pa.array(columns[2], pa.string()),
            *of_message,
        ]
        return pa.table(arrays, ["id", "seen", "_change_type", "_partition", "_offset"])

    kept, parts, whole = Kept(), [rows(each) for each in [first, *batches]], []
    for part in parts:
        kept, out = keyed.apply(kept, [packed(part)])
        whole += [row for each in out for row in unpacked(each).to_pylist()]

    once, out = keyed.apply(Kept(), [packed(part) for part in parts])
    assert repr(whole) == repr([row for each in out for row in unpacked(each).to_pylist()])
    # An upsert of each key again shows its row, or that it has none.
    probe = packed(rows([(key, 9, "upsert") for key in (None, math.nan, *map(float, range(30)))]))
    ends = [
        [row for each in keyed.apply(state, [probe])[1] for row in unpacked(each).to_pylist()]
        for state in (kept, once)
    ]
    assert repr(ends[0]) == repr(ends[1])
