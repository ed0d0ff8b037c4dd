"""What is read of a topic, against a broker in memory: which ranges, in which order, once and then as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.cli.show import topic_reading
from pyspark_upsert_kafka.cli.show.one_key import SoughtKey, one_key
from pyspark_upsert_kafka.cli.show.topic_reading import Follower, counted, ranges_to_read, rows_of
from pyspark_upsert_kafka.connector import read_request as requests
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import key_partitions, topic_observer
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.connector.fake_cluster import Clock, FakeCluster, world

Message = tuple[bytes, "bytes | None"]


def user(number: int, name: str | None) -> Message:
    """A message; one without a name is a tombstone."""
    key = b'{"id":%d}' % number
    return key, None if name is None else b'{"id":%d,"name":"%s"}' % (number, name.encode())


@dataclass
class Topic:
    """Topic ``t`` of two partitions; it keeps which ranges were read."""

    cluster: FakeCluster
    clock: Clock
    messages: dict[int, list[Message]] = field(default_factory=lambda: {0: [], 1: []})
    asked: list[Range] = field(default_factory=list)
    timestamp_type: int = 1

    def put(self, *messages: Message, partition: int | None = None) -> None:
        """Appends messages, each where Java's producer puts it, or all to one partition."""
        for message in messages:
            where = partition_of(message[0], 2) if partition is None else partition
            self.messages[where].append(message)
            self.cluster.produce("t", where)

    def reader(self, _: object) -> Topic:
        """As `Client.reader`."""
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """As `RangeReader.read`."""
        self.asked.append(range_)
        found = self.messages[range_.partition][range_.begin : range_.end]
        keys, values = map(list, zip(*found, strict=True))
        offsets = [*range(range_.begin, range_.end)]
        times = [at * 1000 for at in offsets]
        yield RawBatch(
            "t",
            range_.partition,
            BytesColumn.of(keys),
            BytesColumn.of(values),
            offsets,
            [self.timestamp_type] * len(offsets),
            times,
        )

    def end(self, range_: Range) -> int:
        """As `RangeReader.end`."""
        return len(self.messages[range_.partition])


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    """An empty topic; nobody reads standard output."""
    there = world(monkeypatch)
    there.cluster.create("t", 2)
    found = Topic(there.cluster, there.clock)
    client = topic_observer.load_client("any")
    client.reader = found.reader  # type: ignore[method-assign]
    for module in (task_reading, requests, key_partitions, topic_observer):
        monkeypatch.setattr(module, "load_client", lambda _: client)
    monkeypatch.setattr(topic_reading, "stop_without_reader", lambda: None)
    return found


def asked(**more: str) -> Request:
    """A table of ids and names."""
    options = read_options(table_options(**more), format_options, stream=False)
    columns = "id BIGINT, name STRING"
    if options.mode == "changelog" and options.emit_deletes:
        columns += ", _change_type STRING"
    return Request(table_to_read(spark_columns(columns), options), options)


def table(request: Request, key: str | None = None) -> list[tuple[int, str]]:
    """The rows that are shown."""
    only = None if key is None else one_key(key, request.table)
    batches = rows_of(request, only and SoughtKey(only), prints=False)
    return sorted(tuple(row.values()) for rows in batches for row in rows.to_pylist())


def test_a_key_is_looked_for_in_its_partition(topic: Topic) -> None:
    """Of the other one nothing is read."""
    topic.put(*[user(at, name) for name in ("a", "b") for at in range(10)])
    for number in range(10):
        topic.asked.clear()

        assert table(asked(), f"id={number}") == [(number, "b")]
        assert {range_.partition for range_ in topic.asked} == {
            partition_of(user(number, "")[0], 2)
        }


