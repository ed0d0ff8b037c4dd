"""One worker reads many topics, one after another."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import Broker
from tests.kafka.conftest import Edge, eventually, messages, open_things, own_messages, received

TOPICS, PARTITIONS = 60, 10


@contextmanager
def made(broker: Broker, count: int, partitions: int) -> Iterator[list[str]]:
    """Topics for a while: a broker is slow in keeping as many partitions for all later tests."""
    prefix = uuid.uuid4().hex[:8]
    names = [f"many-{prefix}-{number}" for number in range(count)]
    for future in broker.admin.create_topics(
        [NewTopic(name, partitions) for name in names]
    ).values():
        future.result()
    try:
        assert eventually(lambda: set(names) <= set(broker.admin.list_topics(timeout=10).topics))
        yield names
    finally:
        broker.admin.delete_topics(names)


def one_message_each(broker: Broker, topics: list[str]) -> None:
    """Writes a message to each of the topics."""
    plain = Edge("librdkafka", broker.servers, with_metadata=False)
    with plain.sender(*topics) as sender:
        sender.send(messages(topics, *[(b"k", b"v") for _ in topics]))
        sender.flush()


def ranges_of(edge: Edge, topics: list[str]) -> list[Range]:
    """All that is in the topics."""
    with edge.cluster() as cluster:
        view = edge.view(cluster, *topics)
    return [
        Range(*tp, 0, bounds.latest, view.topic_ids[tp.topic])
        for tp, bounds in sorted(view.bounds.items())
        if bounds.latest
    ]


def connections() -> int:
    """The connections that this process has to brokers."""
    found = psutil.Process().net_connections("tcp")
    return sum(each.status == psutil.CONN_ESTABLISHED for each in found)


@pytest.mark.alone("counts the bytes, threads, descriptors and connections of this process")
@pytest.mark.parametrize("details", [frozenset(), ALL_DETAILS], ids=["columns", "objects"])
def test_a_topic_costs_the_same_however_many_were_read_before(
    broker: Broker, edge: Edge, details: frozenset[Detail]
) -> None:
    """No lookup of librdkafka asks for those before, and there is no thread, descriptor or connection for each of them.

    kafka-python asks for all topics now and then, whatever was read.
    """
    reads = replace(edge, details=details)
    with made(broker, TOPICS, PARTITIONS) as topics:
        one_message_each(broker, topics)
        ranges = ranges_of(reads, topics)
        third = len(ranges) // 3
        seen = []
        for part in (ranges[:third], ranges[third:-third], ranges[-third:]):
            before = received()
            assert [reads.offsets(each) for each in part] == [[0]] * len(part)
            now = received()
            size = sum(count - before.get(port, 0) for port, count in now.items())
            seen.append((size, connections(), *open_things()))

    (size_then, *things_then), _, (size_now, *things_now) = seen
    assert len(ranges) == TOPICS
    assert edge.client == "kafka-python" or size_now < 2 * size_then, seen
    assert all(now <= then + 2 for now, then in zip(things_now, things_then, strict=True)), seen


@pytest.mark.alone("measures how long ten lost partitions take")
def test_a_topic_that_is_gone_is_waited_for_once(
    broker: Broker, edge: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    """And not ten seconds for each of its partitions; a broker that creates topics does not create it again."""
    with made(broker, 2, PARTITIONS) as (gone, other):
        one_message_each(broker, [gone, other])
        ids = [edge.topic_id(topic) for topic in (gone, other)]
        assert edge.offsets(ranges_of(edge, [other])[0]) == [0]
        broker.admin.delete_topics([gone])[gone].result()
        assert eventually(lambda: gone not in broker.admin.list_topics(timeout=10).topics)
        begun = time.monotonic()
        with caplog.at_level(logging.WARNING):
            for partition in range(PARTITIONS):
                lost = Range(gone, partition, 0, 1, ids[0])
                assert edge.offsets(lost, fail_on_data_loss=False) == []
        took = time.monotonic() - begun

        assert edge.offsets(ranges_of(edge, [other])[0]) == [0]
        assert gone not in broker.admin.list_topics(timeout=10).topics
    assert len(own_messages(caplog)) == PARTITIONS
    assert 10 < took < 10 * PARTITIONS
