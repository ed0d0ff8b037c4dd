"""A snapshot whose keys are shared among tasks is the snapshot that one task would read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.connector.reading.task_reading import KeyShares, of_share
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range, Share
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options

IDS = ["1", "2", "3", " 1", "null", '"x"']
MESSAGE = st.tuples(
    st.sampled_from([*(f'{{"id":{id_}}}'.encode() for id_ in IDS), b"?", None]),
    st.sampled_from([b'{"v":1}', b'{"v":2}', b"{}", b"?", None]),
)


def options(**more: object) -> ReadOptions:
    """Of a snapshot."""
    return read_options(table_options(**more), format_options, stream=False)


def batch(*messages: tuple[bytes | None, bytes | None]) -> RawBatch:
    """Messages from offset 10 on."""
    keys, values = map(list, zip(*messages, strict=True)) if messages else ([], [])
    return RawBatch(
        "t", 0, BytesColumn.of(keys), BytesColumn.of(values), [*range(10, 10 + len(messages))]
    )


class Reader:
    """A client that gives the same batch to every task."""

    def __init__(self, raw: RawBatch) -> None:
        self._raw = raw

    def reader(self, _: object) -> Reader:
        """Itself."""
        return self

    def read(self, _: Range) -> list[RawBatch]:
        """The batch."""
        return [self._raw]


def snapshot(
    patch: pytest.MonkeyPatch,
    raw: RawBatch,
    tasks: int,
    id_type: DataType = LongType(),  # noqa: B008 - types never change
    **more: object,
) -> list[list[dict[str, Any]]]:
    """What each of so many tasks reads."""
    patch.setattr(task_reading, "load_client", lambda name: Reader(raw))
    given_ = options(**more)
    table = table_to_read(StructType().add("id", id_type).add("v", LongType()), given_)
    ranges = [
        Range("t", 0, 10, 10 + len(raw), share=Share(at, tasks, 1, len(raw))) for at in range(tasks)
    ]
    return [
        [
            row
            for part in task_reading.read_ranges([each], table, given_)
            for row in part.to_pylist()
        ]
        for each in ranges
    ]


@given(st.lists(MESSAGE, max_size=12), st.integers(1, 4))
def test_shares_are_the_whole(messages: list[tuple[bytes, bytes]], tasks: int) -> None:
    """Each row is in one share, whatever the spelling of its key, and a bad message is seen once."""
    more = {"error-handling.mode": "ignore", "value.fields-include": "EXCEPT_KEY"}
    with pytest.MonkeyPatch.context() as patch:
        (whole,) = snapshot(patch, batch(*messages), 1, **more)
        seen: list[int] = []
        patch.setattr(
            task_reading,
            "error_handler",
            lambda _: lambda raw, bad: seen.extend(raw.offsets[b.index] for b in bad),
        )
        shares = snapshot(patch, batch(*messages), tasks, **more)
        bad = sorted(seen)
        seen.clear()
        snapshot(patch, batch(*messages), 1, **more)

    key = lambda row: str(row["id"])  # noqa: E731 - one key of a sort
    assert sorted([row for share in shares for row in share], key=key) == sorted(whole, key=key)
    assert bad == sorted(seen)


@pytest.mark.parametrize(
    ("type_", "spellings"),
    [
        (DoubleType(), ["0.0", "-0.0", "0", "0e5"]),
        (DecimalType(5, 2), ["1", "1.0", "1.00"]),
        (StringType(), ['"a"', '"\\u0061"']),
        (BooleanType(), ["true", " true"]),
        (DateType(), ['"2026-01-01"', '"\\u0032026-01-01"']),
        (TimestampType(), ['"2026-01-01 00:00:00Z"', '"2026-01-01 00:00:00.000Z"']),
    ],
)
def test_equal_keys_are_in_one_share(type_: DataType, spellings: list[str]) -> None:
    """However they are spelt."""
    given_ = options()
    table = table_to_read(StructType().add("id", type_).add("v", LongType()), given_)
    raw = batch(*((f'{{"id":{each}}}'.encode(), None) for each in spellings))
    sizes = [len(KeyShares(table, given_).of(raw, Share(at, 64, 1, 2))) for at in range(64)]

    assert sorted(sizes)[-2:] == [0, len(spellings)]


def test_shares_are_about_even() -> None:
    """So that each task needs its part of the memory."""
    given_ = options()
    table = table_to_read(StructType().add("id", LongType()).add("v", LongType()), given_)
    raw = batch(*((f'{{"id":{n}}}'.encode(), None) for n in range(10_000)))
    sizes = [len(KeyShares(table, given_).of(raw, Share(at, 4, 1, 10_000))) for at in range(4)]

    assert all(2_200 < size < 2_800 for size in sizes)


def test_a_key_that_is_another_in_the_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row may belong to the share of another task; one task alone reads it."""
    raw = batch(
        (b'{"id":1}', b'{"id":1,"v":1}'),
        (b'{"id":2}', b'{"id":3,"v":2}'),
        (b'{"id":4}', b'{"v":4}'),
    )

    (whole,) = snapshot(monkeypatch, raw, 1)
    assert sorted(row["id"] for row in whole) == [1, 3, 4]
    with pytest.raises(
        OptionError, match=r"'minPartitions'.*topic 't', partition 0, offset 11 column 'id'"
    ):
        snapshot(monkeypatch, raw, 2)


