"""What a bucket keeps from micro-batch to micro-batch, and with which it does not go on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.changelog import buckets
from pyspark_upsert_kafka.connector.changelog.buckets import (
    NO_KEYS,
    Bucket,
    Layout,
    by_bucket,
    packed,
    unpacked,
)
from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.formats.batches import with_type

METADATA = [
    ("_change_type", pa.string()),
    ("_partition", pa.int32()),
    ("_offset", pa.int64()),
]
LAYOUT = Layout(4, ("id",), {"id": "bigint", "seen": "timestamp"})


@dataclass
class Kept:
    """The state of a bucket in memory, and which segments were read and written since it was last asked."""

    last: bytes | None = None
    segments: dict[int, bytes] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)

    def head(self) -> bytes | None:
        return self.last

    def set_head(self, head: bytes) -> None:
        assert head != self.last
        self.last = head

    def segment(self, number: int) -> bytes | None:
        self.read.append(number)
        return self.segments.get(number)

    def set_segment(self, number: int, rows: bytes) -> None:
        self.written.append(number)
        self.segments[number] = rows

    def remove_segment(self, number: int) -> None:
        self.segments.pop(number, None)

    def seen(self) -> tuple[list[int], list[int]]:
        """The segments that were read and those that were written."""
        seen = sorted(self.read), sorted(self.written)
        self.read.clear()
        self.written.clear()
        return seen


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
    """All rows, ordered by their keys."""
    tables = [unpacked(each) for each in kept.segments.values()]
    return pa.concat_tables(tables, promote_options="default").sort_by("id")


def test_a_bucket_goes_on_where_it_was() -> None:
    """What one micro-batch leaves, the next one finds; of several packed values, the offsets say the order."""
    kept = Kept()
    whole = bucket().apply(kept, [changes({"id": 1, "seen": 5}), changes()])
    assert kinds(whole) == ["insert"]

    later, earlier = ({"id": 1, "seen": at, "_offset": at} for at in (7, 6))
    whole = bucket().apply(kept, [changes(later), changes(earlier)])

    assert kinds(whole) == ["update_preimage", "update_postimage"] * 2
    assert rows_of(kept)["seen"].cast(pa.int64()).to_pylist() == [7]


def test_a_column_that_was_added() -> None:
    """Rows from before have NULL in it, and it is kept from then on."""
    kept = Kept()
    bucket().apply(kept, [changes({"id": 1}, {"id": 2})])
    wider = replace(LAYOUT, columns={**LAYOUT.columns, "name": "string"})
    now = bucket("id", "seen", "name", layout=wider)

    row = {"id": 1, "name": "a", "_offset": 9}
    whole = now.apply(kept, [changes(row, {"id": 2}, name=pa.string())])

    (part,) = whole
    assert unpacked(part)["name"].to_pylist() == [None, "a"]
    assert rows_of(kept).select(["id", "name"]).to_pylist() == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": None},
    ]


def test_another_time_zone_of_the_session() -> None:
    """A timestamp is the same moment in each."""
    kept = Kept()
    bucket().apply(kept, [changes({"id": 1, "seen": 5})])

    whole = bucket().apply(kept, [changes({"id": 1, "seen": 5}, zone="Asia/Tokyo")])

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
    kept = Kept()
    whole = now.apply(kept, [upserts(values)])
    assert kinds(whole) == ["insert"] * 2

    whole = now.apply(kept, [upserts(with_type(values, _in_zone(values.type, zone)))])

    assert kinds(whole) == []
    assert rows_of(kept)["part"].to_pylist() == values.to_pylist()


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
    good, bad = Kept(), Kept()
    now.apply(good, [changes(one, {"id": 2}, part=nullable)])
    now.apply(bad, [changes({"id": 1, "part": {"c": None}}, part=nullable)])

    whole = now.apply(good, [changes(one, {"id": 2}, part=strict)])
    assert kinds(whole) == []
    with pytest.raises(CheckpointError, match=r"'part\.c' is NOT NULL now, and NULL in rows"):
        now.apply(bad, [changes(one, part=strict)])


def test_a_column_that_became_not_null() -> None:
    """Its NULL in rows from before is never shown, and neither is that of a column that was added: Spark has no NULL there."""
    one = {"id": 1, "seen": 5, "name": "a"}
    kept = Kept()
    bucket().apply(kept, [changes({"id": 1}, {"id": 2, "seen": 5})])

    def not_null(name: str, batch: bytes) -> bytes:
        table = unpacked(batch)
        at = table.schema.get_field_index(name)
        return packed(table.cast(table.schema.set(at, table.schema.field(at).with_nullable(False))))

    for now, name in ((bucket(), "seen"), (WIDE, "name")):
        with pytest.raises(CheckpointError, match=rf"'{name}' is NOT NULL now, and NULL in rows"):
            now.apply(kept, [not_null(name, changes(one, name=pa.string()))])


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
        kept = Kept()
        bucket(number=number).apply(kept, [changes()])
        with pytest.raises(CheckpointError, match=message):
            bucket(layout=replace(LAYOUT, **other), number=number).apply(kept, [changes()])


def test_the_state_of_the_first_version_becomes_segments() -> None:
    """It had all rows in one value; that value says from then on that a later version has written it."""
    rows = unpacked(many()).select(["id", "seen"])
    layout = LAYOUT.to_json().replace('"version": 3', '"version": 1')
    kept = Kept(packed(rows.replace_schema_metadata({b"layout": layout})))

    whole = bucket().apply(kept, [changes({"id": 1, "seen": 0})])

    assert kinds(whole) == ["update_preimage", "update_postimage"]
    assert unpacked(kept.last or b"").num_rows == 0
    assert b'"version": 3' in unpacked(kept.last or b"").schema.metadata[b"layout"]
    assert rows_of(kept)["seen"].cast(pa.int64()).to_pylist() == [0, 0, *MANY[2:]]


@pytest.mark.parametrize("version", [2, 5])
def test_a_state_of_another_version(version: int) -> None:
    """What a later version has written is not guessed about."""
    with pytest.raises(CheckpointError, match="a later version of this package"):
        LAYOUT.check(LAYOUT.to_json().replace('"version": 3', f'"version": {version}'))


def test_a_query_whose_messages_get_timestamps_and_lose_them() -> None:
    """With timestamps the state keeps them and deletes, in version 4; without them it is of version 3 again, without deletes."""
    kept, times = Kept(), {"_timestamp": pa.timestamp("us", "UTC")}
    columns, all_ = bucket().columns, ("id", "seen", "_timestamp", *(name for name, _ in METADATA))
    metadata = (*columns.metadata, "_timestamp")
    timed = replace(columns, all=all_, metadata=metadata, timestamp="_timestamp")
    with_times = Bucket(3, timed, replace(LAYOUT, has_times=True))
    delete = {"_change_type": "delete", "_partition": 1, "_timestamp": 20}
    older = {"_timestamp": 10, "seen": 6}

    assert kinds(bucket().apply(kept, [changes({"id": 1}, {"id": 2})])) == ["insert"] * 2
    assert kinds(with_times.apply(kept, [changes({"id": 1, **delete}, **times)])) == ["delete"]
    assert kinds(with_times.apply(kept, [changes({"id": 1, **older}, **times)])) == []
    assert '"version": 4' in unpacked(kept.last).schema.metadata[b"layout"].decode()
    assert kinds(bucket().apply(kept, [changes({"id": 1}, {"id": 2})])) == ["insert"]

    assert '"version": 3' in unpacked(kept.last).schema.metadata[b"layout"].decode()
    assert rows_of(kept).to_pylist() == [{"id": 1, "seen": None}, {"id": 2, "seen": None}]


def test_a_bucket_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends in a sentence that says how many buckets it takes, not in a worker that is killed."""
    monkeypatch.setattr(buckets, "MAX_BUCKET_BYTES", 1000)
    many = changes(*({"id": at, "seen": at} for at in range(100)))

    with pytest.raises(
        CheckpointError, match=r"bucket 3 of 4 that have 1,6\d\d bytes.*with buckets=16"
    ):
        bucket().apply(Kept(), [many])


