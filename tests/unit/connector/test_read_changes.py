"""`read_changes`: what is refused and in which words, how it waits, ends and is closed, against topics in memory."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from pyspark_upsert_kafka import (
    CheckpointError,
    DataLossError,
    DecodeError,
    OptionError,
    SchemaChangedError,
    SchemaError,
    UpsertKafkaError,
    read_changes,
)
from pyspark_upsert_kafka.connector import change_stream
from pyspark_upsert_kafka.connector import read_changes as module
from pyspark_upsert_kafka.connector.read_changes import TableChanges
from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.table_options import table_options
from tests.unit.connector.fake_cluster import Clock, world
from tests.unit.connector.memory_topics import MemoryTopics, Message
from tests.unit.connector.reading.test_later_columns import ID, TIER, avro, framed
from tests.unit.registry.fake_registry import serving

COLUMNS = "id BIGINT, name STRING"
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
NEW = "leave position out, to begin with the table again"


def message(id_: int, name: str | None) -> Message:
    """A row, or a delete."""
    key = b'{"id":%d}' % id_
    value = None if name is None else b'{"id":%d,"name":"%s"}' % (id_, name.encode())
    return Message(key, value, 1000 * id_)


class Topics(MemoryTopics):
    """Topics that grow, and a clock that passes while a reader waits."""

    clock: Clock

    def put(self, *rows: tuple[int, str | None], partition: int = 0, topic: str = "t") -> None:
        """Appends changes."""
        place = TopicPartition(topic, partition)
        self.messages.setdefault(place, [])
        self.messages[place] = [*self.messages[place], *(message(*row) for row in rows)]
        self.produce(topic, partition, len(rows))


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Topic ``t`` of two partitions."""
    there = world(monkeypatch)
    found = Topics()
    found.clock = there.clock
    there.cluster.__class__ = Topics
    there.cluster.__dict__.update(found.__dict__)
    cluster: Any = there.cluster
    monkeypatch.setattr(task_reading, "load_client", lambda _: cluster)
    real = TableChanges

    def with_clock(request: Any, at: Any = None, **more: Any) -> TableChanges:
        return real(request, at, there.clock, **more)

    monkeypatch.setattr(module, "TableChanges", with_clock)
    cluster.create("t", 2)
    cluster.put(partition=1)
    cluster.put()
    return cluster


def changes(given: dict[str, Any] | None = None, **more: Any) -> TableChanges:
    """The changes of topic ``t``."""
    return read_changes(table_options(**given or {}), **{"schema": COLUMNS, **more})


def shown(batches: Iterator[Any]) -> list[tuple[Any, ...]]:
    """The rows of batches."""
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def refused(given: dict[str, Any] | None = None, **arguments: Any) -> str:
    """What is said of a call that needs no broker to be refused."""
    with pytest.raises((OptionError, SchemaError, CheckpointError)) as error:
        changes(given, **arguments)
    return str(error.value)


