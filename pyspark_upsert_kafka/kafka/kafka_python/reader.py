"""Reads ranges with kafka-python; a consumer is opened at the first and kept for the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kafka import KafkaConsumer

from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.kafka.kafka_python.admin_pool import pooled_admin
from pyspark_upsert_kafka.kafka.kafka_python.errors import connect_timeouts, retrying
from pyspark_upsert_kafka.kafka.kafka_python.fetcher import KafkaPythonFetcher
from pyspark_upsert_kafka.kafka.kafka_python.headers import with_lenient_batches
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3, no_read_committed
from pyspark_upsert_kafka.kafka.kafka_python.properties import (
    client_config,
    create_no_topics,
    open_client,
)
from pyspark_upsert_kafka.kafka.pool import Pool
from pyspark_upsert_kafka.kafka.range_fetch import RangeFetch
from pyspark_upsert_kafka.kafka.sizes import FetchSizes
from pyspark_upsert_kafka.kafka.timeouts import Timeouts, message_timeout_s

_CONFIG = {
    "request_timeout_ms": 30_000,
    "reconnect_backoff_max_ms": 1_000,
    # A fetch at the end of the log tells only after this that there is no more.
    "fetch_max_wait_ms": 20,
}

_SIZES = FetchSizes()

POOL: Pool[KafkaConsumer] = Pool(lambda consumer: consumer.close(autocommit=False))


class KafkaPythonReader:
    """Reads ranges, each with a consumer that nobody else uses meanwhile.

    Args:
        properties: The client's properties.
        committed: Whether messages of open and aborted transactions stay unseen.
        fail_on_data_loss: Whether lost offsets are an error; else they are one warning.
        details: Whether timestamps, headers and leader epochs are taken out too.

    Raises:
        OptionError: The installed library cannot tell aborted messages.
    """

    def __init__(
        self, properties: Properties, *, committed: bool, fail_on_data_loss: bool, details: bool
    ) -> None:
        if committed and not IS_KAFKA_PYTHON_3:
            raise no_read_committed()
        level = "read_committed" if committed else "read_uncommitted"
        self._properties = Properties({**properties, "isolation.level": level})
        self._fail_on_data_loss = fail_on_data_loss
        self._details = details

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of the range, in batches."""
        properties = self._properties.resolved()
        # Whoever reads no further leaves fetches under way, and the pool closes the consumer.
        fetch_bytes = _SIZES.choose(range_, self._properties)
        settings = (properties, fetch_bytes)
        with POOL.client(settings, partial(self._connect, fetch_bytes)) as consumer:
            # What was planned is there, or is lost; kafka-python-ng forgets this with each assignment.
            create_no_topics(consumer._client.cluster)  # noqa: SLF001
            admin = partial(pooled_admin, self._properties, "reader")
            fetcher = KafkaPythonFetcher(consumer, admin, range_, details=self._details)
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
        consumer = retrying(servers, times, errors).call("connect", connect)
        if IS_KAFKA_PYTHON_3:
            with_lenient_batches(consumer)
        else:
            from pyspark_upsert_kafka.kafka.kafka_python.markers_ng import without_markers

            without_markers(consumer)
        return consumer
