"""What the filters of a query leave of the ranges that would be read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import Condition, Narrowing
from pyspark_upsert_kafka.core.options.frozen_options import Position
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options

SCHEMA = (
    StructType()
    .add("id", LongType())
    .add("_topic", StringType())
    .add("_partition", IntegerType())
    .add("_offset", LongType())
    .add("_timestamp", TimestampType())
)
RANGES = [Range("t", 0, 5, 10), Range("t", 1, 0, 20), Range("u", 0, 0, 30)]
VIEW = ClusterView(
    {"t": "id-t", "u": "id-u"}, {TopicPartition(r.topic, r.partition): Bounds(0, 30, 30) for r in RANGES}
)  # fmt: skip
TIME = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Brokers:
    """Know where messages get later than a time: at offset 7 everywhere."""

    def __init__(self) -> None:
        self.asked: list[tuple[int | None, int]] = []

    def positions(self, position: Position, view: ClusterView) -> Mapping[TopicPartition, int]:
        """As `Cluster.positions`."""
        self.asked.append((position.timestamp_ms, len(view.bounds)))
        return dict.fromkeys(view.bounds, 7) | {TopicPartition("t", 0): 3}


def left(mode: str, *conditions: Condition) -> tuple[list[tuple[str, int, int, int]], Brokers]:
    """What is left of the ranges, and the brokers that were asked."""
    options = read_options(
        table_options(**{"read.mode": mode, "topic": "t;u", "scan.deletes": "drop"}),
        format_options,
        stream=False,
    )
    brokers: Any = Brokers()
    found = Narrowing(table_to_read(SCHEMA, options), options, conditions).of(RANGES, brokers, VIEW)
    return [(r.topic, r.partition, r.begin, r.end) for r in found], brokers


ALL = [("t", 0, 5, 10), ("t", 1, 0, 20), ("u", 0, 0, 30)]


@pytest.mark.parametrize(
    ("conditions", "expected", "of_table"),
    [
        ([], ALL, ALL),
        ([Condition("id", "EqualTo", (1,))], ALL, ALL),
        ([Condition("_topic", "EqualTo", ("u",))], ALL[2:], ALL[2:]),
        ([Condition("_partition", "EqualTo", (0,))], [ALL[0], ALL[2]], [ALL[0], ALL[2]]),
        ([Condition("_offset", "GreaterThan", (9,))], [("t", 1, 10, 20), ("u", 0, 10, 30)], ALL),
        ([Condition("_offset", "LessThanOrEqual", (9,))], [("t", 0, 5, 10), ("t", 1, 0, 10), ("u", 0, 0, 10)], ALL),
        ([Condition("_offset", "EqualTo", (5,))], [("t", 0, 5, 6), ("t", 1, 5, 6), ("u", 0, 5, 6)], ALL),
        ([Condition("_timestamp", "GreaterThan", (TIME,))], [("t", 0, 5, 10), ("t", 1, 7, 20), ("u", 0, 7, 30)], ALL),
    ],
)  # fmt: skip
def test_what_is_left(
    conditions: list[Condition],
    expected: list[tuple[str, int, int, int]],
    of_table: list[tuple[str, int, int, int]],
) -> None:
    """Of a table, whose rows show the last message of a key, only what is the same for all messages of it counts."""
    assert left("changelog", *conditions)[0] == expected
    assert left("snapshot", *conditions)[0] == of_table


def test_brokers_are_asked_for_a_time_once_and_only_of_what_is_left() -> None:
    """Without a time, or with nothing left, they are not asked."""
    time = Condition("_timestamp", "GreaterThan", (TIME,))
    of_partition = Condition("_partition", "EqualTo", (0,))

    assert left("changelog", time, of_partition)[1].asked == [(1_767_225_600_000, 2)]
    assert left("changelog", of_partition)[1].asked == []
    assert left("snapshot", time)[1].asked == []
    assert left("changelog", time, Condition("_partition", "EqualTo", (9,)))[1].asked == []


def test_what_is_left_out_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """With numbers, since the next query over the same load() misses it; where nothing is left out there is nothing to say."""
    left("changelog", Condition("_offset", "GreaterThanOrEqual", (0,)))
    assert caplog.messages == []
    left("changelog", Condition("_partition", "EqualTo", (1,)))

    (told,) = caplog.messages
    assert "leave 1 of 3 Kafka partitions and 20 of 55 offsets to be read" in told
