"""`read_changes` over a real broker and both clients: how it waits, goes on and is closed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from pyspark_upsert_kafka import (
    CheckpointError,
    DataLossError,
    TableChanges,
    UnknownTopicError,
    UpsertKafkaError,
    read_changes,
)
from tests.conftest import Broker, options
from tests.kafka.conftest import (
    Edge,
    delete_before,
    eventually,
    no_more_than,
    open_things,
    own_messages,
)
from tests.kafka.test_read_table import COLUMNS, row

Changes = Callable[..., TableChanges]


@pytest.fixture
def changes(broker: Broker, edge: Edge) -> Changes:
    """Reads the changes of a topic with one of the clients."""
    return lambda topic, **more: changes_of(broker, edge, topic, **more)


def changes_of(broker: Broker, edge: Edge, topic: str, **more: Any) -> TableChanges:
    """The changes of a topic."""
    arguments = {
        name: more.pop(name) for name in ("start", "position", "stop_at_end") if name in more
    }
    accepted = {} if edge.has_transactions else {"properties.isolation.level": "read_uncommitted"}
    given = options(broker, topic, **{"kafka.client": edge.client, **accepted, **more})
    if "topic-pattern" in more:
        del given["topic"]
    return read_changes(given, schema=COLUMNS, **arguments)


def shown(batch: Any) -> list[tuple[Any, ...]]:
    """The rows of a batch."""
    return [tuple(each.values()) for each in batch.to_pylist()]


@pytest.mark.every_client
def test_the_table_and_then_its_changes(changes: Changes, broker: Broker) -> None:
    """Each change comes once, in this call or in one that goes on at its position, and the reader that waits is closed."""
    topic = broker.topic()
    broker.produce(topic, row(1, "a"), row(2, "b"), row(1, "A"), row(2, None))
    found = changes(topic)
    assert shown(next(found)) == [(1, "A", "upsert")]
    assert found.caught_up
    position = found.position
    broker.produce(topic, row(1, None))
    assert not found.caught_up
    assert shown(next(found)) == [(1, None, "delete")]

    taken: list[Any] = []
    reader = threading.Thread(target=lambda: taken.extend(found))
    reader.start()
    broker.produce(topic, row(3, "c"))
    assert eventually(lambda: len(taken) == 1)
    found.close()
    reader.join(60)
    assert not reader.is_alive()
    with changes(topic, position=position, stop_at_end=True) as again:
        assert [each for batch in again for each in shown(batch)] == [
            (1, None, "delete"),
            (3, "c", "upsert"),
        ]


def test_closing_leaves_nothing(changes: Changes, broker: Broker) -> None:
    """No thread and no connection, also in the middle of a range."""
    topic = broker.topic(3)
    broker.produce(topic, *(row(id_, "x" * 1000) for id_ in range(50_000)))
    with changes(topic) as warm:
        next(warm)
    before = open_things()
    for start in ("full", "earliest"):
        found = changes(topic, start=start)
        next(found)
        assert not found.caught_up
        found.close()
        assert eventually(lambda: no_more_than(before))


@pytest.mark.long("waits for a transaction")
def test_open_transactions(changes: Changes, broker: Broker, edge: Edge) -> None:
    """What is open is not given, and what was committed is; with its last row all is read, marker or not."""
    if not edge.has_transactions:
        pytest.skip("the client has no read_committed")
    topic = broker.topic()
    broker.produce(topic, row(1, "a"))
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions(300)
    producer.begin_transaction()
    producer.produce(topic, *reversed(row(2, "b")))
    producer.flush(60)
    found = changes(topic)
    assert shown(next(found)) == [(1, "a", "upsert")]
    assert found.caught_up
    producer.commit_transaction(300)
    assert shown(next(found)) == [(2, "b", "upsert")]
    assert found.caught_up
    found.close()


@pytest.mark.long("waits for discovery")
def test_new_partitions_and_topics(changes: Changes, broker: Broker) -> None:
    """They are found while it waits."""
    topic = broker.topic()
    found = changes(
        topic, **{"topic-pattern": f"{topic}.*", "scan.topic-partition-discovery.interval": "1 s"}
    )  # fmt: skip
    broker.grow(topic, 2)
    broker.produce(topic, row(1, "a"), partition=1)
    assert shown(next(found)) == [(1, "a", "upsert")]
    broker.create(f"{topic}-more")
    broker.produce(f"{topic}-more", row(2, "b"))
    assert shown(next(found)) == [(2, "b", "upsert")]
    found.close()


@pytest.mark.long("waits until a loss is certain")
def test_what_is_gone(changes: Changes, broker: Broker, edge: Edge) -> None:
    """Of the position by retention, or with the topic; while it reads, too."""
    topic = broker.topic()
    broker.produce(topic, *(row(id_, "a") for id_ in range(10)))
    with changes(topic, start="earliest") as found:
        position = found.position
        delete_before(broker, topic, 5)
        with pytest.raises(DataLossError, match="earliest"):
            changes(topic, position=position)
        with changes(topic, position=position, stop_at_end=True, failOnDataLoss="false") as rest:
            assert [each[0] for batch in rest for each in shown(batch)] == [5, 6, 7, 8, 9]
    broker.delete(topic)
    broker.create(topic)
    if edge.has_topic_ids:
        with pytest.raises(CheckpointError, match="deleted and created again"):
            changes(topic, position=position)


@pytest.mark.long("stops and starts a broker")
def test_changes_that_are_gone_are_told(
    changes: Changes, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """A start before the earliest message that is left; all changes that the topic has are no past."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="-1")
    broker.produce(topic, row(1, "a"), row(2, "b"), row(3, "c"))
    begun = "2026-01-31T12:00:00Z"
    changes(topic, start=begun, stop_at_end=True).close()
    assert own_messages(caplog) == []
    delete_before(broker, topic, 2)
    changes(topic, start=begun, stop_at_end=True).close()
    (told,) = own_messages(caplog)
    assert f"topic {topic!r}, partition 0 (its messages before offset 2 are gone" in told
    caplog.clear()
    changes(topic, start="earliest", stop_at_end=True).close()
    assert own_messages(caplog) == []


