"""Metadata of messages as columns: each key in exactly the Arrow type of its column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.connector.bad_messages import BadMessage
from pyspark_upsert_kafka.connector.local_time import local_time, utc_timestamps
from pyspark_upsert_kafka.connector.reading.decoded_messages import Selection
from pyspark_upsert_kafka.connector.reading.metadata_arrays import metadata_array
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.core.metadata import METADATA

CREATE_TIME, LOG_APPEND_TIME = 1, 2
UTC = timezone.utc


@dataclass(frozen=True)
class FakeBatch:
    """Messages of one partition, without a broker."""

    keys: BytesColumn
    values: BytesColumn
    offsets: list[int]
    timestamp_types: list[int]
    timestamps: list[int]
    headers: list[Sequence[tuple[str, bytes | None]]]
    leader_epochs: list[int | None]
    topic: str = "orders"
    partition: int = 3
    bad_headers: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)


def fake_batch(*pairs: tuple[bytes | None, bytes | None], first: int = 0, **more: Any) -> FakeBatch:
    """Messages with these keys and values at rising offsets, and whatever else is given."""
    count = len(pairs)
    columns = {
        "offsets": list(range(first, first + count)),
        "timestamp_types": [CREATE_TIME] * count,
        "timestamps": [1_700_000_000_000 + at for at in range(count)],
        "headers": [()] * count,
        "leader_epochs": [0] * count,
        **more,
    }
    keys, values = (BytesColumn.of(pair[side] for pair in pairs) for side in (0, 1))
    return FakeBatch(keys, values, **columns)


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type that Spark demands for a column."""
    return arrow_schema(StructType([StructField("c", type_)])).field(0).type


def column(
    key: str, type_: DataType, batch: FakeBatch, *, zone: str = "UTC", **selection: Any
) -> pa.Array:
    """A metadata column of a batch, checked to have exactly its type."""
    wanted = arrow_type(type_)
    given = {"indexes": None, "bad": [], **selection}
    array = metadata_array(key, wanted, Selection(batch, **given), zone)
    array.validate(full=True)
    assert array.type == wanted
    return array


ONE = (b"k", b"v")


@pytest.mark.parametrize(
    ("key", "type_"), [(key, type_) for key, each in METADATA.items() for type_ in each.types]
)
def test_every_kind_has_exactly_the_type_of_its_column(key: str, type_: DataType) -> None:
    """Every metadata key gives each of its allowed types exactly, for no, some and all messages."""
    batch = fake_batch(ONE, (b"k", None), ONE, headers=[(("h", b"1"),), (), (("h", None),)])
    bad = [BadMessage(2, "value", "broken")]
    kinds = np.array([Change.UPSERT, Change.DELETE, Change.UPSERT], np.int8)
    assert len(column(key, type_, batch, kinds=kinds, bad=bad)) == 3
    for messages in ([], [1], [0, 2]):
        chosen = np.array(messages, dtype=np.int64)
        array = column(key, type_, batch, kinds=kinds[chosen], bad=bad, indexes=chosen)
        assert len(array) == len(messages)
    assert len(column(key, type_, fake_batch())) == 0


def test_topic_partition_offset_and_epoch() -> None:
    """Topic, partition, offset and leader epoch are those of the message; no epoch is NULL."""
    batch = fake_batch(ONE, ONE, first=2**40, leader_epochs=[7, None])
    assert column("topic", StringType(), batch).to_pylist() == ["orders", "orders"]
    assert column("partition", IntegerType(), batch).to_pylist() == [3, 3]
    assert column("partition", LongType(), batch).to_pylist() == [3, 3]
    assert column("offset", LongType(), batch).to_pylist() == [2**40, 2**40 + 1]
    assert column("leader-epoch", IntegerType(), batch).to_pylist() == [7, None]
    assert column("leader-epoch", LongType(), batch).to_pylist() == [7, None]


def test_timestamp_and_its_type() -> None:
    """Timestamps keep their milliseconds; their type has Flink's name."""
    at = 1_700_000_000_123
    batch = fake_batch(ONE, ONE, ONE, timestamp_types=[1, 2, 0], timestamps=[at] * 3)
    moments = column("timestamp", TimestampType(), batch).cast(pa.int64()).to_pylist()
    assert moments == [at * 1000, at * 1000, None]
    kinds = column("timestamp-type", StringType(), batch).to_pylist()
    assert kinds == ["CreateTime", "LogAppendTime", "NoTimestampType"]


@pytest.mark.parametrize(
    "ms", [-1, -(2**63), 2**63 - 1, 253_402_300_800_000, -62_135_596_800_001, 2**62]
)
def test_a_timestamp_that_is_no_date_is_null(ms: int) -> None:
    """-1 means none, and what lies outside the years 1 to 9999 is no date: both are NULL."""
    batch = fake_batch(ONE, ONE, timestamps=[ms, 5])
    for type_ in (TimestampType(), TimestampNTZType()):
        array = column("timestamp", type_, batch)
        assert array.is_null().to_pylist() == [True, False]


