"""`read_table` over a real broker and both clients, without Spark and without Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_upsert_kafka import (
    BrokerError,
    DecodeError,
    OptionError,
    UpsertKafkaError,
    read_table,
)
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge, delete_before, eventually, own_messages

COLUMNS = "id BIGINT, name STRING"
T0 = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
T0_MS = int(T0.timestamp() * 1000)
SMALL_SEGMENTS = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.001"}

Table = Callable[..., pa.RecordBatchReader]


def row(id_: int, name: str | None) -> tuple[str, str | None]:
    """Key and value of a row; of a delete without a name."""
    return f'{{"id":{id_}}}', None if name is None else f'{{"id":{id_},"name":"{name}"}}'


def rows(reader: pa.RecordBatchReader) -> list[tuple[Any, ...]]:
    """The rows, sorted."""
    return sorted(tuple(each.values()) for each in reader.read_all().to_pylist())


@pytest.fixture
def table(broker: Broker, edge: Edge) -> Table:
    """Reads the table in a topic with one of the clients."""

    def read(
        topic: str, *, at: Any = None, schema: str = COLUMNS, **more: Any
    ) -> pa.RecordBatchReader:
        accepted = (
            {} if edge.has_transactions else {"properties.isolation.level": "read_uncommitted"}
        )
        # kafka-python-ng writes dead letters, too, only if it is told that one may be written twice.
        twice = {} if edge.has_transactions else {"properties.enable.idempotence": "false"}
        given = options(broker, topic, **{"kafka.client": edge.client, **accepted, **twice, **more})
        return read_table(given, schema=schema, at=at)

    return read


@pytest.fixture(scope="module")
def users(broker: Broker) -> str:
    """A topic of three partitions in which users move, and some are deleted."""
    topic = broker.topic(3)
    first = [row(id_, "Asia") for id_ in range(20)]
    broker.produce(topic, *first, *(row(id_, "Europe") for id_ in range(5)), row(7, None))
    return topic


USERS = [(id_, "Europe" if id_ < 5 else "Asia") for id_ in range(20) if id_ != 7]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"minPartitions": 7},
        {"scan.parallelism": 1},
        {"scan.parallelism": "auto"},
        {"properties.isolation.level": "read_uncommitted"},
    ],
)
def test_the_table_as_of_now(table: Table, users: str, more: dict[str, object]) -> None:
    """The last row of each key, whether the table is read whole or in pieces; what it is in Arrow is known before."""
    reader = table(users, **more)

    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema == pa.schema({"id": pa.int64(), "name": pa.string()})
    assert rows(reader) == USERS


def test_the_call_says_what_is_read(table: Table, broker: Broker) -> None:
    """Rows that come between the call and the reading are not shown, and rows that go are."""
    topic = broker.topic()
    broker.produce(topic, row(1, "a"), row(2, "b"))
    reader = table(topic)
    broker.produce(topic, row(1, "A"), row(2, None), row(3, "c"))

    assert rows(reader) == [(1, "a"), (2, "b")]
    assert rows(table(topic)) == [(1, "A"), (3, "c")]


def test_an_empty_topic(table: Table, broker: Broker) -> None:
    """It has its columns, and no row."""
    found = table(broker.topic(2)).read_all()

    assert (found.num_rows, found.column_names) == (0, ["id", "name"])


@pytest.mark.parametrize("spelling", [lambda time: time, lambda time: time.isoformat()])
def test_a_past_time(table: Table, broker: Broker, spelling: Callable[[datetime], Any]) -> None:
    """Messages from that time on do not count: it is exclusive."""
    topic = broker.topic(retention_ms="-1")
    producer = broker.producer()
    for second, name in enumerate(["a", "b", None]):
        key, value = row(1, name)
        at = int((T0 + timedelta(seconds=second)).timestamp() * 1000)
        producer.produce(topic, key=key, value=value, timestamp=at)
    assert producer.flush(60) == 0

    found = [
        rows(table(topic, at=spelling(T0 + timedelta(milliseconds=after))))
        for after in (0, 1, 1_000, 1_001, 2_001)
    ]
    assert found == [[], [(1, "a")], [(1, "a")], [(1, "b")], []]
    # The clock of another zone shows the same time otherwise.
    tokyo = (T0 + timedelta(seconds=2)).astimezone(timezone(timedelta(hours=9)))
    assert rows(table(topic, at=spelling(tokyo))) == [(1, "b")]


def test_how_long_ago_it_was(table: Table, broker: Broker) -> None:
    """As the option of the same meaning takes it."""
    topic = broker.topic(retention_ms="-1")
    producer = broker.producer()
    at = int((datetime.now(timezone.utc) - timedelta(days=2)).timestamp() * 1000)
    producer.produce(topic, key='{"id":1}', value='{"id":1,"name":"a"}', timestamp=at)
    assert producer.flush(60) == 0

    assert [rows(table(topic, at=ago)) for ago in ("-1 d", "-3 d")] == [[(1, "a")], []]


def test_a_topic_that_is_not_there(table: Table) -> None:
    """The call fails, before anything is read."""
    with pytest.raises(BrokerError, match="Topic 'no-such-topic' does not exist"):
        table("no-such-topic")


def test_a_topic_for_dead_letters_that_is_not_there(table: Table, users: str) -> None:
    """The call fails, though no message is bad."""
    letters = {"error-handling.mode": "log", "error-handling.log.target": "no-such-letters"}
    with pytest.raises(BrokerError, match="no-such-letters"):
        table(users, **letters)


def test_messages_that_cannot_be_read(table: Table, broker: Broker) -> None:
    """Reading fails with the place of the message, and not the call; or the message is skipped, or sent away."""
    topic, letters = broker.topic(), broker.topic()
    broker.produce(topic, row(1, "a"), ('{"id":1}', "no JSON"), (None, "{}"), row(2, "b"))
    reader = table(topic)
    with pytest.raises(DecodeError, match=f"'{topic}', partition 0, offset 1 cannot"):
        reader.read_all()

    assert rows(table(topic, **{"error-handling.mode": "ignore"})) == [(1, "a"), (2, "b")]
    log = {"error-handling.mode": "log", "error-handling.log.target": letters}
    assert rows(table(topic, **log)) == [(1, "a"), (2, "b")]
    assert [letter.value for letter in broker.messages(letters)] == [b"no JSON", b"{}"]


def test_partitions_are_read_one_after_another(table: Table, broker: Broker) -> None:
    """The rows of one are there before the next one is read: memory never holds both."""
    topic = broker.topic(2)
    broker.produce(topic, row(1, "a"), row(1, "b"), partition=0)
    broker.produce(topic, ("?", "?"), partition=1)
    reader = table(topic)

    assert reader.read_next_batch().to_pylist() == [{"id": 1, "name": "b"}]
    with pytest.raises(DecodeError, match="partition 1, offset 0"):
        reader.read_next_batch()


def test_a_table_that_does_not_fit(table: Table, broker: Broker) -> None:
    """The error says how many pieces it takes, and with those it is read."""
    topic = broker.topic()
    broker.produce(topic, *(row(id_, "x" * 1_000) for id_ in range(2_000)))
    little = {"scan.snapshot.memory": "1 mb"}

    with pytest.raises(OptionError, match=r"'minPartitions' = '\d+'") as error:
        table(topic, **little).read_all()
    pieces = str(error.value).partition("'minPartitions' = '")[2].partition("'")[0]
    assert table(topic, minPartitions=pieces, **little).read_all().num_rows == 2_000


@pytest.mark.long("waits for the cleaner of a broker of its own")
def test_compaction_between_the_call_and_the_reading(stoppable_broker: Broker, edge: Edge) -> None:
    """No key is missing whose message was there at the call, as in a DataFrame that is used later."""
    broker = stoppable_broker
    topic = broker.topic(cleanup_policy="compact", **SMALL_SEGMENTS)
    broker.produce(topic, *(row(id_, "old") for id_ in range(500)))
    accepted = {} if edge.has_transactions else {"properties.isolation.level": "read_uncommitted"}
    given = options(broker, topic, **{"kafka.client": edge.client, **accepted})
    reader = read_table(given, schema=COLUMNS)
    broker.produce(topic, *(row(id_, "new") for id_ in range(500)))
    time.sleep(
        0.2
    )  # the next message is in a segment of its own, and lets the cleaner at the others
    broker.produce(topic, row(0, "new"))
    assert eventually(lambda: all(each.offset >= 500 for each in broker.messages(topic)))

    assert rows(reader) == [(id_, "new") for id_ in range(500)]


def test_a_reader_that_is_left(table: Table, users: str) -> None:
    """What was not read costs nothing more, and the next one reads everything."""
    reader = table(users)
    assert reader.read_next_batch().num_rows > 0
    del reader

    assert rows(table(users)) == USERS


def debezium(op: str, before: Any, after: Any) -> dict[str, Any]:
    """An envelope of Debezium."""
    return {"op": op, "before": before, "after": after}


ADA, ALAN, MOVED = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Alan"}, {"id": 3, "name": "Ada"}
CDC = {
    "debezium-json": [debezium("c", None, ADA), debezium("r", None, ALAN), debezium("u", ADA, MOVED), debezium("d", ALAN, None)],
    "maxwell-json": [
        {"type": "insert", "data": ADA}, {"type": "insert", "data": ALAN},
        {"type": "update", "data": MOVED, "old": {"id": 1}}, {"type": "delete", "data": ALAN},
    ],
    "canal-json": [
        {"type": "INSERT", "data": [ADA, ALAN]}, {"type": "UPDATE", "data": [MOVED], "old": [{"id": 1}]},
        {"type": "DELETE", "data": [ALAN]},
    ],
    "ogg-json": [
        {"op_type": "I", "after": ADA}, {"op_type": "I", "after": ALAN},
        {"op_type": "U", "before": ADA, "after": MOVED}, {"op_type": "D", "before": ALAN},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CDC)
@pytest.mark.parametrize("pieces", [None, 3])
def test_cdc_formats(table: Table, broker: Broker, name: str, pieces: int | None) -> None:
    """With a primary key such a topic is a table, also where its keys are read in pieces."""
    topic = broker.topic()
    broker.produce(topic, *((None, json.dumps(message)) for message in CDC[name]))
    found = table(topic, key__format=None, value__format=name, minPartitions=pieces)

    assert found.read_all().to_pylist() == [MOVED]


def test_bad_fields_that_a_format_passes_over(table: Table, broker: Broker) -> None:
    """``ignore-parse-errors`` acts before the mode: such a field is NULL, and only a message with a bad key is left out."""
    topic = broker.topic()
    numbers = [('{"id":1}', '{"id":1,"n":1}'), ('{"id":2}', '{"id":2,"n":2}')]
    broker.produce(topic, *numbers, ('{"id":2}', '{"id":2,"n":"x"}'), ("no JSON", "{}"))
    more = {"value.json.ignore-parse-errors": "true", "error-handling.mode": "ignore"}

    assert rows(table(topic, schema="id BIGINT, n BIGINT", **more)) == [(1, 1), (2, None)]


@pytest.mark.parametrize(
    ("given", "schema", "said"),
    [
        ({"read.mode": "table"}, COLUMNS, "read.mode"),
        ({"primary-key": "nr"}, COLUMNS, "nr"),
        ({"primry-key": "id"}, COLUMNS, "primary-key"),
        ({"error-handling.mode": "column"}, COLUMNS, "error-handling.mode"),
        ({"scan.startup.mode": "latest-offset"}, COLUMNS, "scan.startup.mode"),
        ({}, "id BIGINT, m MAP<STRING, STRING> NOT NULL, _offset STRING", "_offset"),
    ],
)
def test_what_is_refused(
    table: Table, users: str, given: dict[str, str], schema: str, said: str
) -> None:
    """By the call, and the error names the option or the column."""
    with pytest.raises(UpsertKafkaError, match=said):
        table(users, schema=schema, **given)


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("partition:0,offset:2;partition:1,offset:0", [(1, "b")]),
        ("partition:1,offset:1", [(2, "c")]),
    ],
)
def test_ends_at_offsets(
    table: Table, broker: Broker, end: str, shown: list[tuple[int, str]]
) -> None:
    """A partition without an end is not read."""
    topic = broker.topic(2)
    broker.produce(topic, row(1, "a"), row(1, "b"), row(1, "B"), partition=0)
    broker.produce(topic, row(2, "c"), row(2, "C"), partition=1)
    bounded = {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": end}

    assert rows(table(topic, **bounded)) == shown


def test_several_topics(table: Table, broker: Broker) -> None:
    """Each topic has its own row of a key."""
    one, other = broker.topic(), broker.topic(3)
    broker.produce(one, row(1, "a"), row(1, "A"))
    broker.produce(other, row(1, "b"))

    assert rows(table(f"{one};{other}")) == [(1, "A"), (1, "b")]


WITHOUT_JAVA = """
import gc, sys
from pyspark_upsert_kafka import read_table