def test_rows_are_packed_bucket_by_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is in its bucket, in order; a bucket without keys comes along whenever there are rows."""
    monkeypatch.setattr("pyspark_upsert_kafka.connector.changelog.buckets.MAX_HELD_BYTES", 100)
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


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few rows."""
    monkeypatch.setattr(buckets, "SEGMENT_BYTES", 150)
    monkeypatch.setattr(buckets, "MIN_ROWS", 2)


@pytest.mark.usefixtures("small")
def test_few_changes_read_and_write_few_segments() -> None:
    """Those of the keys that changed, and no others."""
    kept = Kept()
    bucket().apply(kept, [many()])
    count = len(kept.segments)
    assert count >= 8
    kept.seen()

    whole = bucket().apply(kept, [changes({"id": 7, "seen": 0}, {"id": 7, "seen": 1})])

    assert kinds(whole) == ["update_preimage", "update_postimage"] * 2
    read, written = kept.seen()
    assert (len(read), written) == (1, read)
    assert rows_of(kept)["id"].to_pylist() == list(MANY)


@pytest.mark.usefixtures("small")
def test_a_segment_without_rows_is_removed() -> None:
    """So that the state of keys that are deleted does not stay."""
    kept = Kept()
    bucket().apply(kept, [many()])

    gone = [{"id": at, "_change_type": "delete", "_offset": 200 + at} for at in MANY]
    assert kinds(bucket().apply(kept, [changes(*gone)])) == ["delete"] * len(MANY)
    assert kept.segments == {}