def test_a_broker_that_is_away(stoppable: Any, stoppable_broker: Broker, edge: Edge) -> None:
    """Reading goes on once it is back."""
    topic = stoppable_broker.topic()
    stoppable_broker.produce(topic, row(1, "a"))
    found = changes_of(stoppable_broker, edge, topic)
    assert shown(next(found)) == [(1, "a", "upsert")]
    stoppable.stop()
    timer = threading.Timer(5, stoppable.start)
    timer.start()
    writer = threading.Timer(30, lambda: stoppable_broker.produce(topic, row(2, "b")))
    writer.start()
    assert shown(next(found)) == [(2, "b", "upsert")]
    timer.join()
    writer.join()
    found.close()


ENDLESS = """
import sys
from pyspark_upsert_kafka import read_changes
with read_changes({options}, schema="id BIGINT, name STRING") as changes:
    for batch in changes:
        print(batch.num_rows, flush=True)
"""


@pytest.mark.long("runs a program")
@pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="SIGINT is ignored here"
)
def test_ctrl_c_while_it_waits(broker: Broker) -> None:
    """The program ends by it, soon and without a crash."""
    topic = broker.topic()
    broker.produce(topic, row(1, "a"))
    program = [sys.executable, "-c", ENDLESS.format(options=options(broker, topic))]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)

    assert said.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode in (130, -signal.SIGINT)


FORKED = """
import gc, os
from pyspark_upsert_kafka import UpsertKafkaError, read_changes
changes = read_changes({options}, schema="id BIGINT, name STRING", start="earliest")
next(changes)
assert not changes.caught_up
child = os.fork()
if child == 0:
    try:
        next(changes)
    except UpsertKafkaError:
        changes.close()
        del changes
        gc.collect()
        os._exit(7)
_, status = os.waitpid(child, 0)
rows = 0
while not changes.caught_up:
    rows += next(changes).num_rows
changes.close()
print(os.waitstatus_to_exitcode(status), rows > 0)
"""


@pytest.mark.long("runs a program")
@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
def test_a_fork(broker: Broker) -> None:
    """A child that was forked is told, and ends without touching the clients, with which its parent goes on."""
    topic = broker.topic()
    broker.produce(topic, *(row(id_, "x") for id_ in range(100_000)))
    program = [sys.executable, "-c", FORKED.format(options=options(broker, topic))]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)

    assert ended.stdout == "7 True\n", ended.stderr


