"""A broker that restarts again and again, on a machine that has no time for anybody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.busy import busy_machine
from tests.conftest import broker_at, options
from tests.kafka.conftest import CLIENTS, Edge
from tests.spark.conftest import eventually
from tests.spark.streams import message, read, running

pytestmark = pytest.mark.long("ten restarts of a broker on a machine that is kept busy")

RESTARTS = 10


def use_until(done: threading.Event, edge: Edge, topic: str) -> int:
    """Writes, asks and reads in turn, each over clients that have seen every restart; how often."""
    rounds = 0
    with edge.cluster() as cluster:
        while rounds < 2 or not done.is_set():
            edge.send(topic, (b"key", b"%d" % rounds))
            (bounds,) = edge.view(cluster, topic).bounds.values()
            last = Range(topic, 0, bounds.latest - 1, bounds.latest)
            assert edge.values(last) == [b"%d" % rounds]
            rounds += 1
            time.sleep(0.5)
    return rounds


def test_everything_outlives_ten_restarts_in_a_row(
    spark: SparkSession, own_kafka: Callable[..., LocalKafka], tmp_path: Path
) -> None:
    """A stream, and both clients in each role, while other processes hold every core."""
    kafka = own_kafka()
    broker = broker_at(kafka.bootstrap_servers)
    source, target = broker.topic(2), broker.topic(2)
    writer = read(spark, broker, source).writeStream.format("upsert-kafka")
    given = options(broker, target, **{"properties.delivery.timeout.ms": 900_000})
    given["checkpointLocation"] = str(tmp_path)
    # Ten restarts may take longer than messages have to be delivered.
    patient = {"delivery.timeout.ms": 900_000}
    edges = [Edge(client, broker.servers).given(patient) for client in CLIENTS]
    done = threading.Event()
    with (
        busy_machine(),
        running(writer.options(**given).start()) as query,
        ThreadPoolExecutor(len(edges)) as pool,
    ):
        try:
            rounds = [pool.submit(use_until, done, edge, broker.topic()) for edge in edges]
            for number in range(RESTARTS):
                kafka.stop()
                kafka.start()
                edges[number % 2].send(source, tuple(map(str.encode, message(number))))
        finally:
            done.set()
        assert all(each.result() for each in rounds)
        sent = {message(number)[0].encode() for number in range(RESTARTS)}
        eventually(
            lambda: (
                query.exception() is not None or {key for key, _ in broker.pairs(target)} == sent
            ),
            "every row is in the target",
        )
        assert query.exception() is None
