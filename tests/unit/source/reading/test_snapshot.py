"""The last change of each key stands, unless it is a delete."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_upsert_kafka.source.reading import snapshot as module
from pyspark_upsert_kafka.source.reading.snapshot import Snapshot

Change = tuple[Any, int, bool]  # key, value, whether it is a delete


def table(changes: list[Change], borders: list[int] | None = None, **more: Any) -> list[tuple]:
    """The snapshot of these changes, handed over in batches that end at the borders."""
    key_type = more.get("key_type", pa.int64())
    snapshot = Snapshot(["k"])
    begin = 0
    for end in [*sorted(borders or []), len(changes)]:
        part = changes[begin:end]
        begin = max(begin, end)
        rows = pa.RecordBatch.from_arrays(
            [
                pa.array([change[0] for change in part], key_type),
                pa.array([change[1] for change in part], pa.int64()),
            ],
            ["k", "v"],
        )
        deletes = [change[2] for change in part]
        snapshot.add(rows, pa.array(deletes, pa.bool_()) if any(deletes) else None)
    return [(row["k"], row["v"]) for batch in snapshot.rows() for row in batch.to_pylist()]


def test_the_last_change_of_a_key_stands() -> None:
    """An upsert replaces, a delete removes, an upsert after a delete brings back."""
    changes = [(1, 10, False), (2, 20, False), (1, 11, False), (2, 0, True), (3, 30, False)]
    assert table(changes) == [(1, 11), (3, 30)]
    assert table([*changes, (2, 21, False), (3, 0, True)]) == [(1, 11), (2, 21)]


def test_the_table_stands_in_offset_order() -> None:
    """Rows come in the order of their last changes, batch by batch."""
    changes = [(key, at, False) for at, key in enumerate([5, 4, 3, 5, 2])]
    assert table(changes, [1, 2, 3, 4]) == [(4, 1), (3, 2), (5, 3), (2, 4)]


def test_no_changes_and_only_deletes_are_an_empty_table() -> None:
    """Nothing, empty batches and nothing but tombstones give no rows."""
    assert table([]) == []
    assert table([], [0, 0]) == []
    assert table([(1, 0, True), (2, 0, True)], [1]) == []
    assert list(Snapshot(["k"]).rows()) == []


changes_of_few_keys = st.lists(
    st.tuples(st.integers(0, 6), st.integers(), st.booleans()), max_size=60
)


@settings(deadline=None)
@given(
    changes=changes_of_few_keys.map(lambda all_: [(k, v % 1000, d) for k, v, d in all_]),
    borders=st.lists(st.integers(0, 60), max_size=12),
    reduce_at=st.sampled_from([0, 100, 300, 1_000, 2**26]),
    out_rows=st.sampled_from([1, 2, 50_000]),
)
def test_it_is_a_dict(
    changes: list[Change], borders: list[int], reduce_at: int, out_rows: int
) -> None:
    """A snapshot is what a dict would be, however changes are cut in batches and often reduced."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_REDUCE_AT", reduce_at)
        patch.setattr(module, "_OUT_ROWS", out_rows)
        found = table(changes, borders)
    expected: dict[Any, int] = {}
    for key, value, delete in changes:
        expected.pop(key, None)
        if not delete:
            expected[key] = value
    assert found == list(expected.items())


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
def test_zeros_are_one_key_and_nans_are_one_key(type_: pa.DataType) -> None:
    """-0.0 equals 0.0, and NaN equals NaN whatever its bits, as in Spark's GROUP BY."""
    width = 8 if type_ == pa.float64() else 4
    other_nan = int("7ff8000000000001" if width == 8 else "7fc00001", 16).to_bytes(width, "little")
    nans = pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(other_nan)])
    keys = pa.concat_arrays([pa.array([0.0, -0.0, float("nan")], type_), nans])
    snapshot = Snapshot(["k"])
    snapshot.add(pa.RecordBatch.from_arrays([keys, pa.array([1, 2, 3, 4])], ["k", "v"]), None)
    (rows,) = snapshot.rows()
    assert rows.column("v").to_pylist() == [2, 4]
    assert str(rows.column("k")[0]) == "-0.0", "the row itself is as it was written"


@pytest.mark.parametrize(
    ("type_", "one", "other"),
    [
        (pa.string(), "a", "A"),
        (pa.binary(), b"\x00", b""),
        (pa.bool_(), True, False),
        (pa.decimal128(10, 2), Decimal("1.50"), Decimal("1.51")),
        (pa.int8(), 1, -1),
        (pa.float64(), 0.1, 0.2),
        (pa.int64(), None, 0),
    ],
)
def test_keys_of_every_kind(type_: pa.DataType, one: Any, other: Any) -> None:
    """Keys of every type are told apart, NULL too."""
    changes = [(one, 1, False), (other, 2, False), (one, 3, False), (other, 0, True)]
    assert table(changes, key_type=type_) == [(one, 3)]


