"""Admin connections by the library that is installed, kept from task to task."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import KafkaPythonAdmin
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.pool import Pool

POOL: Pool[KafkaPythonAdmin] = Pool(lambda admin: admin.close())


def pooled_admin(
    properties: Properties, role: str, outage_s: float = 0.0
) -> AbstractContextManager[KafkaPythonAdmin]:
    """An admin connection with these properties, kept for the next task."""

    def connect() -> KafkaPythonAdmin:
        admin = open_admin(properties, role)
        admin.outage.limit_s = outage_s
        return admin

    return POOL.client((properties.resolved(), role, outage_s), connect)


def open_admin(properties: Properties, role: str) -> KafkaPythonAdmin:
    """A new admin connection with these properties."""
    if IS_KAFKA_PYTHON_3:
        from pyspark_upsert_kafka.kafka.kafka_python.admin_requests_v3 import KafkaPython3Admin

        return KafkaPython3Admin(properties, role)
    from pyspark_upsert_kafka.kafka.kafka_python.admin_requests_ng import KafkaPythonNgAdmin

    return KafkaPythonNgAdmin(properties, role)
