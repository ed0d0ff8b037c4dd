"""A topic that gets more partitions while producers wait in the pool."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from tests.conftest import Broker
from tests.kafka.conftest import CLIENTS, Edge, messages, numbered

pytestmark = pytest.mark.long(
    "waits for what a producer asks once a second, and for a broker that restarts"
)


@pytest.fixture(params=[*CLIENTS, "librdkafka in batches"])
def edge(request: pytest.FixtureRequest, broker: Broker) -> Edge:
    """Each way to send, over the broker that tests share."""
    client, _, batches = request.param.partition(" in ")
    return Edge(client, broker.servers, with_metadata=not batches)


def test_a_producer_that_waited_knows_new_partitions(broker: Broker, edge: Edge) -> None:
    """The next task's keys go where every other producer puts them, not where they went before."""
    topic = broker.topic(2)
    edge.send(topic, *numbered(200))
    broker.grow(topic, 7)
    time.sleep(1.0)  # the producer waits for its next task

    with edge.sender(topic) as sender:
        sender.send(messages(topic, *numbered(200)))
        sender.flush()

    found = broker.messages(topic)
    assert len(found) == 400
    expected = [(key, partition_of(key, 7)) for key, _ in numbered(200)]
    assert set(expected) <= {(each.key, each.partition) for each in found}
    before = {(key, partition_of(key, 2)) for key, _ in numbered(200)}
    assert {(each.key, each.partition) for each in found} == before | set(expected)


def test_a_producer_that_waited_knows_new_partitions_after_an_outage(
    stoppable: LocalKafka, stoppable_broker: Broker, edge: Edge
) -> None:
    """While no broker says how many there are by now, nothing goes where it went before."""
    topic, edge = stoppable_broker.topic(2), edge.at(stoppable.bootstrap_servers)
    edge.send(topic, *numbered(200))
    stoppable_broker.grow(topic, 7)
    stoppable.stop()
    time.sleep(1.0)  # the producer waits for its next task
    with ThreadPoolExecutor() as pool:
        sent = pool.submit(edge.send, topic, *((key, b"later") for key, _ in numbered(200)))
        time.sleep(8.0)  # nobody answers when the producer asks
        stoppable.start()
        sent.result()

    found = [each for each in stoppable_broker.messages(topic) if each.value == b"later"]
    expected = sorted((key, partition_of(key, 7)) for key, _ in numbered(200))
    assert sorted((each.key, each.partition) for each in found) == expected