@pytest.mark.parametrize(
    "type_",
    [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.duration("us")],
)
def test_keys_that_are_moments(type_: pa.DataType) -> None:
    """Dates, timestamps and intervals are keys like others."""
    keys = pa.array([1, 2, 1], pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
    snapshot = Snapshot(["k"])
    snapshot.add(pa.RecordBatch.from_arrays([keys, pa.array([1, 2, 3])], ["k", "v"]), None)
    assert [v for rows in snapshot.rows() for v in rows.column("v").to_pylist()] == [2, 3]


def test_key_columns_of_any_name_and_number() -> None:
    """Several columns make one key, whatever they are called."""
    names = ["row_max", "__delete", "__row", "row", "0"]
    snapshot = Snapshot(names[:4])
    for at, keys in enumerate([(1, 1, 1, 1), (1, 1, 1, 2), (1, 1, 1, 1)]):
        arrays = [pa.array([key]) for key in (*keys, at)]
        snapshot.add(pa.RecordBatch.from_arrays(arrays, names), None)
    kept = [row for rows in snapshot.rows() for row in rows.to_pylist()]
    assert [row["0"] for row in kept] == [1, 2]


def test_a_table_larger_than_several_reductions() -> None:
    """A million changes are reduced many times on the way and give the table all the same."""
    count, keys = 1_200_000, 300_000
    snapshot = Snapshot(["k"])
    for begin in range(0, count, 20_000):
        rows = range(begin, begin + 20_000)
        batch = pa.RecordBatch.from_arrays(
            [pa.array([at * 7 % keys for at in rows]), pa.array(rows)], ["k", "v"]
        )
        deletes = pa.array([at % 11 == 0 for at in rows])
        snapshot.add(batch, deletes)
    held = sum(batch.num_rows for batch in snapshot._batches)
    assert held < count // 2, "overwritten rows are let go of on the way"
    last = {at * 7 % keys: at for at in range(count)}
    expected = {key: at for key, at in last.items() if at % 11}
    found = pa.Table.from_batches(list(snapshot.rows())).to_pydict()
    assert dict(zip(found["k"], found["v"], strict=True)) == expected
    assert found["v"] == sorted(expected.values())


@pytest.mark.parametrize("sliced", [False, True])
def test_memory_follows_the_bytes_of_the_table(sliced: bool) -> None:
    """Ten rows of 100 KB that change for ever hold no more than few rows would: bytes count, not rows.

    Rows that are slices hold all of the batch that they are cut from.
    """
    before, most = pa.total_allocated_bytes(), 0
    snapshot = Snapshot(["k"])
    for _ in range(60):
        arrays = [pa.array([key % 10 for key in range(50)]), pa.array(["x" * 100_000] * 50)]
        rows = pa.RecordBatch.from_arrays(arrays, ["k", "v"])
        snapshot.add(rows.slice(0, 10) if sliced else rows, None)
        del rows, arrays
        most = max(most, pa.total_allocated_bytes() - before)
    assert most <= module._REDUCE_AT + 2 * 5_000_000 + 2 * 1_000_000
    assert [rows.num_rows for rows in snapshot.rows()] == [10]


def test_no_rest_of_a_batch_holds_the_whole_batch() -> None:
    """When all but one row of a large batch are overwritten, its buffers are let go of."""
    before = pa.total_allocated_bytes()
    snapshot = Snapshot(["k"])
    for part in range(40):
        keys = [*range(100, 149), part]
        rows = pa.RecordBatch.from_arrays(
            [pa.array(keys), pa.array(["x" * 100_000] * 50)], ["k", "v"]
        )
        snapshot.add(rows, None)
        del rows
    snapshot._reduce()
    assert pa.total_allocated_bytes() - before < 2 * (40 + 49) * 100_000
    assert sum(rows.num_rows for rows in snapshot.rows()) == 40 + 49


def test_batches_given_out_have_a_good_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crumbs are joined, and large rows are not: no array of text may reach 2 GiB."""
    monkeypatch.setattr(module, "_OUT_BYTES", 10_000)

    def sizes(text: str) -> list[int]:
        snapshot = Snapshot(["k"])
        for at in range(100):
            arrays = [pa.array([at]), pa.array([text])]
            snapshot.add(pa.RecordBatch.from_arrays(arrays, ["k", "v"]), None)
        return [rows.num_rows for rows in snapshot.rows()]

    assert sizes("") == [100]
    assert sizes("x" * 3_000) == [3] * 33 + [1]
    assert sizes("x" * 20_000) == [1] * 100
