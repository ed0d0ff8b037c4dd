"""Reads ranges with librdkafka."""

from __future__ import annotations

import atexit
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.connections.pool import Pool
from pyspark_upsert_kafka.kafka.librdkafka.admin_requests import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.batch_consumer import (
    BatchConsumer,
    BatchFetcher,
    can_take,
)
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.librdkafka.fetcher import Connection, LibrdkafkaFetcher
from pyspark_upsert_kafka.kafka.librdkafka.library import takes
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.reading.fetcher import Fetcher
from pyspark_upsert_kafka.kafka.reading.pooled_reader import (
    LARGE_FETCH,
    MEDIUM_FETCH,
    SMALL_FETCH,
    PooledReader,
)

_CONFIG = {
    "group.id": "pyspark-upsert-kafka",  # librdkafka wants one; nothing is ever committed to it here
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "check.crcs": True,  # the Java client's default
    # Only the end-of-partition event tells that trailing transaction markers were passed.
    "enable.partition.eof": True,
    # Its default of a second stalls a reader that drains its queue.
    "fetch.queue.backoff.ms": 2,
    # A fetch at the end of the log holds the end-of-partition event back for this long.
    "fetch.wait.max.ms": 20,
}

_FETCHES: dict[int, dict[str, Any]] = {
    # One fetch is to be all: the next one is sent a little after its messages were taken, by when the range has ended. One
    # at the end of the log would hold up the next range, which is fetched over the same connection.
    SMALL_FETCH: {"queued.min.messages": 1, "fetch.queue.backoff.ms": 2, "fetch.wait.max.ms": 5},
    MEDIUM_FETCH: {"queued.max.messages.kbytes": 512},
    # What is fetched but not yet taken is better small enough for the processor's cache.
    LARGE_FETCH: {"queued.max.messages.kbytes": 16 * 1024},
}

POOL: Pool[Connection] = Pool(lambda connection: connection.consumer.close())
"""Consumers of confluent-kafka."""

BATCH_POOL: Pool[Connection] = Pool(lambda connection: connection.consumer.close())
"""Instances of `BatchConsumer`, where that can be used."""
atexit.register(BATCH_POOL.close_idle)


class LibrdkafkaReader(PooledReader[Connection]):
    """Reads ranges, each with a consumer that nobody else uses meanwhile."""

    @property
    def _pool(self) -> Pool[Connection]:  # type: ignore[override]
        return BATCH_POOL if can_take(self._settings.details) else POOL

    def _admin(self) -> AbstractContextManager[AdminRequests]:
        return pooled_admin(self._properties, "reader", self._settings.outage_s)

    def _connect(self, fetch_bytes: int) -> Connection:
        ours = {**_CONFIG, "max.partition.fetch.bytes": fetch_bytes, **_FETCHES[fetch_bytes]}
        config = client_config(self._properties, "reader", ours)
        errors = ReportedErrors(config)
        config["allow.auto.create.topics"] = False  # what was planned is there, or is lost
        if can_take(self._settings.details) and takes(config):
            opening = partial(BatchConsumer, errors=errors)
            return Connection(open_client(opening, config), errors)
        config["error_cb"] = errors.on_error
        return Connection(open_client(ck.Consumer, config), errors)

    def _fetcher(self, client: Connection, range_: Range) -> Fetcher:
        in_batches = isinstance(client.consumer, BatchConsumer)
        kind = BatchFetcher if in_batches else LibrdkafkaFetcher
        return kind(client, range_, details=self._settings.details)
