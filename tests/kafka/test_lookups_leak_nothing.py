"""Topics are looked up for each micro-batch, in processes that live for weeks."""

from __future__ import annotations

import gc

import confluent_kafka as ck

from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.cluster import LibrdkafkaCluster
from tests.conftest import Broker


def test_ids_of_topics_are_released(broker: Broker) -> None:
    """confluent-kafka keeps the id of each description that it has given; we release it."""
    topic, before = broker.topic(), ids_in_memory()
    admin = LibrdkafkaCluster(Properties({"bootstrap.servers": broker.servers}), "test")
    try:
        ids = {admin.existing([topic])[topic].id for _ in range(50)}
        kept = ids_in_memory() - before
    finally:
        admin.close()

    assert len(ids) == 1
    assert kept < 10


def ids_in_memory() -> int:
    """How many ids of topics this process holds; other tests leave some."""
    gc.collect()
    return sum(isinstance(each, ck.Uuid) for each in gc.get_objects())
