"""The calls of a transaction, for a producer that takes messages by the batch."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka.librdkafka.batch_producer import (
    QUEUED_AND_IN_FLIGHT,
    BatchProducer,
)
from pyspark_upsert_kafka.kafka.librdkafka.delivery_reports import DeliveryReports
from pyspark_upsert_kafka.kafka.librdkafka.library import PartitionOffset

_REPORTS_S = 0.05
"""How long reports are waited for at once."""

_NON_BLOCKING = 4


class TransactionalBatchProducer(BatchProducer):
    """A `BatchProducer` with the calls that confluent-kafka's producer has for a transaction.

    Args:
        config: librdkafka's configuration, with a transactional id, and a ``logger``.
        reports: Where it reports to.

    Raises:
        KafkaException: The configuration is wrong; each call raises it where librdkafka refuses.
    """

    def __init__(self, config: Mapping[str, Any], reports: DeliveryReports) -> None:
        super().__init__(config, reports)
        # A call may be stuck in another thread when Python ends, and must not lose its producer.
        self._ending.atexit = False

    def init_transactions(self, timeout_s: float) -> None:
        """Fences off whatever had the id before."""
        self._check(self._library.rd_kafka_init_transactions(self._handle, _ms(timeout_s)))

    def begin_transaction(self) -> None:
        """Begins the transaction."""
        self._check(self._library.rd_kafka_begin_transaction(self._handle))

    def send_offsets_to_transaction(
        self, partitions: Sequence[ck.TopicPartition], group: str, timeout_s: float
    ) -> None:
        """Adds offsets, with their metadata, of a consumer group that nobody has joined."""
        found = self._library
        offsets = found.rd_kafka_topic_partition_list_new(len(partitions))
        metadata = found.rd_kafka_consumer_group_metadata_new(group.encode())
        try:
            for each in partitions:
                place = (offsets, each.topic.encode(), each.partition)
                added = found.rd_kafka_topic_partition_list_add(*place)
                found.rd_kafka_topic_partition_list_set_offset(*place, each.offset)
                _set_metadata(found, added, each.metadata)
            arguments = self._handle, offsets, metadata, _ms(timeout_s)
            self._check(found.rd_kafka_send_offsets_to_transaction(*arguments))
        finally:
            found.rd_kafka_consumer_group_metadata_destroy(metadata)
            found.rd_kafka_topic_partition_list_destroy(offsets)

    def commit_transaction(self, timeout_s: float) -> None:
        """Commits it; every message was confirmed before."""
        self._check(self._library.rd_kafka_commit_transaction(self._handle, _ms(timeout_s)))

    def abort_transaction(self, timeout_s: float) -> None:
        """Aborts it; librdkafka waits until what it says of each message that it drops was taken."""
        ended = threading.Event()
        reports = threading.Thread(target=self._poll_until, args=(ended,), daemon=True)
        reports.start()
        try:
            self._check(self._library.rd_kafka_abort_transaction(self._handle, _ms(timeout_s)))
        finally:
            ended.set()
            reports.join()

    def purge(self, *, blocking: bool = True) -> None:
        """Drops what is unsent, and waits for that unless a call is stuck."""
        flags = QUEUED_AND_IN_FLIGHT | (0 if blocking else _NON_BLOCKING)
        self._library.rd_kafka_purge(self._handle, flags)

    def _poll_until(self, ended: threading.Event) -> None:
        while not ended.is_set():
            self.poll(_REPORTS_S)

    def _check(self, error: int | None) -> None:
        """Raises the error that a call has given, if it has."""
        if error is None:
            return
        found = self._library
        try:
            raise ck.KafkaException(
                ck.KafkaError(
                    found.rd_kafka_error_code(error),
                    found.rd_kafka_error_string(error).decode(errors="replace"),
                    bool(found.rd_kafka_error_is_fatal(error)),
                    bool(found.rd_kafka_error_is_retriable(error)),
                    bool(found.rd_kafka_error_txn_requires_abort(error)),
                )
            )
        finally:
            found.rd_kafka_error_destroy(error)


def _set_metadata(found: Any, place: int, text: str | None) -> None:
    """Sets the metadata of an offset, up to a zero byte, in memory that librdkafka frees with it."""
    data = (text or "").encode() + b"\0"
    offset = PartitionOffset.from_address(place)
    offset.metadata = found.rd_kafka_mem_malloc(None, len(data))
    offset.metadata_size = len(data)
    ctypes.memmove(offset.metadata, data, len(data))


def _ms(timeout_s: float) -> int:
    return int(timeout_s * 1000)
