"""Batches within a number of bytes, by messages that real clients read: behind gaps, between markers of transactions."""

from __future__ import annotations

import time

import pytest

from pyspark_upsert_kafka.connector.planning.batch_ends import MessageSizes
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from tests.conftest import Broker
from tests.kafka.conftest import Edge, eventually

SMALL_SEGMENTS = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.001"}


def batch_bytes(edge: Edge, topic: str, limit: int) -> list[int]:
    """The bytes of keys and values in each batch of a topic, which is read to its end."""
    settings = ReadSettings(
        edge.all_properties(), edge.has_transactions, fail_on_data_loss=True, details=frozenset()
    )
    reader = load_client(edge.client).reader(settings)
    sizes, found = MessageSizes(reader), []
    with edge.cluster() as cluster:
        view = edge.view(cluster, topic)
    at = {tp: bounds.earliest for tp, bounds in view.bounds.items()}
    while at != view.latest:
        ends = sizes.ends(view, at, view.latest, limit)
        assert all(begin < ends[tp] or begin == view.latest[tp] for tp, begin in at.items())
        ranges = [Range(*tp, at[tp], end, view.topic_ids[topic]) for tp, end in ends.items()]
        read = [batch for each in ranges if each.size for batch in reader.read(each)]
        found.append(sum(batch.keys.size + batch.values.size for batch in read))
        at = ends
    return found


def test_batches_of_messages_of_several_sizes(edge: Edge, broker: Broker) -> None:
    """About as many bytes as the limit says, but for a thousand messages at first."""
    topic = broker.topic(3)
    for partition, size in enumerate((10, 100, 1000)):
        broker.produce(topic, *[(b"k" * 10, b"v" * (size - 10))] * 3000, partition=partition)

    found = batch_bytes(edge, topic, 500_000)

    assert sum(found) == 3_330_000
    assert max(found) <= 501_110
    assert len(found) <= 9


@pytest.mark.long("waits for the cleaner of a broker of its own")
def test_batches_behind_what_compaction_took(edge: Edge, stoppable_broker: Broker) -> None:
    """Offsets without messages cost no batch."""
    broker, edge = stoppable_broker, edge.at(stoppable_broker.servers)
    topic = broker.topic(1, cleanup_policy="compact", **SMALL_SEGMENTS)
    broker.produce(topic, *[("k", "v")] * 20_000)
    time.sleep(0.2)  # the next message is in a segment of its own
    broker.produce(topic, ("k", "v"))
    assert eventually(lambda: len(broker.messages(topic)) <= 2), "the last one of each part"
    broker.produce(topic, *((f"{n:010}", "v" * 990) for n in range(500)))

    found = batch_bytes(edge, topic, 100_000)

    assert sum(found) >= 500_000
    assert max(found) <= 101_000
    assert len(found) <= 8


def test_batches_between_markers_of_transactions(edge: Edge, broker: Broker) -> None:
    """Markers and aborted messages are offsets that a batch passes: it may be smaller, and never stands still."""
    if not edge.has_transactions:
        pytest.skip("the client has no transactions")
    topic = broker.topic()
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions()
    for is_aborted, count in [(True, 3000), (False, 1), (False, 1), (True, 10), (False, 50)] * 3:
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(topic, key=b"k" * 10, value=b"v" * 90)
            producer.poll(0)
        assert producer.flush(60) == 0
        producer.abort_transaction() if is_aborted else producer.commit_transaction()
    broker.wait_for_transactions(topic)

    found = batch_bytes(edge, topic, 1000)

    assert sum(found) == 3 * 52 * 100
    assert max(found) <= 1100
