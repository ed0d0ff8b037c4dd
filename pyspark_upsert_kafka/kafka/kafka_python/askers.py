"""Who asks: the asker of the library that is installed."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.kafka_python.asker import PatientAsker
from pyspark_upsert_kafka.kafka.kafka_python.installed import SUCCESSOR
from pyspark_upsert_kafka.kafka.pool import Pool

POOL: Pool[PatientAsker] = Pool(lambda asker: asker.close())


def pooled_asker(properties: Properties, role: str) -> AbstractContextManager[PatientAsker]:
    """An asker with these properties, kept for the next task."""
    return POOL.client((properties.resolved(), role), lambda: asker_for(properties, role))


def asker_for(properties: Properties, role: str) -> PatientAsker:
    """An asker with these properties."""
    if SUCCESSOR:
        from pyspark_upsert_kafka.kafka.kafka_python.asker_successor import SuccessorAsker

        return SuccessorAsker(properties, role)
    from pyspark_upsert_kafka.kafka.kafka_python.asker_ng import NgAsker

    return NgAsker(properties, role)
