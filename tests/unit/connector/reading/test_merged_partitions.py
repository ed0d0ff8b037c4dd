"""A snapshot with one row for each key, also where the key lies in several partitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import unseen_messages
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import LAST_OFFSET, Range, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import spread
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.connector.memory_topics import NO_TIME, MemoryTopics, Message

SCHEMA = StructType().add("id", LongType()).add("time", StringType())


def options(**more: object) -> ReadOptions:
    """Of a snapshot that merges partitions."""
    given_ = table_options(**{"scan.snapshot.merge-partitions": "true", **more})
    return read_options(given_, format_options, stream=False)


def message(key: int, value: str | None, time_ms: int) -> Message:
    """A change of a key; no value = a tombstone."""
    row = None if value is None else json.dumps({"id": key, "time": value}).encode()
    return Message(json.dumps({"id": key}).encode(), row, time_ms)


def table(
    patch: pytest.MonkeyPatch,
    *partitions: list[Message],
    tasks: int = 1,
    at_once: int = 3,
    **more: object,
) -> list[tuple[int, str]]:
    """The rows that so many tasks read."""
    topics = MemoryTopics(at_once=at_once)
    topics.fill("t", *partitions)
    for module in (task_reading, unseen_messages):
        patch.setattr(module, "load_client", lambda name: topics)
    given_ = options(minPartitions=tasks, **more)
    ranges = spread(ranges_of_batch(topics, given_), given_.max_partitions)
    assert len(ranges) == (tasks if any(partitions) else 0)
    columns = table_to_read(SCHEMA, given_)
    rows: list[dict[str, Any]] = []
    for of_task in ranges:
        for batch in task_reading.read_ranges(of_task, columns, given_):
            rows += batch.to_pylist()
    return sorted((row["id"], row["time"]) for row in rows)


@pytest.mark.parametrize("tasks", [1, 3])
def test_one_row_of_each_key(monkeypatch: pytest.MonkeyPatch, tasks: int) -> None:
    """The newest by timestamp, then by the partition; a newer tombstone of another partition deletes."""
    new = [
        message(1, "new", 20),
        message(2, None, 20),
        message(3, "new", 20),
        message(4, "low", 10),
        message(5, "timed", 1),
        message(6, "only here", 1),
    ]
    old = [
        message(1, "old", 10),
        message(2, "old", 10),
        message(3, None, 10),
        message(4, "high", 10),
        message(5, "timeless", NO_TIME),
    ]

    assert table(monkeypatch, new, [], old, tasks=tasks) == [
        (1, "new"),
        (3, "new"),
        (4, "high"),
        (5, "timed"),
        (6, "only here"),
    ]


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_key_that_an_update_changed_is_gone(monkeypatch: pytest.MonkeyPatch, tasks: int) -> None:
    """Its delete is in the partition of the new key, and newer than the row in its own."""

    def change(time_ms: int, **fields: object) -> Message:
        return Message(None, json.dumps(fields).encode(), time_ms)

    third = [change(10, type="insert", data={"id": 1, "time": "a"})]
    first = [change(20, type="update", data={"id": 2, "time": "a"}, old={"id": 1})]
    second = [change(30, type="update", data={"id": 3, "time": "b"}, old={"id": 2, "time": "a"})]
    maxwell = {"key.format": None, "value.format": "maxwell-json"}

    assert table(monkeypatch, first, second, third, tasks=tasks, **maxwell) == [(3, "b")]


@pytest.mark.parametrize(
    ("second", "warnings"),
    [([message(1, "new", 20)], 1), ([message(7, "new", 20)], 0), ([message(1, None, 20)], 0)],
)
@pytest.mark.parametrize("merges", ["true", "false"])
def test_a_warning_says_that_keys_lie_in_several_partitions(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    second: list[Message],
    warnings: int,
    merges: str,
) -> None:
    """Once, by what reads several of them; without the option only of rows, since tombstones are not kept."""
    monkeypatch.setattr(errors, "_warned", set())
    first = [message(1, "old", 10), message(2, "x", 10)]
    by_one = {} if merges == "true" else {"scan.parallelism": "1"}

    table(monkeypatch, first, [], second, **{"scan.snapshot.merge-partitions": merges}, **by_one)

    is_seen = warnings or (merges == "true" and second[0].value is None)
    found = [each for each in caplog.messages if each.startswith("Keys lie in several partitions")]
    assert len(found) == int(bool(is_seen))
    assert all(each.endswith(" Such keys: id = 1.") for each in found)


MESSAGES = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([None, "x", "y", "z"]), st.integers(0, 4)),
    max_size=8,
)


@given(st.lists(MESSAGES, min_size=1, max_size=3), st.integers(1, 2), st.integers(1, 3))
def test_the_rows_follow_the_rule(
    drawn: list[list[tuple[int, str | None, int]]], tasks: int, at_once: int
) -> None:
    """Of the last change of each key in each partition, that with the greatest timestamp so far in its partition counts."""
    expected: dict[int, tuple[tuple[int, int], str | None]] = {}
    for partition, log in enumerate(drawn):
        last: dict[int, tuple[int, str | None]] = {}
        for key, value, time in log:
            last[key] = max(time, last.get(key, (0, None))[0]), value
        for key, (time, value) in last.items():
            place = (time, partition)
            if key not in expected or place > expected[key][0]:
                expected[key] = place, value

    with pytest.MonkeyPatch.context() as patch:
        found = table(
            patch,
            *([message(*each) for each in log] for log in drawn),
            tasks=tasks,
            at_once=at_once,
        )

    assert found == sorted(
        (key, value) for key, (_, value) in expected.items() if value is not None
    )


@dataclass
class Compacted(MemoryTopics):
    """The same after compaction."""

    gone: set[tuple[int, int]] = field(default_factory=set)

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """Without the offsets of partitions that are gone."""
        for batch in super().read(range_):
            kept = [(batch.partition, at) not in self.gone for at in batch.offsets]
            if any(kept):
                yield batch.where(kept)

    def end(self, range_: Range) -> int:
        """As `RangeReader.end`."""
        return len(self.messages[TopicPartition(range_.topic, range_.partition)])


@pytest.mark.parametrize(
    ("late_ms", "gone", "rows"),
    [
        (30, {(1, 0)}, []),
        (5, {(1, 0)}, [(1, "old")]),
        (30, set(), [(1, "new")]),
    ],
    ids=["taken for a newer change", "taken for one that is older than the row", "still there"],
)
def test_a_row_that_compaction_has_taken_brings_back_no_older_one(
    monkeypatch: pytest.MonkeyPatch,
    late_ms: int,
    gone: set[tuple[int, int]],
    rows: list[tuple[int, str]],
) -> None:
    """Of the table with which a stream begins: the key is left out, as the change follows for which its row was taken."""
    topics = Compacted(gone=gone)
    topics.fill("t", [message(1, "old", 10)], [message(1, "new", 20), message(1, "late", late_ms)])
    monkeypatch.setattr(task_reading, "load_client", lambda name: topics)
    ranges = [Range("t", at, 0, 1, kept_until_ms=0, followed_to=LAST_OFFSET) for at in (0, 1)]

    given_ = options()
    found = [*task_reading.read_ranges(ranges, table_to_read(SCHEMA, given_), given_)]

    assert [(row["id"], row["time"]) for batch in found for row in batch.to_pylist()] == rows


def test_a_row_is_left_out_only_if_a_later_batch_shows_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The change for which compaction took the newer row is past the end of the stream, so the row that is left is shown."""
    topics = Compacted(gone={(1, 0)})
    later = [message(2, "next", 20), message(1, "late", 30)]
    topics.fill("t", [message(1, "old", 10)], [message(1, "new", 20), *later])
    monkeypatch.setattr(task_reading, "load_client", lambda name: topics)
    ranges = [Range("t", at, 0, 1, kept_until_ms=0, followed_to=2) for at in (0, 1)]

    given_ = options()
    found = [*task_reading.read_ranges(ranges, table_to_read(SCHEMA, given_), given_)]

    assert [(row["id"], row["time"]) for batch in found for row in batch.to_pylist()] == [
        (1, "old")
    ]


def test_a_table_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how many tasks it takes, each of which reads all offsets."""
    large = [
        [message(key, "x" * 10_000, 1) for key in range(first, first + 100)] for first in (0, 100)
    ]

    with pytest.raises(OptionError, match=r"'minPartitions' = '\d+'"):
        table(monkeypatch, *large, **{"scan.snapshot.memory": "1 mb"})


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"read.mode": "changelog"}, "is for snapshots"),
        (
            {"scan.parallelism": "2"},
            "'scan.parallelism' is not allowed with 'scan.snapshot.merge-partitions'",
        ),
    ],
)
def test_what_contradicts_it(more: dict[str, str], error: str) -> None:
    """Changes are not merged, and a task reads all partitions in any case."""
    with pytest.raises(OptionError, match=error):
        options(**more)
