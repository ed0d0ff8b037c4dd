"""Where a batch read starts and ends, what is lost, and what transactions leave in a topic."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load, refused
from tests.spark.conftest import rows

SCHEMA = "id BIGINT, _change_type STRING"
T0 = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Ids 0 to 9 in partition 0 and 10 to 14 in partition 1, a second apart."""
    name = broker.topic(2, retention_ms="-1")
    producer = broker.producer()
    for at in range(15):
        producer.produce(
            name, key=b'{"id":%d}' % at, value=b"{}", partition=int(at >= 10),
            timestamp=T0 + (at % 10) * 1000,
        )  # fmt: skip
    assert producer.flush(60) == 0
    return name


def ids(spark: SparkSession, broker: Broker, topic: str, **given: object) -> list[int]:
    """The ids that a changelog read with these options shows."""
    renamed = {name.replace("_", ".", 2).replace("_", "-"): value for name, value in given.items()}
    changelog = options(broker, topic, **{"read.mode": "changelog", **renamed})
    return sorted(row[0] for row in load(spark, SCHEMA, changelog).collect())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, range(15)),
        ({"scan_startup_mode": "latest-offset"}, []),
        ({"scan_startup_mode": "timestamp", "scan_startup_timestamp_millis": T0 + 3001},
         [*range(4, 10), 14]),
        ({"scan_startup_mode": "timestamp", "scan_startup_timestamp_millis": T0 + 99_000}, []),
        ({"scan_bounded_mode": "timestamp", "scan_bounded_timestamp_millis": T0 + 2000},
         [0, 1, 10, 11]),
        ({"scan_bounded_mode": "timestamp", "scan_bounded_timestamp_millis": T0 - 1}, []),
        ({"scan_startup_mode": "specific-offsets",
          "scan_startup_specific_offsets": "partition:0,offset:8;partition:1,offset:5"}, [8, 9]),
        ({"scan_startup_mode": "specific-offsets",
          "scan_startup_specific_offsets": "partition:1,offset:3"}, [*range(10), 13, 14]),
        ({"scan_bounded_mode": "specific-offsets",
          "scan_bounded_specific_offsets": "partition:0,offset:2;partition:1,offset:0"}, [0, 1]),
        ({"scan_startup_mode": "specific-offsets", "scan_bounded_mode": "specific-offsets",
          "scan_startup_specific_offsets": "partition:0,offset:5",
          "scan_bounded_specific_offsets": "partition:0,offset:7;partition:1,offset:2"}, [5, 6, 10, 11]),
        ({"scan_startup_mode": "timestamp", "scan_startup_timestamp_millis": T0 + 8000,
          "scan_bounded_mode": "specific-offsets",
          "scan_bounded_specific_offsets": "partition:0,offset:4"}, []),
    ],
)  # fmt: skip
def test_start_and_end(
    spark: SparkSession, broker: Broker, topic: str, given: dict[str, object], expected: list[int]
) -> None:
    """A changelog starts and ends where it is told to; the end is exclusive."""
    assert ids(spark, broker, topic, **given) == list(expected)


