"""Reading without an object for each message: all that is taken is freed, or closing the consumer would wait for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaProducer

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_sending_client
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, client_log
from pyspark_upsert_kafka.kafka.librdkafka.reader import BATCH_POOL, LibrdkafkaReader
from pyspark_upsert_kafka.kafka.native import (
    BatchProducer,
    TransactionalBatchProducer,
    message_pointers,
)
from pyspark_upsert_kafka.kafka.native import consumer as consumer_module
from pyspark_upsert_kafka.kafka.native.consumer import BatchConsumer
from pyspark_upsert_kafka.kafka.native.message_pointers import bytes_at, fields_of
from pyspark_upsert_kafka.kafka.pooled_reader import SMALL_FETCH
from tests.conftest import Broker, options
from tests.kafka.conftest import NATIVE_OFF, Edge, numbered, turn_off

COUNT = 20_000
TIMESTAMP = frozenset({Detail.TIMESTAMP})


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """A topic with many messages."""
    name = broker.topic()
    broker.produce(name, *numbered(COUNT))
    return name


@pytest.fixture
def consumer(broker: Broker, topic: str) -> Iterator[BatchConsumer]:
    """A consumer that fetches the topic from its begin on; it must end within seconds."""
    config = {"bootstrap.servers": broker.servers, "group.id": "g", "logger": client_log}
    opened = BatchConsumer(
        {**config, "enable.partition.eof": True, "fetch.wait.max.ms": 20}, ReportedErrors()
    )
    opened.assign([TopicPartition(topic, 0, 0)])
    yield opened
    closing = threading.Thread(target=opened.close, daemon=True)
    closing.start()
    closing.join(120)
    assert not closing.is_alive(), "a message was not freed"


def taken(consumer: BatchConsumer, timeout_s: float = 1.0) -> list[int]:
    """The offsets of some messages."""
    with consumer.taken(5_000, timeout_s) as pointers:
        fields = fields_of(pointers)
        return list(fields["offset"][fields["err"] == 0])


def test_what_is_taken_is_freed_when_it_was_read(consumer):
    """Also what came at the end of the partition: an event."""
    found = []
    while len(found) < COUNT:
        found += taken(consumer)

    assert found == [*range(COUNT)]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_what_is_taken_is_freed_whatever_is_raised(consumer, error):
    """Nothing of it is given again: whoever raises reads no further."""
    for _ in range(3):
        with pytest.raises(error):
            fail(consumer, error)

    assert taken(consumer)


def fail(consumer: BatchConsumer, error: type[BaseException]) -> None:
    """Raises while messages are taken."""
    with consumer.taken(1_000, 10.0) as pointers:
        assert len(pointers)
        raise error


class CtrlC:
    """Comes again and again, but once only after ``may_come`` is set, so that none comes where the test itself could not bear it."""

    def __init__(self, every_s: float) -> None:
        self.may_come = False
        self._every_s = every_s

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGALRM, self._come)
        signal.setitimer(signal.ITIMER_REAL, self._every_s, self._every_s)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _come(self, *_: object) -> None:
        if self.may_come:
            self.may_come = False
            raise KeyboardInterrupt


@pytest.mark.alone("counts how often Ctrl-C came within five seconds")
@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
def test_ctrl_c_at_any_moment_loses_no_message_and_frees_none_twice(
    consumer, topic, together, monkeypatch
):
    """Hundreds of times, wherever it happens to come."""
    if not together:
        monkeypatch.setattr(message_pointers, "_free_together", lambda: None)
    times, until = 0, time.monotonic() + 5
    ctrl_c = CtrlC(every_s=0.002)
    with ctrl_c:
        while time.monotonic() < until:
            try:
                ctrl_c.may_come = True
                if times % 50 == 0:
                    consumer.assign([TopicPartition(topic, 0, 0)])
                while time.monotonic() < until:
                    taken(consumer, 0.001)
                ctrl_c.may_come = False
            except KeyboardInterrupt:
                times += 1

    assert times > 100
    consumer.assign([TopicPartition(topic, 0, 7)])
    assert taken(consumer)


@pytest.mark.alone("measures memory")
def test_reading_leaks_nothing(consumer, topic):
    """The same messages over and over take no more memory."""
    sizes = []
    for _ in range(8):
        for _ in range(10):
            consumer.assign([TopicPartition(topic, 0, 0)])
            count = 0
            while count < COUNT:
                with consumer.taken(5_000, 0.05) as pointers:
                    fields = fields_of(pointers)
                    count += len(bytes_at(fields["value"], fields["value_size"]))
        sizes.append(psutil.Process().memory_info().rss)

    assert sizes[-1] - sizes[2] < 20_000_000


@pytest.mark.parametrize("lacking", ["the check", "the permission", "the function that frees many"])
def test_where_something_is_lacking_it_is_read_all_the_same(broker, topic, lacking, monkeypatch):
    """An older library, or one with another layout, or the switch is off."""
    if lacking == "the check":
        monkeypatch.setattr(consumer_module, "can_be_read", lambda: False)
    elif lacking == "the permission":
        turn_off(monkeypatch, NATIVE_OFF)
    else:
        monkeypatch.setattr(message_pointers, "_free_together", lambda: None)
    edge = Edge("librdkafka", broker.servers, details=TIMESTAMP)

    assert edge.offsets(Range(topic, 0, 5, COUNT)) == [*range(5, COUNT)]


@pytest.mark.parametrize(
    ("is_on", "used"),
    [
        (True, [BatchConsumer, BatchProducer, TransactionalBatchProducer]),
        (False, [Consumer, Producer, Producer]),
    ],
)
def test_the_option_chooses_each_client(broker, is_on, used):
    """With `kafka.client.native` = `false`, confluent-kafka's own clients read, send and write in transactions."""
    topic = broker.topic()
    given = options(broker, topic, **{"kafka.client.native": str(is_on).lower()})
    properties = read_options(given, format_options, stream=False).table.properties
    reader = LibrdkafkaReader(ReadSettings(properties, True, True, TIMESTAMP))
    client = load_sending_client("librdkafka", "a test")
    at_least_once = DeliveryGuarantee.AT_LEAST_ONCE
    with (
        closing(reader._connect(SMALL_FETCH).consumer) as consumer,
        closing(client.sender(properties, [topic], at_least_once, with_metadata=False)) as sender,
        closing(
            client.transactional_sender(properties, [topic], f"x-{topic}", with_metadata=False)
        ) as in_transactions,
    ):
        assert [type(consumer), type(sender._producer), type(in_transactions._producer)] == used
    assert (reader._pool is BATCH_POOL) is is_on