@pytest.mark.parametrize("ms", [0, -2, 253_402_300_799_999, -62_135_596_800_000])
def test_old_and_far_timestamps_are_kept(ms: int) -> None:
    """The epoch itself, times before it and the borders of the calendar are timestamps."""
    batch = fake_batch(ONE, timestamps=[ms])
    assert column("timestamp", TimestampType(), batch).cast(pa.int64()).to_pylist() == [ms * 1000]


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("UTC", 0), ("Z", 0), ("GMT", 0), ("+02:00", 2), ("-08", -8), ("+1", 1), ("GMT+03:00", 3),
        ("UTC-0430", -4.5), ("Asia/Kolkata", 5.5), ("America/Los_Angeles", -8),
    ],
)  # fmt: skip
def test_timestamp_ntz_is_local_time_in_the_session_zone(zone: str, hours: float) -> None:
    """TIMESTAMP_NTZ shows the session's local time, however Spark spells the zone."""
    winter = datetime(2024, 1, 15, 12, tzinfo=UTC)
    batch = fake_batch(ONE, timestamps=[int(winter.timestamp() * 1000)])
    array = column("timestamp", TimestampNTZType(), batch, zone=zone)
    assert array.to_pylist() == [winter.replace(tzinfo=None) + timedelta(hours=hours)]
    assert utc_timestamps(array, zone).cast(pa.timestamp("us", "UTC")).to_pylist() == [winter]


def test_local_times_in_summer_and_at_a_changed_clock() -> None:
    """A region's zone has its summer time; of two moments with one local time the earlier is meant."""
    summer = pa.array([datetime(2024, 7, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert local_time(summer, "Europe/Berlin").to_pylist() == [datetime(2024, 7, 1, 14)]  # noqa: DTZ001
    twice = pa.array([datetime(2024, 10, 27, 2, 30)], pa.timestamp("us"))  # noqa: DTZ001
    first = utc_timestamps(twice, "Europe/Berlin").cast(pa.timestamp("us", "UTC")).to_pylist()
    assert first == [datetime(2024, 10, 27, 0, 30, tzinfo=UTC)]


def test_headers_as_list_and_as_map() -> None:
    """A list keeps order and duplicates, a map the last duplicate; no headers are empty, not NULL."""
    several = (("a", b"1"), ("b", None), ("a", b"2"), ("", b""))
    batch = fake_batch(ONE, ONE, ONE, headers=[several, (), (("ü", b"\xff"),)])
    lists = column("header-list", METADATA["header-list"].types[0], batch).to_pylist()
    assert [[(h["key"], h["value"]) for h in each] for each in lists] == [
        list(several), [], [("ü", b"\xff")],
    ]  # fmt: skip
    maps = column("headers", MapType(StringType(), BinaryType()), batch).to_pylist()
    assert [dict(each) for each in maps] == [{"a": b"2", "b": None, "": b""}, {}, {"ü": b"\xff"}]
    assert column("headers", MapType(StringType(), BinaryType()), batch).null_count == 0


def test_headers_of_the_shown_messages_only() -> None:
    """Headers stay with their message when others give no row."""
    batch = fake_batch(ONE, ONE, ONE, headers=[(("a", b"0"),), (("a", b"1"),) * 2, (("a", b"2"),)])
    chosen = {"indexes": np.array([1, 2])}
    lists = column("header-list", METADATA["header-list"].types[0], batch, **chosen).to_pylist()
    assert [[h["value"] for h in each] for each in lists] == [[b"1", b"1"], [b"2"]]
    maps = column("headers", MapType(StringType(), BinaryType()), batch, **chosen).to_pylist()
    assert maps == [[("a", b"1")], [("a", b"2")]]


def test_not_null_parts_of_a_header_column() -> None:
    """A header column may promise that its entries and their keys are not NULL."""
    header = StructType(
        [StructField("key", StringType(), False), StructField("value", BinaryType())]
    )
    batch = fake_batch(ONE, headers=[(("a", None),)])
    promised = ArrayType(header, containsNull=False)
    assert column("header-list", promised, batch).to_pylist() == [[{"key": "a", "value": None}]]


def test_change_type_and_error() -> None:
    """A change is an upsert or a delete; a bad message is neither and has its error beside it."""
    batch = fake_batch((b"a", b"1"), (b"b", None), (b"c", b"x"), (None, None))
    selection = {
        "kinds": np.array([Change.UPSERT, Change.DELETE] * 2, np.int8),
        "bad": [BadMessage(2, "value", "no good"), BadMessage(3, "null-key", "no key")],
    }
    kinds = column("change-type", StringType(), batch, **selection).to_pylist()
    assert kinds == ["upsert", "delete", None, None]
    assert column("error", METADATA["error"].types[0], batch, **selection).to_pylist() == [
        None,
        None,
        {"stage": "value", "message": "no good", "key": b"c", "value": b"x"},
        {"stage": "null-key", "message": "no key", "key": None, "value": None},
    ]
