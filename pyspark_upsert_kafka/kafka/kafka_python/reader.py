"""Reads ranges with kafka-python."""

from __future__ import annotations

from contextlib import AbstractContextManager

from kafka import KafkaConsumer

from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.connections.outage import Outage
from pyspark_upsert_kafka.kafka.connections.pool import Pool
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts, retrying
from pyspark_upsert_kafka.kafka.kafka_python.fetcher import KafkaPythonFetcher
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    client_config,
    create_no_topics,
    open_client,
)
from pyspark_upsert_kafka.kafka.kafka_python.record_batches import (
    with_lenient_batches,
    with_null_records,
    without_markers,
)
from pyspark_upsert_kafka.kafka.reading.fetcher import Fetcher
from pyspark_upsert_kafka.kafka.reading.pooled_reader import PooledReader

_CONFIG = {
    "request_timeout_ms": 30_000,
    "reconnect_backoff_max_ms": 1_000,
    # A fetch at the end of the log tells only after this that there is no more.
    "fetch_max_wait_ms": 20,
}

POOL: Pool[KafkaConsumer] = Pool(lambda consumer: consumer.close(autocommit=False))


class KafkaPythonReader(PooledReader[KafkaConsumer]):
    """Reads ranges, each with a consumer that nobody else uses meanwhile."""

    _pool = POOL

    def _admin(self) -> AbstractContextManager[AdminRequests]:
        return pooled_admin(self._properties, "reader", self._settings.outage_s)

    def _connect(self, fetch_bytes: int) -> KafkaConsumer:
        ours = {**_CONFIG, "max_partition_fetch_bytes": fetch_bytes}
        config = client_config(self._properties, "reader", ours)
        servers = str(config["bootstrap_servers"])
        config |= {
            "auto_offset_reset": "none",
            "enable_auto_commit": False,
            "group_id": None,
        }

        def connect(timeout: float) -> KafkaConsumer:
            return open_client(KafkaConsumer, {**config, **connect_timeouts(timeout)})

        errors = config["client_id"].errors
        times = Timeouts.from_properties(self._properties.resolved())
        outage = Outage(self._settings.outage_s)
        consumer = retrying(servers, times, errors, outage=outage).call("connect", connect)
        if IS_KAFKA_PYTHON_3:
            with_lenient_batches(consumer)
        else:
            without_markers(consumer)
        with_null_records(consumer)
        return consumer

    def _fetcher(self, client: KafkaConsumer, range_: Range) -> Fetcher:
        # What was planned is there, or is lost; kafka-python-ng forgets this with each assignment.
        create_no_topics(client._client.cluster)  # noqa: SLF001
        return KafkaPythonFetcher(client, self._admin, range_, details=self._settings.details)
