"""Reads ranges with librdkafka; a consumer is opened at the first and kept for the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.kafka.librdkafka.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.librdkafka.fetcher import Connection, LibrdkafkaFetcher
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.pool import Pool
from pyspark_upsert_kafka.kafka.range_fetch import RangeFetch
from pyspark_upsert_kafka.kafka.sizes import LARGE_FETCH, MEDIUM_FETCH, SMALL_FETCH, FetchSizes
from pyspark_upsert_kafka.kafka.timeouts import message_timeout_s

_CONFIG = {
    "group.id": "pyspark-upsert-kafka",  # librdkafka wants one; nothing is ever committed to it here
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    # Only the end-of-partition event tells that trailing transaction markers were passed.
    "enable.partition.eof": True,
    # Its default of a second stalls a reader that drains its queue.
    "fetch.queue.backoff.ms": 2,
    # A fetch at the end of the log holds the end-of-partition event back for this long.
    "fetch.wait.max.ms": 20,
}

_FETCHES: dict[int, dict[str, Any]] = {
    # One fetch is to be all: the next one is not sent before its messages were taken, and then a little later.
    SMALL_FETCH: {"queued.min.messages": 1, "fetch.queue.backoff.ms": 10},
    MEDIUM_FETCH: {"queued.max.messages.kbytes": 512},
    # What is fetched but not yet taken is better small enough for the processor's cache.
    LARGE_FETCH: {"queued.max.messages.kbytes": 16 * 1024},
}

_SIZES = FetchSizes()


POOL: Pool[Connection] = Pool(lambda connection: connection.consumer.close())


class LibrdkafkaReader:
    """Reads ranges, each with a consumer that nobody else uses meanwhile.

    Args:
        properties: The client's properties.
        committed: Whether messages of open and aborted transactions stay unseen.
        fail_on_data_loss: Whether lost offsets are an error; else they are one warning.
        details: Whether timestamps, headers and leader epochs are taken out too.
    """

    def __init__(
        self, properties: Properties, *, committed: bool, fail_on_data_loss: bool, details: bool
    ) -> None:
        level = "read_committed" if committed else "read_uncommitted"
        self._properties = Properties({**properties, "isolation.level": level})
        self._fail_on_data_loss = fail_on_data_loss
        self._details = details

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of the range, in batches."""
        properties = self._properties.resolved()
        # Whoever reads no further leaves fetches under way, and the pool closes the connection.
        fetch_bytes = _SIZES.choose(range_, self._properties)
        settings = (properties, fetch_bytes)
        with POOL.client(settings, partial(self._connect, fetch_bytes)) as connection:
            admin = partial(pooled_admin, self._properties, "reader")
            fetcher = LibrdkafkaFetcher(connection, admin, range_, details=self._details)
            fetch = RangeFetch(
                fetcher,
                range_,
                self._properties["bootstrap.servers"],
                fail_on_data_loss=self._fail_on_data_loss,
                timeout_s=message_timeout_s(properties),
            )
            yield from fetch.batches()
            fetcher.close()
            if range_.size:
                _SIZES.learn(range_, fetch.size_bytes)

    def _connect(self, fetch_bytes: int) -> Connection:
        errors = ReportedErrors()
        ours = {**_CONFIG, "max.partition.fetch.bytes": fetch_bytes, **_FETCHES[fetch_bytes]}
        config = client_config(self._properties, "reader", {**ours, "error_cb": errors.on_error})
        config["allow.auto.create.topics"] = False  # what was planned is there, or is lost
        return Connection(open_client(ck.Consumer, config), errors)
