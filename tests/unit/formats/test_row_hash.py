"""Rows that are equal as keys have one hash, everywhere; others hardly ever."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.formats.row_hash import row_hashes
from tests.laws import pinned


def hashes(*columns: pa.Array) -> list[int]:
    """The hashes of the rows of these columns."""
    batch = pa.RecordBatch.from_arrays(list(columns), [str(at) for at in range(len(columns))])
    return [int(found) for found in row_hashes(batch)]


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([1, -1], pa.int8(), ["c56f28391b359029", "bc6797c4fb8f7c35"]),
        ([1, -1], pa.int64(), ["c56f28391b359029", "f1db9f091c528d44"]),
        ([True, False], pa.bool_(), ["c56f28391b359029", "0"]),
        ([1.5, None], pa.float32(), ["f9b02c76476fdfac", "8b172f19d02c3b2b"]),
        ([1.5, None], pa.float64(), ["da71b76c56ae8507", "8b172f19d02c3b2b"]),
        ([Decimal("1.50")], pa.decimal128(10, 2), ["9fe762dcf48d5d48"]),
        (
            ["", "a", "12345678", "123456789", "x" * 2000],
            pa.string(),
            [
                "aae74c86701dca2c",
                "704de4fef88223a5",
                "f4453efc5ee379",
                "cb71d0539374ce6f",
                "b44e0d7515563545",
            ],
        ),
        ([b"a"], pa.binary(), ["704de4fef88223a5"]),
        ([date(2026, 1, 31)], pa.date32(), ["121c76221d6f9958"]),
        (
            [datetime(2026, 1, 31, tzinfo=timezone.utc)],
            pa.timestamp("us", "UTC"),
            ["e525b424f92f29c4"],
        ),
        ([timedelta(seconds=1)], pa.duration("us"), ["8a4f09df82e997f6"]),
    ],
)
def test_a_hash_is_the_same_for_ever(
    values: list[Any], type_: pa.DataType, expected: list[str]
) -> None:
    """On each machine and in each version: the tasks of one snapshot may run on several."""
    assert [f"{found:x}" for found in hashes(pa.array(values, type_))] == expected


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_zeros_are_one_key_and_nans_are_one_key(type_: pa.DataType) -> None:
    """As in a snapshot; NULL is another."""
    width = 8 if type_ == pa.float64() else 4
    other_nan = int("7ff8000000000001" if width == 8 else "7fc00001", 16).to_bytes(width, "little")
    nan = pa.Array.from_buffers(type_, 1, [None, pa.py_buffer(other_nan)])
    values = pa.concat_arrays([pa.array([0.0, -0.0, float("nan"), None], type_), nan])
    zero, minus_zero, one, null, other = hashes(values)

    assert (zero, one) == (minus_zero, other)
    assert len({zero, one, null}) == 3


@pinned("values", [[], [None], [""], [None, "", "\0", "a"], ["é", "😀" * 30]], begin=0)
@pinned("values", [["a", None, "b"], ["a", "b", ""]], begin=1)
@given(
    values=st.lists(st.one_of(st.none(), st.text(max_size=30)), max_size=20),
    begin=st.integers(0, 20),
)
def test_a_hash_is_that_of_the_value_alone(values: list[str | None], begin: int) -> None:
    """Wherever it stands in a batch, and whatever stands beside it."""
    column = pa.array(values, pa.string())

    assert hashes(column.slice(begin)) == hashes(column)[begin:]
    assert hashes(column) == [hashes(pa.array([each], pa.string()))[0] for each in values]


@pinned("rows", [[], [("a", "b"), ("ab", ""), ("", "ab")], [("\0", ""), ("", "\0"), ("\0\0", "")]])
@given(
    rows=st.lists(st.tuples(st.text("ab\0", max_size=9), st.text("ab\0", max_size=9)), unique=True)
)
def test_borders_of_columns_count(rows: list[tuple[str, str]]) -> None:
    """``ab`` and ``c`` are another row than ``a`` and ``bc``, and a zero byte at the end is a byte."""
    found = hashes(*(pa.array([row[at] for row in rows], pa.string()) for at in (0, 1)))

    assert len(set(found)) == len(rows)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(np.arange(100_000)),
        pa.array([f"user-{number}" for number in range(100_000)]),
        pa.array([Decimal(number) for number in range(100_000)], pa.decimal128(20, 3)),
        pa.array(np.arange(100_000) * 0.5),
    ],
)
def test_keys_are_spread_evenly(column: pa.Array) -> None:
    """Over any number of tasks."""
    found = row_hashes(pa.RecordBatch.from_arrays([column], ["k"]))

    assert len(np.unique(found)) == 100_000
    for count in (2, 3, 64):
        sizes = np.bincount((found % np.uint64(count)).astype(np.int64), minlength=count)
        assert abs(sizes - 100_000 / count).max() < 6 * (100_000 / count) ** 0.5


@pytest.mark.parametrize(
    ("small", "large"), [(pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())]
)
def test_large_types_have_the_hashes_of_the_small_ones(
    small: pa.DataType, large: pa.DataType
) -> None:
    """Which of them Spark gives depends on a setting, and state is kept by these hashes."""
    values = ["", "a", None, "x" * 30]
    column = pa.array(values, pa.string()).cast(small)

    assert hashes(column.cast(large)) == hashes(column)


def test_a_column_of_nulls_has_the_hash_of_null() -> None:
    """Whatever its type."""
    assert hashes(pa.nulls(2)) == hashes(pa.nulls(2, pa.int64()))


def test_nothing_has_no_hashes() -> None:
    """Neither an empty column nor one of empty texts is an error."""
    assert hashes(pa.array([], pa.string())) == []
    assert hashes(pa.array([], pa.int64())) == []
    assert len(set(hashes(pa.array(["", None, ""], pa.string())))) == 2
    assert len(set(hashes(pa.array([None, None], pa.string()), pa.array([1, 1])))) == 1