@pytest.mark.parametrize("type_", [LongType(), FloatType(), DoubleType(), StringType()])
def test_a_key_that_only_the_value_has_is_refused(
    monkeypatch: pytest.MonkeyPatch, type_: DataType
) -> None:
    """Tasks share messages by what their keys say, so a later change of the row may be another task's."""
    raw = batch((b"{}", b'{"id":1,"v":1}'), (b'{"id":1}', b'{"id":1,"v":2}'))

    (whole,) = snapshot(monkeypatch, raw, 1, id_type=type_)
    assert [row["v"] for row in whole] == [2]
    with pytest.raises(OptionError, match="offset 10 column 'id' differs between value and key"):
        snapshot(monkeypatch, raw, 2, id_type=type_)


def test_a_table_that_does_not_fit_says_how_many_tasks_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And so many are enough."""
    raw = batch(
        *((f'{{"id":{n}}}'.encode(), f'{{"id":{n},"v":{n}}}'.encode()) for n in range(10_000))
    )
    more = {"scan.snapshot.memory": "512 kb"}

    with pytest.raises(
        OptionError,
        match=r"topic 't', partition 0 .*'scan.snapshot.memory'.*'minPartitions' = '\d+'",
    ) as error:
        snapshot(monkeypatch, raw, 1, **more)
    tasks = int(str(error.value).split("'minPartitions' = '")[1].split("'")[0])
    assert 2 <= tasks <= 40
    assert sum(map(len, snapshot(monkeypatch, raw, tasks, **more))) == 10_000


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=30), st.integers(1, 6))
def test_a_row_is_of_the_share_of_its_message(ids: list[int | None], count: int) -> None:
    """Its key decides, which is in the row too: each is in one share, and in the same one."""
    keys = pa.RecordBatch.from_arrays([pa.array(ids, pa.int64())], ["id"])
    shares = [of_share(keys, Share(at, count, 1, 1)) for at in range(count)]
    raw = batch(*((b'{"id":%d}' % id_, b"{}") for id_ in ids if id_ is not None))
    table = table_to_read(StructType().add("id", LongType()), options())
    known = KeyShares(table, options())

    assert sum(share.astype(int) for share in shares).tolist() == [1] * len(ids)
    for at, share in enumerate(shares):
        kept = [id_ for id_, is_kept in zip(ids, share, strict=True) if is_kept and id_ is not None]
        found = known.of(raw, Share(at, count, 1, 1))
        assert [json.loads(key)["id"] for key in found.keys] == kept


def test_more_shares_divide_many_keys_evenly() -> None:
    """Each task has about as much to do."""
    keys = pa.RecordBatch.from_arrays([pa.array(range(10_000))], ["id"])

    sizes = [int(of_share(keys, Share(at, 4, 1, 1)).sum()) for at in range(4)]

    assert sum(sizes) == 10_000
    assert all(2_300 < size < 2_700 for size in sizes)
