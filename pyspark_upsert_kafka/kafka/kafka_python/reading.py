"""One pass over one range with kafka-python."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.failures import Kind
from pyspark_upsert_kafka.kafka.interfaces import BAD_HEADERS, RawBatch
from pyspark_upsert_kafka.kafka.kafka_python.client_log import errors_of
from pyspark_upsert_kafka.kafka.kafka_python.errors import describe_error, kind_of
from pyspark_upsert_kafka.kafka.kafka_python.headers import UnreadableHeaders
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.reading import RangeReading

logger = logging.getLogger("pyspark_upsert_kafka")

_BATCH = 5_000
"""Messages in a batch at most; a fetch bounds its bytes."""

_POLL_MS = 50

_NO_DELAY = {"timeout_ms": 0} if IS_KAFKA_PYTHON_3 else {}
"""A position is known here without asking."""

_OUT_OF_RANGE = tuple(
    found
    for name in ("OffsetOutOfRangeError", "LogTruncationError")
    if (found := getattr(kafka_errors, name, None))
)


class Reading(RangeReading):
    """One pass over one range.

    Args:
        consumer: Used by nobody else.
        admin: A connection for asking.
        servers: The bootstrap servers, for errors.
        range_: What to read.
        details: Whether timestamps, headers and leader epochs are taken out too.
    """

    def __init__(
        self,
        consumer: KafkaConsumer,
        admin: Callable[[], AbstractContextManager[AdminRequests]],
        servers: str,
        range_: Range,
        *,
        details: bool,
    ) -> None:
        super().__init__(range_, servers, admin)
        self._consumer, self._admin, self._details = consumer, admin, details
        self._tp = ClientPartition(range_.topic, range_.partition)
        self._errors = errors_of(consumer)
        self._errors.clear()
        self.bytes_taken = 0
        consumer.assign([self._tp])

    def _next(self) -> RawBatch:
        records = self._poll()
        details = records if self._details else []
        self.bytes_taken += sum(len(record.value or b"") for record in records)
        return RawBatch(
            self._range.topic,
            self._range.partition,
            [record.key for record in records],
            [record.value for record in records],
            [record.offset for record in records],
            [_timestamp(record.timestamp_type, record.timestamp) for record in details],
            [record.headers for record in details],
            [_leader_epoch(record) for record in details],
            {
                at: BAD_HEADERS
                for at, record in enumerate(details)
                if isinstance(record.headers, UnreadableHeaders)
            },
        )

    def _poll(self) -> list[Any]:
        """The next records of the range; its position is passed on, over gaps too."""
        try:
            found = self._consumer.poll(timeout_ms=_POLL_MS, max_records=_BATCH)
            position = self._consumer.position(self._tp, **_NO_DELAY)
        except _OUT_OF_RANGE:
            self._out_of_range()
            return []
        except (kafka_errors.KafkaError, OSError) as error:
            kind = kind_of(error)
            if kind is Kind.FATAL:
                raise BrokerError(
                    f"{self._where()} cannot be read: {describe_error(error)}."
                ) from None
            self._errors.add(describe_error(error), security=kind is Kind.SECURITY)
            logger.info("%s: reading goes on after %s", self._where(), describe_error(error))
            # The client may have passed messages that it had no more time to give.
            self._go_to(self._position)
            return []
        if position > self._position:
            self._errors.note_progress()
        self._moved(position)
        records: list[Any] = found.get(self._tp, [])
        if self._position > self._range.end:
            records = records[: bisect_left(records, self._range.end, key=attrgetter("offset"))]
        return records

    def _go_to(self, position: int) -> None:
        self._consumer.seek(self._tp, position)

    def _bounds(self) -> Bounds | None:
        try:
            with self._admin() as admin:
                (found,) = admin.bounds([TopicPartition(*self._tp)], committed=False).values()
        except BrokerError as error:
            logger.info("The bounds of %s are not known: %s", self._where(), error)
            return None
        return found

    def _client_errors(self) -> tuple[bool, str]:
        return self._errors.fatal_error is not None, self._errors.describe()


def _timestamp(kind: int, ms: int | None) -> tuple[int, int]:
    """The protocol has 0 for CreateTime and 1 for LogAppendTime, and -1 ms for none."""
    return (kind + 1, ms) if ms not in (None, -1) else (0, -1)


def _leader_epoch(record: Any) -> int | None:
    epoch = getattr(record, "leader_epoch", -1)  # kafka-python-ng does not tell
    return None if epoch < 0 else epoch