def test_both_ways_give_the_same(broker, topic):
    """Keys, values, offsets and timestamps."""
    found = []
    for details in (TIMESTAMP, TIMESTAMP | {Detail.HEADERS}):
        edge = Edge("librdkafka", broker.servers, details=details)
        batches = list(edge.batches(Range(topic, 0, 0, COUNT)))
        columns = ("keys", "values", "offsets", "timestamp_types", "timestamps")
        found.append(
            {name: [x for each in batches for x in getattr(each, name)] for name in columns}
        )

    assert found[0] == found[1]
    assert np.all(np.array(found[0]["timestamps"]) > 0)


def test_timestamps_of_0_cost_no_more_than_a_call_each(broker, monkeypatch):
    """They end NumPy's loop, which is not begun anew behind each; the timestamps among them are not lost."""
    name, count = broker.topic(retention_ms="-1"), 6_000
    timestamps = [7 if number % 3_000 == 2_000 else 0 for number in range(count)]
    with closing(KafkaProducer(bootstrap_servers=broker.servers, linger_ms=20)) as producer:
        for ms in timestamps:
            producer.send(name, b"v", partition=0, timestamp_ms=ms)
    calls = 0
    loop = message_pointers.call_on_pairs

    def counted(*arguments):
        nonlocal calls
        calls += 1
        loop(*arguments)

    monkeypatch.setattr(message_pointers, "call_on_pairs", counted)
    edge = Edge("librdkafka", broker.servers, details=TIMESTAMP)
    batches = list(edge.batches(Range(name, 0, 0, count)))

    assert [ms for batch in batches for ms in batch.timestamps] == timestamps
    assert {kind for batch in batches for kind in batch.timestamp_types} == {1}
    assert calls < 1_000


_READS_ON = """
import sys, threading, time
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.metadata import Detail
from tests.kafka.conftest import Edge

servers, topic, count = sys.argv[1:]
edge = Edge("librdkafka", servers, details=frozenset())
edge.offsets(Range(topic, 0, 0, 10))

def read():
    while True:
        edge.offsets(Range(topic, 0, 0, int(count)))

threading.Thread(target=read, daemon=True).start()
time.sleep(1)
"""
"""A program that ends while a thread of it reads."""


@pytest.mark.long("starts programs one after another")
def test_a_program_ends_while_a_thread_reads(broker, topic):
    """The consumer that is used is left alone, and one that waits in the pool is ended."""
    for _ in range(3):
        command = [sys.executable, "-c", _READS_ON, broker.servers, topic, str(COUNT)]
        ended = subprocess.run(command, capture_output=True, timeout=120, check=False)

        assert (ended.returncode, ended.stderr) == (0, b"")