@pytest.mark.parametrize(
    ("given", "arguments", "sentence"),
    [
        ({"primry-key": "id"}, {}, "Did you mean 'primary-key'?"),
        ({"read.mode": "snapshot"}, {}, "'read.mode' = 'snapshot' is for batch reads"),
        ({"error-handling.mode": "column"}, {}, "is not allowed with 'error-handling.mode' = 'column'"),
        ({"scan.startup.mode": "earliest-offset"}, {},
         "start='full' and 'scan.startup.mode' = 'earliest-offset' both say where reading begins: leave the option out, and give start='earliest'."),
        ({"Scan.Startup.Timestamp-Millis": "1"}, {"start": NOON}, "'scan.startup.timestamp-millis' = '1' both say where"),
        ({"scan.bounded.mode": "latest-offset"}, {"stop_at_end": True}, "stop_at_end and 'scan.bounded.mode' both say where it ends"),
        ({}, {"start": "now"}, "start: expected 'full', 'latest', 'earliest' or a time such as 2026-01-31T12:00:00Z, but is 'now'"),
        ({}, {"start": ""}, "start: expected 'full'"),
        ({}, {"start": "2026-01-31T12:00:00"}, "start: '2026-01-31T12:00:00' has no zone"),
        ({}, {"start": "9999-01-01T00:00:00Z"}, "is in the future. For the changes from now on, give start='latest'."),
        ({}, {"start": 7}, "start is of the type int"),
        ({"read.mode": "append", "primary-key": None, "key.format": None}, {}, "give start='earliest', 'latest' or a time"),
        ({"value.format": "debezium-json", "primary-key": None, "key.format": None}, {}, "no changes of a table: give start='earliest'"),
        ({}, {"position": {}}, "position is of the type dict: give the text"),
        ({}, {"position": ""}, f"position is not a text that .position was: ''. Restore it, or {NEW}."),
        ({}, {"position": "{}"}, "position is not a text that .position was"),
        ({}, {"position": "[" * 100_000}, "position is not a text that .position was"),
        ({}, {"position": "7"}, "position is not a text that .position was"),
        ({}, {"position": '{"version": 1, "initial": true}'}, "position is not a text that .position was"),
        ({}, {"position": '{"version": 99, "topics": {}}'}, "version 99, known up to 2"),
        ({}, {"position": '{"version": 1, "topics": {"t": {"positions": {"0": -1}}}}'},
         "position holds an offset that cannot be read. Partition 0 in 'positions' of topic 't' is -1"),
        ({}, {"position": '{"version": 1, "topics": {"u": {"id": "x", "positions": {"0": 1}}}}'},
         f"position is of topic 'u', and the options name 't': give the position of this table, or {NEW}."),
        ({}, {"position": '{"version": 2, "table": true, "topics": {"t": {"positions": {"0": 1}, "begins": {"0": 2}}}}'},
         "position asks for topic 't', partition 0 from offset 2 to 1"),
        ({"topic": None, "topic-pattern": "v.*"}, {"position": '{"version": 1, "topics": {"t": {}}}'}, "the options name \"pattern 'v.*'\""),
        ({}, {"schema": "id BIGINT NOT NULL, name STRING NOT NULL"}, "Column 'name' is NOT NULL; in a changelog"),
    ],
)  # fmt: skip
def test_what_is_refused(given: dict[str, Any], arguments: dict[str, Any], sentence: str) -> None:
    """By the call, before a broker is asked."""
    assert sentence in refused(given, **arguments)