reader = read_table({options}, schema="id BIGINT, name STRING")
first = reader.read_next_batch()
from pyspark import SparkContext
heavy = ("polars", "sqlglot", "rich")
print(first.num_rows > 0, [name for name in heavy if name in sys.modules], SparkContext._gateway)
print(gc.get_freeze_count())
"""


def test_a_process_without_java(broker: Broker, users: str, tmp_path: Path) -> None:
    """It needs no JVM and few libraries, its garbage is collected as before, and it ends well with a reader half read."""
    program = WITHOUT_JAVA.format(options=options(broker, users))
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "PATH": str(tmp_path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "True [] None\n0\n"


def test_a_key_in_several_partitions(table: Table, broker: Broker) -> None:
    """With the option one row of each key: the newest by its timestamp, in whichever partition it lies."""
    topic = broker.topic(partitions=2)
    producer = broker.producer()
    for partition, id_, name, time_ms in (
        (0, 1, "new", 2_000),
        (1, 1, "old", 1_000),
        (0, 2, None, 2_000),
        (1, 2, "old", 1_000),
        (1, 3, "x", 1_000),
    ):
        key, value = row(id_, name)
        producer.produce(topic, value, key, partition=partition, timestamp=T0_MS + time_ms)
    producer.flush(60)

    assert rows(table(topic)) == [(1, "new"), (1, "old"), (2, "old"), (3, "x")]
    merging = {"scan.snapshot.merge-partitions": "true"}
    assert rows(table(topic, **merging)) == [(1, "new"), (3, "x")]
    assert rows(table(topic, **merging, minPartitions="3")) == [(1, "new"), (3, "x")]


def test_a_past_that_is_gone_is_told(
    table: Table, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention has taken the messages of that time: the table is empty, and a warning says since when there is one."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="-1")
    messages = [row(number % 10, "Asia") for number in range(30)]
    broker.produce(topic, *messages)
    delete_before(broker, topic, 20)

    assert rows(table(topic, at="2026-01-31T12:00:00Z")) == []
    (told,) = own_messages(caplog)
    assert (
        f"has no row of topic {topic!r}, partition 0 (its messages before offset 20 are gone, the"
        in told
    )
    assert "No time up to 20" in told
    caplog.clear()
    assert len(rows(table(topic))) == 10
    assert own_messages(caplog) == []


def test_keys_that_are_read_as_another_number(
    table: Table, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys of JSON that have eight bytes can be read as a BIGINT: the row that was deleted is still there, and a warning says why."""
    topic = broker.topic()
    broker.produce(topic, row(1, "a"), row(2, "b"), row(1, None))

    assert rows(table(topic, **{"key.format": "raw"})) == [(1, "a"), (2, "b")]
    (told,) = own_messages(caplog)
    assert f"Topic {topic!r}, partition 0, offset 0: of the primary key, 'id' differs" in told
    caplog.clear()
    assert rows(table(topic)) == [(2, "b")]
    assert own_messages(caplog) == []
