"""A query with nothing to do for long: brokers end connections that are idle, and so do networks."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.conftest import broker_at
from tests.kafka.conftest import Edge, eventually, messages, numbered

pytestmark = pytest.mark.long("has a broker of its own, and waits until it ends connections")


def test_idle_connections_may_be_ended_by_the_broker(
    own_kafka: Callable[..., LocalKafka], edge: Edge
) -> None:
    """What asks, reads and sends connects anew, and nothing is missing."""
    kafka = own_kafka(config={"connections.max.idle.ms": "1000"})
    edge, topic = edge.at(kafka.bootstrap_servers), broker_at(kafka.bootstrap_servers).topic()
    port = int(kafka.bootstrap_servers.partition(":")[2])

    def connections() -> set[int]:
        """Our ports of the connections to the broker that it has not ended."""
        mine = psutil.Process().net_connections("tcp")
        up = (each for each in mine if each.status == psutil.CONN_ESTABLISHED)
        return {each.laddr.port for each in up if each.raddr.port == port}

    with edge.cluster() as cluster, edge.sender(topic) as sender:
        for begin in (0, 10):
            sender.send(messages(topic, *numbered(10, begin)))
            sender.flush()
            assert edge.view(cluster, topic).bounds.popitem()[1].latest == begin + 10
            assert edge.offsets(Range(topic, 0, begin, begin + 10)) == [*range(begin, begin + 10)]
            open_now = connections()
            assert eventually(lambda: not (open_now & connections())), "all are ended"  # noqa: B023
