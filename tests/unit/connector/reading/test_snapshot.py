"""The last change of each key stands, unless it is a delete."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading import snapshot as module
from pyspark_upsert_kafka.connector.reading.reading_past_end import too_large
from pyspark_upsert_kafka.connector.reading.snapshot import MemoryLimit, Snapshot, snapshot_bytes
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range, Share
from tests.table_options import table_options

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
    """Keys of every type are distinguished, NULL too."""
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


def limited(limit: int | None) -> Snapshot:
    """A snapshot of a key, of which an error says how large it is."""
    return Snapshot(["k"], None if limit is None else MemoryLimit(limit, MemoryError))


def ten_rows(begin: int = 0) -> pa.RecordBatch:
    """Rows of 1,000 bytes each, and some."""
    return pa.RecordBatch.from_arrays(
        [pa.array(range(begin, begin + 10)), pa.array(["x" * 1000] * 10)], ["k", "v"]
    )


def test_a_table_may_take_its_limit_and_not_a_byte_more() -> None:
    """What is kept counts twice: as much again comes before rows are dropped the next time."""
    measured = limited(None)
    measured.add(ten_rows(), None)
    size = measured.size()
    fits, does_not = limited(size), limited(size - 1)
    fits.add(ten_rows(), None)

    assert 2 * 10 * (1000 + 128) < size < 2 * 10 * (1100 + 128)
    assert fits.size() == size
    assert sum(each.num_rows for each in fits.rows()) == 10
    does_not.add(ten_rows(), None)
    with pytest.raises(MemoryError, match=f"^{size}$"):
        does_not.size()


@pytest.mark.parametrize(("limit", "kept"), [(100_000, 1), (None, 100)])
def test_overwritten_rows_are_dropped_before_half_of_the_limit_has_come(
    limit: int | None, kept: int
) -> None:
    """A table that would fit is not refused for rows that are gone; without a limit they may wait longer."""
    snapshot = limited(limit)
    for _ in range(100):
        snapshot.add(ten_rows(), None)
        held = sum(map(module._memory, snapshot._batches))
        assert limit is None or held <= limit // 2 + module._memory(ten_rows())
    assert len(snapshot._batches) >= kept
    assert sum(each.num_rows for each in snapshot.rows()) == 10


@pytest.mark.parametrize(
    ("begin", "end", "read_to", "size", "memory", "share", "tasks", "percent"),
    [
        # Half is read and fills the memory: the rest as much again, and a quarter for keys that are spread unevenly.
        (0, 100, 50, 1000, 1000, None, 3, 50),
        (100, 200, 150, 1000, 1000, None, 3, 50),
        # All is read.
        (0, 100, 100, 1001, 1000, None, 2, 100),
        (0, 100, 100, 1601, 1000, None, 3, 100),
        # Nothing of it is read yet.
        (0, 100, 0, 10, 1000, None, 2, 0),
        # It is a share of three tasks already.
        (0, 100, 100, 1000, 1000, Share(0, 3, 1, 100), 6, 100),
    ],
)
def test_a_table_that_does_not_fit_is_told_how_many_tasks_it_takes(
    begin: int,
    end: int,
    read_to: int,
    size: int,
    memory: int,
    share: Share | None,
    tasks: int,
    percent: int,
) -> None:
    """As many as hold all of it, if all is like what was read."""
    error = str(too_large(Range("t", 7, begin, end, share=share), read_to, size, memory))

    assert f"'minPartitions' = '{tasks}' makes {tasks} of them" in error
    assert f"after {percent} % of the offsets" in error
    assert "topic 't', partition 7 " in error


def test_the_error_of_a_table_that_does_not_fit_tells_megabytes() -> None:
    """What it takes, and what it may take."""
    error = str(too_large(Range("t", 0, 0, 10), 10, 3000 * 2**20, 512 * 2**20))
    assert "it takes 3,000 MB of 512 MB ('scan.snapshot.memory')" in error


def options_of(**more: Any) -> Any:
    """Options of a table that is read."""
    return read_options(table_options(**more), format_options, stream=False)


def test_the_memory_of_a_snapshot_is_the_option_or_half_of_the_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark tells a worker its memory if it has a limit."""
    monkeypatch.setenv("PYSPARK_EXECUTOR_MEMORY_MB", "600")

    assert snapshot_bytes(options_of(**{"scan.snapshot.memory": "40mb"})) == 40 * 2**20
    assert snapshot_bytes(options_of()) == 300 * 2**20


@pytest.mark.parametrize(
    ("limits", "bytes_"),
    [
        ([], 8 * 4096 * 1000 // 4),
        (["max"], 8 * 4096 * 1000 // 4),
        (["4000000"], 1_000_000),
        (["max", "4000000"], 1_000_000),
        (["8000000", "4000000\n"], 1_000_000),
        (["900000000"], 8 * 4096 * 1000 // 4),
    ],
)
def test_the_memory_of_a_worker_is_its_part_of_the_machine_or_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limits: list[str], bytes_: int
) -> None:
    """Each of the cores has a worker; the lowest limit counts, and one that is not there or is no number does not."""
    files = [tmp_path / "no such file"]
    for number, limit in enumerate(limits):
        files.append(tmp_path / str(number))
        files[-1].write_text(limit)
    machine = {"SC_PHYS_PAGES": 8000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(module, "_LIMITS", files)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(module.os, "sysconf", machine.__getitem__)
    monkeypatch.delenv("PYSPARK_EXECUTOR_MEMORY_MB", raising=False)

    assert module._worker_bytes() == bytes_


def test_a_returned_batch_has_fifty_thousand_rows_at_most() -> None:
    """Where they are small."""
    rows = pa.RecordBatch.from_arrays([pa.array(range(25_001))], ["k"])
    half = rows.slice(0, 25_000)

    assert [each.num_rows for each in module._joined([half, half])] == [50_000]
    assert [each.num_rows for each in module._joined([half, rows])] == [25_000, 25_001]


def test_joined_batches_are_no_larger_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows as in bytes; one that is exactly as large is one batch."""
    monkeypatch.setattr(module, "_OUT_ROWS", 20)
    ten = [ten_rows(10 * number) for number in range(5)]

    assert [each.num_rows for each in module._joined(ten)] == [20, 20, 10]
    monkeypatch.setattr(module, "_OUT_BYTES", 2 * ten[0].nbytes)
    assert [each.num_rows for each in module._joined(ten)] == [20, 20, 10]
    monkeypatch.setattr(module, "_OUT_BYTES", 2 * ten[0].nbytes - 1)
    assert [each.num_rows for each in module._joined(ten)] == [10] * 5
    assert [each.num_rows for each in module._joined([ten[0].slice(0, 0)])] == []
