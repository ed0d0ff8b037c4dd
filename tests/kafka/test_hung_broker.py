"""A broker that hangs: its connections stay open, and nothing comes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import Broker
from tests.kafka.conftest import Edge, hung, messages, numbered

pytestmark = pytest.mark.long("waits while a broker hangs")


def test_all_goes_on_when_the_broker_does(
    stoppable: LocalKafka, stoppable_broker: Broker, edge: Edge
) -> None:
    """It hangs for longer than a request may take, in the middle of a read, of a write and of an admin request."""
    source, target = stoppable_broker.topic(), stoppable_broker.topic()
    stoppable_broker.produce(source, *[(b"k", b"x" * 1000)] * 60_000)
    edge = edge.at(stoppable.bootstrap_servers)
    short_timeouts = edge.given({"request.timeout.ms": 2_000})
    with short_timeouts.sender(target) as sender, short_timeouts.cluster() as cluster:
        batches = short_timeouts.batches(Range(source, 0, 0, 60_000), details=frozenset())
        first = next(batches)
        sender.send(messages(target, *numbered(1_000)))
        with ThreadPoolExecutor() as pool:
            with hung(stoppable):
                rest = pool.submit(list, batches)
                sender.send(messages(target, *numbered(1_000, 1_000)))
                written = pool.submit(sender.flush)
                view = pool.submit(short_timeouts.view, cluster, source)
                time.sleep(5)
            written.result()

    offsets = [offset for batch in (first, *rest.result()) for offset in batch.offsets]
    found = stoppable_broker.pairs(target)
    assert offsets == list(range(60_000))
    assert list(dict.fromkeys(found)) == numbered(2_000)
    assert len(found) == 2_000 or not edge.has_transactions
    assert [bounds.latest for bounds in view.result().bounds.values()] == [60_000]


def test_a_broker_that_hangs_for_ever_is_an_error(
    stoppable: LocalKafka, stoppable_broker: Broker, edge: Edge
) -> None:
    """Admin requests, writing and reading end within the configured times, and say what they waited for."""
    topic = stoppable_broker.topic()
    stoppable_broker.produce(topic, *[(b"k", b"x" * 1000)] * 60_000)
    small = {"request.timeout.ms": 2_000, "default.api.timeout.ms": 6_000}
    edge = edge.at(stoppable.bootstrap_servers).given({**small, "delivery.timeout.ms": 6_000})
    with edge.sender(topic) as sender, edge.cluster() as cluster, ThreadPoolExecutor() as pool:
        batches = edge.batches(Range(topic, 0, 0, 60_000), details=frozenset())
        next(batches)
        # kafka-python 3 asks for a topic's partitions when something is first sent to it.
        sender.send(messages(topic, (b"before", b"")))
        sender.flush()
        with hung(stoppable):
            sender.send(messages(topic, *numbered(10)))
            asked = pool.submit(cluster.topics, Topics((topic,)))
            written = pool.submit(sender.flush)
            read = pool.submit(list, batches)
            not_answered, not_delivered, not_read = (
                each.exception() for each in (asked, written, read)
            )

    assert isinstance(not_answered, BrokerError)
    assert edge.servers in str(not_answered)
    assert isinstance(not_delivered, DeliveryError)
    assert (not_delivered.topic, not_delivered.key) == (topic, b"key 0")
    assert isinstance(not_read, BrokerError)
    assert f"'{topic}', partition 0" in str(not_read)