@pytest.mark.usefixtures("small")
def test_there_are_more_segments_for_more_rows() -> None:
    """All rows are written again then, and none is lost."""
    kept = Kept()
    bucket().apply(kept, [changes({"id": 0, "seen": 0})])
    assert len(kept.segments) == 1

    whole = bucket().apply(kept, [many()])

    assert kinds(whole) == ["insert"] * (len(MANY) - 1)
    assert len(kept.segments) >= 8
    assert rows_of(kept)["id"].to_pylist() == list(MANY)


def test_no_changes_write_nothing() -> None:
    """The bucket without keys comes with each micro-batch."""
    kept = Kept()
    bucket().apply(kept, [changes()])
    head = kept.last
    whole = bucket().apply(kept, [changes()])
    assert kept.last is head
    assert kinds(whole) == []
    assert kept.segments == {}


@pytest.mark.usefixtures("small")
def test_rows_of_segments_that_do_not_change_are_of_an_earlier_layout() -> None:
    """They are read with the columns of now when they are read; a later query is compared with the newest layout."""
    kept = Kept()
    bucket().apply(kept, [many()])

    row = {"id": 2, "name": "b", "seen": 2, "_offset": 99}
    assert kinds(WIDE.apply(kept, [changes(row, name=pa.string())])) == ["update_preimage", "update_postimage"]  # fmt: skip

    with pytest.raises(CheckpointError, match="column 'name' has the type string"):
        bucket().apply(kept, [changes({"id": 1})])
    again = [{"id": at, "seen": 0, "_offset": 100 + at} for at in MANY]
    whole = [unpacked(each) for each in WIDE.apply(kept, [changes(*again, name=pa.string())])]
    before = pa.concat_tables(whole).filter(pc.field("_change_type") == "update_preimage")
    names = {row["id"]: row["name"] for row in before.select(["id", "name"]).to_pylist()}
    assert names == {at: "b" if at == 2 else None for at in MANY[1:]}


@pytest.mark.usefixtures("small")
def test_a_large_bucket_with_small_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a micro-batch changes must fit into memory: segments of a bucket that is larger get larger, and no row is lost."""
    monkeypatch.setattr(buckets, "MAX_BUCKET_BYTES", 1500)
    kept = Kept()
    for at in range(300):
        assert kinds(bucket().apply(kept, [changes({"id": at, "seen": at})])) == ["insert"]

    rows = rows_of(kept)
    assert rows["id"].to_pylist() == list(range(300))
    assert rows.nbytes > 2 * 1500
    assert len(kept.segments) > 4


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "SEGMENT_BYTES", 40)
        patch.setattr(buckets, "MIN_ROWS", 1)
        for part in parts:
            whole += _shown(keyed.apply(kept, [packed(part)]))

    at_once = Kept()
    assert repr(whole) == repr(_shown(keyed.apply(at_once, [packed(part) for part in parts])))
    # An upsert of each key again shows its row, or that it has none.
    probe = packed(rows([(key, 9, "upsert") for key in (None, math.nan, *map(float, range(30)))]))
    assert repr(_shown(keyed.apply(kept, [probe]))) == repr(_shown(keyed.apply(at_once, [probe])))


def _shown(whole: Iterator[bytes]) -> list[dict[str, Any]]:
    return [row for each in whole for row in unpacked(each).to_pylist()]
