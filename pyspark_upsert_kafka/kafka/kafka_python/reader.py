"""Reads ranges with kafka-python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer

from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.connections.outage import Outage
from pyspark_upsert_kafka.kafka.connections.pool import Pool
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts
from pyspark_upsert_kafka.kafka.kafka_python.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts, retrying
from pyspark_upsert_kafka.kafka.kafka_python.fetcher import KafkaPythonFetcher
from pyspark_upsert_kafka.kafka.kafka_python.headers import lenient, with_lenient_batches
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    client_config,
    create_no_topics,
    open_client,
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
        return consumer

    def _fetcher(self, client: KafkaConsumer, range_: Range) -> Fetcher:
        # What was planned is there, or is lost; kafka-python-ng forgets this with each assignment.
        create_no_topics(client._client.cluster)  # noqa: SLF001
        return KafkaPythonFetcher(client, self._admin, range_, details=self._settings.details)


def without_markers(consumer: KafkaConsumer) -> None:
    """Has this consumer pass over transaction markers, and its position with it.

    A batch's attributes say that it is a marker, and only the consumer's fetcher sees batches; the
    versions of which this is known are those that `installed` lets through.
    """
    fetcher = consumer._fetcher  # noqa: SLF001
    unpack = fetcher._unpack_message_set  # noqa: SLF001
    assignment = consumer._subscription.assignment  # noqa: SLF001

    def unpack_messages(tp: Any, records: Any) -> Iterator[Any]:
        yield from unpack(tp, _Messages(records))
        if assignment[tp].last_offset_from_message_batch == 0:
            assignment[tp].last_offset_from_message_batch = _ZERO

    fetcher._unpack_message_set = unpack_messages  # noqa: SLF001


@dataclass(frozen=True)
class _Marker:
    """Of a transaction marker what the position needs to pass it."""

    base_offset: int
    last_offset_delta: int

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _Messages:
    """Batches of records of which none is a transaction marker, or corrupt for the sake of a header."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        """The next batch; None at the end."""
        batch = self._records.next_batch()
        if getattr(batch, "is_control_batch", False):  # batches of before Kafka 0.11 do not have it
            return _Marker(batch.base_offset, batch.last_offset_delta)
        return lenient(batch)


class _Zero(int):
    """A last offset of 0, which kafka-python-ng otherwise takes for none and never passes."""

    def __bool__(self) -> bool:
        return True


_ZERO = _Zero(0)
