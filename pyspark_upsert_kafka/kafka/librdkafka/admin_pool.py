"""Admin connections that are kept from task to task."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.admin_requests import LibrdkafkaAdmin
from pyspark_upsert_kafka.kafka.pool import Pool

POOL: Pool[LibrdkafkaAdmin] = Pool(LibrdkafkaAdmin.close)


def pooled_admin(
    properties: Properties, role: str, outage_s: float = 0.0
) -> AbstractContextManager[LibrdkafkaAdmin]:
    """An admin connection with these properties, kept for the next task."""

    def connect() -> LibrdkafkaAdmin:
        admin = LibrdkafkaAdmin(properties, role)
        admin.outage.limit_s = outage_s
        return admin

    return POOL.client((properties.resolved(), role, outage_s), connect)