def test_a_key_that_is_not_in_its_partition_is_looked_for_in_all(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    """Its partition holds keys of this connector only, and this one is left where it was before partitions were added."""
    topic.put(user(5, "a"))
    assert (partition_of(user(3, "")[0], 2), partition_of(user(5, "")[0], 2)) == (1, 1)
    topic.put(user(3, "left behind"), partition=0)

    assert table(asked(), "id=3") == [(3, "left behind")]
    assert "the key is not in the one where this connector would write it" in caplog.text
    assert table(asked(), "id=77") == []


@pytest.mark.parametrize(
    ("message", "partition"), [((b'{ "id": 3 }', b'{"id":3,"name":"a"}'), 1), (user(3, "a"), 0)]
)
def test_a_key_of_another_writer(
    topic: Topic, message: Message, partition: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Where one key is spelt otherwise, or is in another partition, all are read, and that is said."""
    assert partition_of(user(3, "a")[0], 2) == 1
    topic.put(message, partition=partition)

    assert table(asked(), "id=3") == [(3, "a")]
    assert "Every partition is read: topic 't'" in caplog.text


@pytest.mark.parametrize(
    "more",
    [{}, {"read.mode": "changelog", "minPartitions": "6"}, {"read.mode": "changelog", "scan.deletes": "drop"}],
)  # fmt: skip
def test_counts(topic: Topic, more: dict[str, str]) -> None:
    """Live keys are those of the table, however it is read; a bad message is counted, and the first one told."""
    topic.put(user(1, "a"), user(2, "a"), user(2, None), user(3, None), user(1, "b"))
    topic.put((b"{", b"{"), (b'{"id":4}', b"{"), partition=1)
    counts = counted(asked(**more))

    assert (counts.live_keys, counts.tombstones, counts.messages, counts.bad_messages) == (
        1,
        2,
        7,
        2,
    )
    assert counts.first_bad is not None
    assert (counts.first_bad.partition, counts.first_bad.stage) == (1, "key")


def test_what_compaction_took_is_found_past_the_planned_end(topic: Topic) -> None:
    """A key whose message is gone shows its newest row, the others theirs as of the end that was request."""
    topic.put(user(1, "a"), user(2, "b"), user(3, "c"), partition=0)
    request = asked()
    one, two = (SoughtKey(one_key(f"id={number}", request.table)) for number in (1, 2))
    reads = [rows_of(request, key, prints=False) for key in (None, one, two)]
    topic.put(user(1, "A"), user(2, "B"), user(4, "D"), user(3, None), partition=0)
    topic.messages[0][0] = topic.messages[0][2]  # as if it was never there

    def rows(found: Iterator[pa.RecordBatch]) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for batch in found for row in batch.to_pylist())

    assert [rows(each) for each in reads] == [
        [(1, "A"), (2, "b"), (3, "c"), (4, "D")],
        [(1, "A")],
        [(2, "b")],
    ]


@pytest.mark.parametrize(
    ("messages", "more", "said"),
    [
        ([user(3, "a")], {}, None),
        ([user(4, "a")], {}, "no such row"),
        ([user(3, "a"), user(3, None), user(3, "b")], {}, None),
        ([user(3, "a"), user(3, None), user(5, "b")], {}, "no such row; deleted at 1970-01-01T00:00:01.000Z (partition 1, offset 1)"),
        ([user(3, None)], {"read.mode": "changelog"}, None),
        ([user(5, None)], {"read.mode": "changelog"}, "no such row"),
        ([user(3, None)], {"read.mode": "changelog", "scan.deletes": "drop"}, "no such row"),
    ],
)  # fmt: skip
def test_a_key_that_has_no_row(
    topic: Topic, messages: list[Message], more: dict[str, str], said: str | None
) -> None:
    """It was never there, or its newest message deletes it; what is shown needs no word."""
    topic.put(*messages)

    assert absence(asked(**more)) == said


def test_a_key_that_is_deleted_in_several_partitions(topic: Topic) -> None:
    """The newest tombstone is told, and no row is missing while one partition still has it."""
    topic.put((b'{ "id": 3 }', None), partition=1)  # spelt by another writer: all are read
    topic.put(user(5, "a"), user(3, None), partition=0)
    assert absence(asked()) == "no such row; deleted at 1970-01-01T00:00:01.000Z (partition 0, offset 1)"  # fmt: skip

    topic.timestamp_type = 0
    assert str(absence(asked())).startswith("no such row; deleted (partition ")

    topic.put(user(3, "back"), partition=1)
    assert absence(asked()) is None


def test_a_tombstone_behind_what_cannot_be_read(topic: Topic) -> None:
    """Its offset is told right although messages before it give no row."""
    topic.put((b'{"id":3}', b"{"), user(3, "a"), user(3, None), partition=1)

    said = absence(asked(**{"error-handling.mode": "ignore"}))
    assert said is not None
    assert said.endswith("(partition 1, offset 2)")


def test_a_key_that_is_deleted_while_it_is_read(topic: Topic) -> None:
    """Its row as of the planned end is shown, so nothing is said of the delete."""
    topic.put(user(3, "a"), partition=1)
    request = asked()
    sought = SoughtKey(one_key("id=3", request.table))
    found = rows_of(request, sought, prints=False)
    topic.put(user(3, None), partition=1)

    assert [row["name"] for rows in found for row in rows.to_pylist()] == ["a"]
    assert sought.absence() is None


def absence(request: Request) -> str | None:
    """What is said of key 3 when all is read."""
    sought = SoughtKey(one_key("id=3", request.table))
    list(rows_of(request, sought, prints=False))
    return sought.absence()


def test_changes_are_followed(topic: Topic) -> None:
    """What there is comes first, then what arrives, each once; between them it is said that all was read."""
    topic.put(user(1, "a"), user(2, "b"))
    changes = Follower(asked(), None, topic.clock).changes()
    names = []
    for round_ in range(3):
        while (change := next(changes)) is not None:
            _, rows = change
            names += rows.columns[1].to_pylist()
        assert len(names) == 2 + round_
        topic.put(user(1, f"c{round_}"))
        topic.clock.sleep(1)

    assert sorted(names) == ["a", "b", "c0", "c1"]


def test_one_key_is_followed(topic: Topic) -> None:
    """Of every partition: nobody knows who writes the key next, and where."""
    topic.put(*[user(at, "a") for at in range(10)])
    topic.put(user(3, "elsewhere"), partition=0)
    request = asked()
    changes = Follower(request, one_key("id=3", request.table), topic.clock).changes()

    assert {place for place, rows in iter(lambda: next(changes), None) if len(rows)} == {
        TopicPartition("t", 0),
        TopicPartition("t", 1),
    }


def test_what_has_an_end_is_not_followed(topic: Topic) -> None:
    """An end in the options contradicts it."""
    ends = {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:0,offset:1"}  # fmt: skip

    with pytest.raises(OptionError, match=r"leave out 'scan\.bounded\.mode'"):
        Follower(asked(**ends), None)


def test_a_topic_that_is_not_there(topic: Topic) -> None:
    """It is an error for each of them."""
    topic.cluster.delete("t")

    with pytest.raises(BrokerError, match="does not exist"):
        ranges_to_read(asked(), None)
    with pytest.raises(BrokerError, match="does not exist"):
        next(Follower(asked(), None, topic.clock).changes())
