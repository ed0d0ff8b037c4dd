"""Brokers that are all away, for longer than any answer is waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.conftest import Broker
from tests.kafka.conftest import Edge, hung, numbered

pytestmark = pytest.mark.long("waits out outages of brokers")

SHORT = {"request.timeout.ms": 2_000, "default.api.timeout.ms": 4_000}


@pytest.fixture
def edge(edge: Edge, stoppable: LocalKafka) -> Edge:
    """The seam over the broker that can be stopped, which has four seconds for an answer."""
    return edge.at(stoppable.bootstrap_servers).given(SHORT)


def batches(edge: Edge, range_: Range, outage_s: float) -> Iterator[RawBatch]:
    """The batches of a range, as a task of a stream reads them."""
    settings = ReadSettings(
        edge.all_properties(), edge.has_transactions, fail_on_data_loss=True, outage_s=outage_s
    )
    return load_client(edge.client).reader(settings).read(range_)


@pytest.mark.parametrize("is_hung", [False, True])
def test_a_request_waits_until_a_broker_is_back(
    stoppable: LocalKafka, stoppable_broker: Broker, edge: Edge, is_hung: bool
) -> None:
    """A connection that has waited out outages asks on; the answer is that of the broker after it."""
    topic = stoppable_broker.topic()
    with edge.cluster() as cluster, ThreadPoolExecutor() as pool:
        edge.view(cluster, topic)
        cluster.wait_out(600.0)
        if is_hung:
            with hung(stoppable):
                asked = pool.submit(edge.view, cluster, topic)
                time.sleep(9)
        else:
            stoppable.stop()
            asked = pool.submit(edge.view, cluster, topic)
            time.sleep(9)
            assert not asked.done()
            stoppable.start()
        view = asked.result()
        stoppable_broker.produce(topic, *numbered(3))
        after = edge.view(cluster, topic)

    assert [each.latest for each in view.bounds.values()] == [0]
    assert [each.latest for each in after.bounds.values()] == [3]


def test_a_range_is_read_on_after_an_outage(
    stoppable: LocalKafka, stoppable_broker: Broker, edge: Edge
) -> None:
    """Each offset once: in the middle of a range, and before its first message."""
    topic = stoppable_broker.topic()
    stoppable_broker.produce(topic, *[(b"k", b"x" * 1000)] * 60_000)
    range_ = Range(topic, 0, 0, 60_000, edge.topic_id(topic))
    with ThreadPoolExecutor() as pool:
        begun = batches(edge, range_, 600.0)
        first = next(begun)
        stoppable.stop()
        rest = pool.submit(list, begun)
        other = pool.submit(list, batches(edge, range_, 600.0))
        time.sleep(20)
        assert not rest.done()
        assert not other.done()
        stoppable.start()
        found = [first, *rest.result()]
        others = other.result()

    for parts in (found, others):
        assert [offset for batch in parts for offset in batch.offsets] == list(range(60_000))


def test_an_outage_that_lasts_too_long_is_an_error(
    stoppable: LocalKafka, stoppable_broker: Broker, edge: Edge
) -> None:
    """It says how long brokers were waited for, and which option says so."""
    topic = stoppable_broker.topic()
    stoppable_broker.produce(topic, *[(b"k", b"x" * 1000)] * 60_000)
    range_ = Range(topic, 0, 0, 60_000, edge.topic_id(topic))
    begun = batches(edge, range_, 7.0)
    next(begun)
    with edge.cluster() as cluster:
        cluster.wait_out(7.0)
        stoppable.stop()

        told = r"has answered for 7 seconds, the time of 'scan\.outage\.timeout'"
        with pytest.raises(BrokerError, match=told):
            edge.view(cluster, topic)
        with pytest.raises(BrokerError, match=told):
            list(begun)
