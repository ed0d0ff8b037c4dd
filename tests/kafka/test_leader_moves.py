"""A partition changes its leader: reading, writing and asking follow it, each offset once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException

from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import Broker, broker_at
from tests.kafka.conftest import Edge, eventually, messages, node_hung, numbered
from tests.kafka.two_brokers import TwoBrokers

pytestmark = pytest.mark.long("stops brokers of a cluster of its own")

COUNT = 40_000


@pytest.fixture(scope="module")
def _two() -> Iterator[TwoBrokers]:
    brokers = TwoBrokers.started()
    yield brokers
    brokers.close()


@pytest.fixture
def two(_two: TwoBrokers) -> TwoBrokers:
    """Two brokers, both up."""
    _two.start(2)
    return _two


def filled(two: TwoBrokers) -> tuple[Broker, str]:
    """A topic that takes several fetches, led by the broker that may stop."""
    broker, topic = broker_at(two.servers), two.topic()
    broker.produce(topic, *[(b"k", b"x" * 500)] * COUNT)
    return broker, topic


def test_reading_follows_the_leader(two: TwoBrokers, edge: Edge) -> None:
    """Its broker stops in the middle of a range, comes back, and leads again in the middle of another."""
    _, topic = filled(two)
    edge = edge.at(two.servers)
    batches = edge.batches(Range(topic, 0, 0, COUNT), details=frozenset())
    offsets = list(next(batches).offsets)
    two.stop(2)
    offsets += [offset for batch in batches for offset in batch.offsets]

    assert offsets == list(range(COUNT))
    assert two.leader_and_replicas(topic)[0] == 1
    batches = edge.batches(Range(topic, 0, 0, COUNT), details=frozenset())
    offsets = list(next(batches).offsets)
    two.start(2)
    two.lead_by_second_again(topic)
    offsets += [offset for batch in batches for offset in batch.offsets]

    assert offsets == list(range(COUNT))


def test_writing_and_asking_follow_the_leader(two: TwoBrokers, edge: Edge) -> None:
    """Every message is there in order, and once where the client can; the bounds are true all the time."""
    broker, topic = broker_at(two.servers), two.topic()
    edge = edge.at(two.servers)
    with edge.sender(topic) as sender, edge.cluster() as cluster:
        sender.send(messages(topic, *numbered(1_000)))
        two.stop(2)
        sender.send(messages(topic, *numbered(1_000, 1_000)))
        sender.flush()
        assert edge.view(cluster, topic).bounds.popitem()[1].latest >= 2_000
        two.start(2)
        sender.send(messages(topic, *numbered(1_000, 2_000)))
        two.lead_by_second_again(topic)
        sender.send(messages(topic, *numbered(1_000, 3_000)))
        sender.flush()
        assert edge.view(cluster, topic).bounds.popitem()[1].latest >= 4_000

    found = broker.pairs(topic)
    assert list(dict.fromkeys(found)) == numbered(4_000)
    assert len(found) == 4_000 or not edge.has_transactions


def leader(two: TwoBrokers, topic: str) -> int:
    """Who leads the topic's partition, as the broker says that stays: a client that knows both may ask the other."""
    try:
        found = two.new_admin().list_topics(topic, timeout=5)
    except KafkaException:
        return -1
    return int(found.topics[topic].partitions[0].leader)


@pytest.mark.alone("asserts that all goes on in time")
def test_a_leader_that_hangs_is_not_waited_for(two: TwoBrokers, edge: Edge) -> None:
    """Reading, writing and planning go on within the request timeout and five seconds after another broker leads.

    A client that is opened then does so too.
    """
    _, topic = filled(two)
    request_s = 3
    times = {"request.timeout.ms": request_s * 1000, "default.api.timeout.ms": 60_000}
    edge = edge.at(two.servers).given({**times, "delivery.timeout.ms": 60_000})
    with edge.sender(topic) as sender, edge.cluster() as cluster, ThreadPoolExecutor() as pool:
        batches = edge.batches(Range(topic, 0, 0, COUNT), details=frozenset())
        offsets = list(next(batches).offsets)
        sender.send(messages(topic, *numbered(3)))
        sender.flush()
        edge.view(cluster, topic)
        with node_hung(two.nodes[1]):
            sender.send(messages(topic, *numbered(3, 3)))
            rest = pool.submit(list, batches)
            others = pool.submit(sender.flush), pool.submit(edge.view, cluster, topic)
            assert eventually(lambda: leader(two, topic) == 1)
            moved = time.monotonic()
            for each in (rest, *others):
                each.result()
            took_s = time.monotonic() - moved
            with edge.cluster() as another:
                edge.view(another, topic)
            opened_s = time.monotonic() - moved - took_s

    offsets += [offset for batch in rest.result() for offset in batch.offsets]
    assert offsets == list(range(COUNT))
    assert max(took_s, opened_s) < request_s + 5