def test_what_spark_would_show_is_no_warning(
    topics: Topics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret among the options is one that Spark prints with a plan, and here is no Spark."""
    monkeypatch.setattr(errors, "_warned", set())
    topics.put((1, "a"))

    with changes({"properties.ssl.key.pem": "geheim"}, stop_at_end=True) as found:
        assert len(shown(found)) == 1

    assert "geheim" not in caplog.text
    assert "Spark" not in caplog.text


def test_keys_unlike_their_rows_are_told(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    """Eight bytes of JSON are a BIGINT too: the delete is of another row."""
    topics.put((1, "a"), (1, None))
    with changes({"key.format": "raw"}, start="earliest", stop_at_end=True) as batches:
        assert [row[0] for row in shown(batches)] == [1, int.from_bytes(b'{"id":1}', "big")]
    assert "offset 0: of the primary key, 'id' differs between the value" in caplog.text


def test_no_options() -> None:
    """The error names those that are needed."""
    with pytest.raises(OptionError, match="read_changes has no options: give 'topic', "):
        read_changes()


@pytest.mark.parametrize(
    ("schema", "given", "columns"),
    [
        (COLUMNS, {}, ["id", "name", "_change_type"]),
        ("id BIGINT, _Change_Type STRING, name STRING", {}, ["id", "_Change_Type", "name"]),
        (f"{COLUMNS}, kind STRING", {"metadata.kind": "change-type"}, ["id", "name", "kind"]),
        (COLUMNS, {"scan.deletes": "drop"}, ["id", "name"]),
    ],
)
def test_a_column_for_the_kind_of_a_change(
    topics: Topics, schema: str, given: dict[str, Any], columns: list[str]
) -> None:
    """It is added, unless there is one or nothing to tell apart; the columns are known before a batch."""
    assert changes(given, schema=schema).schema.names == columns


def test_the_table_first(topics: Topics) -> None:
    """One row of each key, then each change; with the last row of the table it is caught up."""
    topics.put((1, "a"), (2, "b"), (1, "A"), (2, None))
    topics.put((3, "c"), partition=1)
    found = changes()
    assert not found.caught_up
    assert [next(found).to_pylist()[0]["name"] for _ in range(2)] == ["A", "c"]
    assert found.caught_up
    topics.put((1, None), (1, "x"))
    assert not found.caught_up

    assert [row[2] for row in shown(iter([next(found)]))] == ["delete", "upsert"]
    assert found.caught_up


@pytest.mark.parametrize(
    ("start", "rows"),
    [
        ("full", [(1, "A", "upsert")]),
        ("earliest", [(1, "a", "upsert"), (1, "A", "upsert")]),
        ("latest", []),
        ("1970-01-01T00:00:00.500Z", [(1, "a", "upsert"), (1, "A", "upsert")]),
        (NOON, []),
    ],
)
def test_where_it_starts(topics: Topics, start: Any, rows: list[tuple[Any, ...]]) -> None:
    """With the table, with what the topics hold, or with what comes."""
    topics.put((1, "a"), (1, "A"))
    assert shown(changes(start=start, stop_at_end=True)) == rows

    found = changes(start="latest")
    topics.put((5, "new"))
    assert shown(iter([next(found)])) == [(5, "new", "upsert")]


def test_the_end_is_that_of_the_call(topics: Topics) -> None:
    """What comes later is for a later call, which goes on at the position; and an ended iterator stays ended."""
    topics.put((1, "a"))
    found = changes(stop_at_end=True)
    topics.put((2, "b"))

    assert shown(found) == [(1, "a", "upsert")]
    assert next(found, None) is None
    assert shown(changes(position=found.position, stop_at_end=True)) == [(2, "b", "upsert")]


def test_an_end_of_the_options(topics: Topics) -> None:
    """A bounded stream ends by itself, and its position keeps the end."""
    topics.put((1, "a"), (2, "b"), (3, "c"))
    end = {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:0,offset:2"}  # fmt: skip
    found = changes(end)

    assert shown(found) == [(1, "a", "upsert"), (2, "b", "upsert")]
    assert shown(changes(end, position=found.position)) == []


def test_a_position_before_the_first_batch(topics: Topics) -> None:
    """It is that of the call: what comes after it is not lost, whatever happens before a batch."""
    topics.put((1, "a"))
    position = changes(start="latest").position
    topics.put((2, "b"))

    assert shown(changes(position=position, stop_at_end=True)) == [(2, "b", "upsert")]


def test_a_position_without_a_start(topics: Topics) -> None:
    """It says where reading goes on, of messages that are no table too: `start` is for the first call alone."""
    rows = {"read.mode": "append", "primary-key": None, "key.format": None}
    topics.put((1, "a"))
    found = changes(rows, start="earliest", stop_at_end=True)
    assert shown(found) == [(1, "a")]
    topics.put((2, "b"))

    assert shown(changes(rows, position=found.position, stop_at_end=True)) == [(2, "b")]
    unfinished = changes().position
    assert "start='full' begins with the table" in refused(rows, position=unfinished)


def test_another_topic_of_that_name(topics: Topics) -> None:
    """Its messages are not those after the position; with the option they are read, all of them."""
    topics.put((1, "a"), (2, "b"))
    found = changes(stop_at_end=True)
    shown(found)
    topics.delete("t")
    topics.create("t", 2)
    topics.messages = {TopicPartition("t", 0): (), TopicPartition("t", 1): ()}
    topics.put((3, "c"))

    assert refused(position=found.position) == (
        "position is of a topic 't' that was deleted and created again since: its id is 'id-2', and was 'id-1'. Leave position out, "
        "to begin with the table again; or go on with all messages of the new topic, by 'failOnDataLoss' = 'false'."
    )
    more = {"failOnDataLoss": "false"}
    assert shown(changes(more, position=found.position, stop_at_end=True)) == [(3, "c", "upsert")]


@pytest.mark.parametrize("offset", [1, 50])
def test_what_follows_the_position_is_gone(topics: Topics, offset: int) -> None:
    """By retention, or it was never there: the call says so."""
    topics.put((1, "a"), (2, "b"), (3, "c"))
    topics.set("t", 0, 2, 3)
    position = json.dumps(
        {"version": 1, "topics": {"t": {"id": "id-1", "positions": {"0": offset, "1": 0}}}}
    )

    with pytest.raises(DataLossError):
        changes(position=position)


def test_new_partitions(topics: Topics) -> None:
    """They are found while it waits, and read from their beginning."""
    topics.put((1, "a"))
    found = changes()
    next(found)
    topics.add_partition("t")
    topics.put((9, "z"), partition=2)
    topics.clock.now += 1000

    assert shown(iter([next(found)])) == [(9, "z", "upsert")]


def test_an_error_does_not_end_it(topics: Topics) -> None:
    """What was read before a bad message is given first, and each next call says what is wrong."""
    topics.put((1, "a"), (2, "b"), (3, "c"))
    place = TopicPartition("t", 0)
    topics.messages[place] = [*topics.messages[place], Message(b'{"id":4}', b"no JSON")]
    topics.produce("t")
    found = changes(start="earliest")

    assert len(next(found)) == 3
    for _ in range(2):
        with pytest.raises(DecodeError, match="offset 3"):
            next(found)
    topics.messages[place] = [*topics.messages[place][:3], message(4, "d")]
    assert shown(iter([next(found)])) == [(4, "d", "upsert")]


def test_ctrl_c_loses_nothing(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt within a call leaves the position where it was."""
    topics.put((1, "a"))
    found = changes(start="earliest")
    before = found.position

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(change_stream, "_moved", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(found)
    assert found.position == before
    assert shown(iter([next(found)])) == [(1, "a", "upsert")]


def test_closed_while_it_waits(topics: Topics) -> None:
    """By another thread, and by a handler in the same one: the reader ends."""
    found = changes()
    waiting = threading.Event()
    clock = topics.clock

    def tick() -> float:
        clock.now += 0.001
        return clock.now

    def tell(seconds: float) -> None:
        waiting.set()
        clock.now += seconds

    clock.monotonic, clock.sleep = tick, tell  # type: ignore[method-assign]
    reader = threading.Thread(target=lambda: [*found])
    reader.start()
    assert waiting.wait(60)
    found.close()
    reader.join(60)
    assert not reader.is_alive()

    again = changes()
    clock.sleep = lambda _: again.close()  # type: ignore[method-assign]
    assert [*again] == []


def test_closed(topics: Topics) -> None:
    """It gives nothing more, keeps its position, and may be closed again."""
    topics.put((1, "a"))
    with changes() as found:
        pass
    found.close()

    assert next(found, None) is None
    assert json.loads(found.position)["table"]
    with pytest.raises(UpsertKafkaError, match="are closed"):
        _ = found.caught_up


def test_in_a_fork(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to do, and leaves the clients of the other process alone."""
    found = changes()
    monkeypatch.setattr(os, "getpid", lambda: 1)

    with pytest.raises(
        UpsertKafkaError, match="is a fork, and Kafka clients do not work in a fork"
    ):
        next(found)
    found.close()


def test_limits_make_partitions_take_turns(topics: Topics) -> None:
    """``maxOffsetsPerTrigger`` is about a round."""
    for partition in (0, 1):
        topics.put(*[(at, "x") for at in range(4)], partition=partition)
    turns = changes({"maxOffsetsPerTrigger": 2}, start="earliest", schema=f"{COLUMNS}, _partition INT", stop_at_end=True)  # fmt: skip

    assert [row[2] for row in shown(turns)] == [0, 1] * 4


def test_positions_are_committed_to_a_group(topics: Topics) -> None:
    """After a round, when the next batch is asked for: for Kafka's tools."""
    topics.put((1, "a"))
    found = changes({"properties.group.id": "g"}, stop_at_end=True)
    next(found)
    assert topics.committed == {}
    assert next(found, None) is None

    assert topics.committed[TopicPartition("t", 0)] == 1


def test_columns_that_come_later(topics: Topics) -> None:
    """The error names the message; a new call with the position has its columns, and gives it."""
    old, new = avro(ID), avro(ID, TIER)

    def put(number: int, schema: Any, row: dict[str, int]) -> None:
        place = TopicPartition("t", 0)
        key = b'{"id":%d}' % row["id"]
        topics.messages[place] = [
            *topics.messages[place],
            Message(key, framed(number, schema, row)),
        ]
        topics.produce("t", 0, 1)

    with serving() as registry:
        for number, schema in ((1, old), (2, new)):
            registry.schema(number, schema)
        registry.version("t-value", "latest", old)
        given = {
            "value.format": "avro-confluent",
            "value.avro-confluent.url": registry.url,
            "scan.schema-changes": "restart",
        }
        put(1, old, {"id": 1})
        with changes(given, schema=None) as found:
            first = next(found)
            put(2, new, {"id": 2, "tier": 3})
            registry.version("t-value", "latest", new)
            for _ in range(2):
                with pytest.raises(
                    SchemaChangedError,
                    match=r"partition 0, offset 1 was written.*read_changes: call it again, with its position",
                ):
                    next(found)
            position = found.position
        with changes(given, schema=None, position=position, stop_at_end=True) as again:
            rows = shown(again)

    assert shown(iter([first])) == [(1, "upsert")]
    assert rows == [(2, 3, "upsert")]
