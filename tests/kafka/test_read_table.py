"""`read_table` over a real broker and both clients, without Spark and without Java."""

from __future__ import annotations

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
    read_table,
)
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge, eventually

COLUMNS = "id BIGINT, name STRING"
T0 = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
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


@pytest.mark.parametrize("more", [{}, {"minPartitions": 7}, {"scan.parallelism": 1}])
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
