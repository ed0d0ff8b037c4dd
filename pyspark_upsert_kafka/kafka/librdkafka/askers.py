"""Askers that are kept from task to task."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.asker import LibrdkafkaAsker
from pyspark_upsert_kafka.kafka.pool import Pool

POOL: Pool[LibrdkafkaAsker] = Pool(LibrdkafkaAsker.close)


def pooled_asker(properties: Properties, role: str) -> AbstractContextManager[LibrdkafkaAsker]:
    """An asker with these properties, kept for the next task."""
    return POOL.client((properties.resolved(), role), lambda: LibrdkafkaAsker(properties, role))