@pytest.mark.long("reads two million messages")
def test_memory_does_not_grow(changes: Changes, broker: Broker, edge: Edge) -> None:
    """Two million messages take no more than a few of them."""
    if edge.client != "librdkafka":
        pytest.skip("the slow client takes minutes")
    topic = broker.topic(2)
    for _ in range(20):
        broker.produce(topic, *(row(id_, "x" * 50) for id_ in range(100_000)))
    with changes(topic, start="earliest", stop_at_end=True) as found:
        sizes = []
        for number, _ in enumerate(found):
            if number % 10 == 9:
                sizes.append(psutil.Process().memory_info().rss)
    assert len(sizes) > 5
    assert max(sizes[len(sizes) // 2 :]) < 1.3 * max(sizes[: len(sizes) // 2])


@pytest.mark.every_client
def test_it_starts_so_long_ago(changes: Changes, broker: Broker) -> None:
    """A text such as ``-1 d`` is a time before the call: changes since then, and not those before."""
    topic, now_ms = broker.topic(), int(time.time() * 1000)
    producer = broker.producer()
    for id_, days in ((1, 2.0), (2, 0.5), (3, 0.0)):
        key, value = row(id_, "a")
        producer.produce(topic, value, key, timestamp=now_ms - int(days * 86_400_000))
    producer.flush(60)

    for start, ids in (("-1 d", [2, 3]), ("-60 d", [1, 2, 3]), ("-1 h", [3])):
        with changes(topic, start=start, stop_at_end=True) as found:
            assert [each[0] for batch in found for each in shown(batch)] == ids


DEBEZIUM = [
    ("r", None, {"id": 1, "name": "a"}), ("c", None, {"id": 2, "name": "b"}),
    ("u", {"id": 1, "name": "a"}, {"id": 1, "name": "A"}), ("d", {"id": 2, "name": "b"}, None),
    ("u", {"id": 1, "name": "A"}, {"id": 5, "name": "A"}),
]  # fmt: skip


@pytest.mark.every_client
def test_changes_of_a_database(changes: Changes, broker: Broker) -> None:
    """A CDC format with a key is a table, whose rows may change their keys; without one each change has its images."""
    topic = broker.topic()
    for op, before, after in DEBEZIUM:
        value = json.dumps({"op": op, "before": before, "after": after})
        broker.produce(topic, (json.dumps({"id": (after or before or {})["id"]}), value))
        if op == "d":
            broker.produce(topic, ('{"id":2}', None))
    keyed = {"value.format": "debezium-json", "key.format": None}

    with changes(topic, stop_at_end=True, **keyed) as found:
        assert [each for batch in found for each in shown(batch)] == [(5, "A", "upsert")]
        position = found.position
    broker.produce(
        topic, ("x", json.dumps({"op": "d", "before": {"id": 5, "name": "A"}, "after": None}))
    )
    with changes(topic, position=position, stop_at_end=True, **keyed) as found:
        assert [each for batch in found for each in shown(batch)] == [(5, None, "delete")]
    with changes(
        topic, start="earliest", stop_at_end=True, **keyed, **{"primary-key": None}
    ) as found:
        kinds = [each[2] for batch in found for each in shown(batch)]
    assert kinds == [
        "insert",
        "insert",
        *["update_preimage", "update_postimage"],
        "delete",
        *["update_preimage", "update_postimage"],
        "delete",
    ]


IMPATIENT = {
    "properties.max.poll.interval.ms": "6000",
    "properties.session.timeout.ms": "6000",
}


@pytest.mark.long("nobody reads for half a minute")
@pytest.mark.every_client
def test_a_reader_that_pauses_for_longer_than_a_consumer_may(
    changes: Changes, broker: Broker
) -> None:
    """In the middle of a range, and where all is read: it goes on with the next message, and repeats none."""
    topic = broker.topic()
    broker.produce(topic, *(row(id_, "x" * 1000) for id_ in range(60_000)))
    with changes(
        topic, start="earliest", **IMPATIENT, **{"properties.group.id": f"pauses-{topic}"}
    ) as found:
        seen = [each[0] for each in shown(next(found))]
        assert len(seen) < 60_000
        time.sleep(15)
        while not found.caught_up:
            seen += [each[0] for each in shown(next(found))]
        time.sleep(15)
        broker.produce(topic, row(70_000, "y"))
        seen += [each[0] for each in shown(next(found))]

    assert seen == [*range(60_000), 70_000]


@pytest.mark.long("waits until a loss is certain")
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_a_topic_that_is_deleted_while_it_is_read(
    changes: Changes, broker: Broker, again: bool
) -> None:
    """It is an error and no silent end, also where the topic is there again; what was given was of the old one."""
    topic = broker.topic()
    broker.produce(topic, *(row(id_, "x" * 1000) for id_ in range(60_000)))
    with changes(topic, start="earliest") as found:
        seen = [each[0] for each in shown(next(found))]
        broker.delete(topic)
        if again:
            broker.create(topic)
            broker.produce(topic, row(1, "another"))
        with pytest.raises(UpsertKafkaError) as error:
            seen.extend(each[0] for batch in found for each in shown(batch))

    assert seen == [*range(len(seen))]
    assert len(seen) < 60_000
    assert isinstance(error.value, DataLossError | UnknownTopicError)
    assert topic in str(error.value)