def test_group_offsets(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Group offsets are start or end; none committed needs ``auto.offset.reset``, else it is an error."""
    group = f"group-{topic}"
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    consumer.close()
    start = {"scan.startup.mode": "group-offsets", "properties.group.id": group}
    earliest = {**start, "properties.auto.offset.reset": "earliest"}
    assert ids(spark, broker, topic, **earliest) == [7, 8, 9, *range(10, 15)]
    latest = {**start, "properties.auto.offset.reset": "latest"}
    assert ids(spark, broker, topic, **latest) == [7, 8, 9]
    text = refused(lambda: ids(spark, broker, topic, **start))
    assert (
        f"OptionError: Group '{group}' has no committed offset for topic '{topic}', partition 1"
        in text
    )
    text = refused(lambda: ids(spark, broker, topic, **{"scan.startup.mode": "group-offsets"}))
    assert "OptionError: 'properties.group.id' is required" in text
    both = options(
        broker, topic, **{"scan.bounded.mode": "group-offsets", "properties.group.id": group}
    )
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 1, 1)], asynchronous=False)
    consumer.close()
    assert rows(load(spark, "id BIGINT", both)) == [(0,), (1,), (10,), (2,), (3,), (4,), (5,), (6,)]


def test_a_snapshot_starts_at_the_earliest_offset(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """A snapshot may end in the past, but starts at the beginning; a batch read has an end."""
    past = {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": T0 + 1000}
    assert rows(load(spark, "id BIGINT", options(broker, topic, **past))) == [(0,), (10,)]
    later = options(broker, topic, **{"scan.startup.mode": "latest-offset"})
    assert "OptionError: 'scan.startup.mode' = 'latest-offset' is not allowed" in refused(
        load(spark, "id BIGINT", later).collect
    )
    endless = options(broker, topic, **{"scan.bounded.mode": "unbounded"})
    assert "OptionError: 'scan.bounded.mode' = 'unbounded' is for streams" in refused(
        load(spark, "id BIGINT", endless).collect
    )
    unknown = {
        "scan.startup.mode": "specific-offsets",
        "scan.startup.specific-offsets": "partition:7,offset:0",
    }
    assert "OptionError: Specific offsets name partition 7" in refused(
        lambda: ids(spark, broker, topic, **unknown)
    )


def test_offsets_that_are_gone(spark: SparkSession, broker: Broker) -> None:
    """A start that retention took, or past the end, fails with all there is to know, or is warned of."""
    topic = broker.topic(1)
    broker.produce(topic, *[(f'{{"id":{at}}}', "{}") for at in range(10)])
    (deleted,) = broker.admin.delete_records([TopicPartition(topic, 0, 6)]).values()
    deleted.result()
    assert rows(load(spark, "id BIGINT", options(broker, topic))) == [(6,), (7,), (8,), (9,)]
    starts = {
        offset: {
            "scan.startup.mode": "specific-offsets",
            "scan.startup.specific-offsets": f"partition:0,offset:{offset}",
        }
        for offset in (2, 99)
    }
    with ThreadPoolExecutor(
        len(starts)
    ) as pool:  # each makes sure that the offset is gone, for seconds
        failing = {
            offset: pool.submit(refused, lambda start=start: ids(spark, broker, topic, **start))
            for offset, start in starts.items()
        }
        assert ids(spark, broker, topic, **starts[2], failOnDataLoss=False) == [6, 7, 8, 9]
    for offset, text in failing.items():
        assert (
            f"DataLossError: Some data may have been lost: topic '{topic}', partition 0, wanted offset "
            f"{offset}, earliest available offset 6" in text.result()
        )


@contextmanager
def transaction(broker: Broker, name: str) -> Iterator[Producer]:
    """A transactional producer; the transaction is left as the test leaves it."""
    # The broker ends a transaction after a minute, unless it is told to wait for longer.
    settings = {"transactional.id": name, "transaction.timeout.ms": 900_000}
    producer = broker.producer(**settings)
    producer.init_transactions(60)
    producer.begin_transaction()
    yield producer
    producer.flush(60)


def test_transactions(spark: SparkSession, broker: Broker) -> None:
    """Aborted and open transactions are not seen, unless ``read_uncommitted``; markers hang no read."""
    topic = broker.topic(1)

    def send(producer: Producer, number: int) -> None:
        producer.produce(topic, key=b'{"id":%d}' % number, value=b"{}")

    with transaction(broker, f"{topic}-committed") as producer:
        send(producer, 1)
        producer.commit_transaction(60)
    with transaction(broker, f"{topic}-aborted") as producer:
        send(producer, 2)
        producer.flush(60)
        producer.abort_transaction(60)
    broker.wait_for_transactions(topic)
    assert ids(spark, broker, topic) == [1]
    assert rows(load(spark, "id BIGINT", options(broker, topic))) == [(1,)]
    with transaction(broker, f"{topic}-open") as producer:
        send(producer, 3)
        producer.flush(60)
        broker.produce(topic, ('{"id":4}', "{}"))
        assert ids(spark, broker, topic) == [1], "behind an open transaction nothing is stable"
        uncommitted = {"properties.isolation.level": "read_uncommitted"}
        assert ids(spark, broker, topic, **uncommitted) == [1, 2, 3, 4]
        producer.abort_transaction(60)
    broker.wait_for_transactions(topic)
    assert ids(spark, broker, topic) == [1, 4]
    only_markers = broker.topic(1)
    topic = only_markers
    with transaction(broker, f"{topic}-aborted") as producer:
        send(producer, 5)
        producer.flush(60)
        producer.abort_transaction(60)
    broker.wait_for_transactions(topic)
    assert ids(spark, broker, only_markers) == []
