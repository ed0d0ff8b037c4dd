"""One pass over one range: its messages in batches, up to its end by position."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import attrgetter
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as ClientPartition
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.planning import Bounds
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.client import RawBatch
from pyspark_upsert_kafka.kafka.cluster import UnknownTopicError
from pyspark_upsert_kafka.kafka.kafka_python.asker import PatientAsker
from pyspark_upsert_kafka.kafka.kafka_python.asking import (
    HEARD,
    describe_trouble,
    is_hopeless,
    is_transient,
    told,
)
from pyspark_upsert_kafka.kafka.kafka_python.installed import SUCCESSOR

logger = logging.getLogger("pyspark_upsert_kafka")

_BATCH = 5_000
"""Messages in a batch at most; a fetch bounds its bytes."""

_POLL_MS = 50

_LOOKS = 2
"""A topic that the broker does not know so often in a row is deleted."""

_NO_DELAY = {"timeout_ms": 0} if SUCCESSOR else {}
"""A position is known here without asking."""

_OUT_OF_RANGE = tuple(
    found
    for name in ("OffsetOutOfRangeError", "LogTruncationError")
    if (found := getattr(kafka_errors, name, None))
)


class Reading:
    """One pass over one range.

    Args:
        consumer: Used by nobody else.
        asker: Opens a connection for asking; seldom needed.
        range_: What to read.
        details: Whether timestamps, headers and leader epochs are taken out too.
    """

    def __init__(
        self,
        consumer: KafkaConsumer,
        asker: Callable[[], PatientAsker],
        range_: Range,
        *,
        details: bool,
    ) -> None:
        self._consumer, self._asker = consumer, asker
        self._range, self._details = range_, details
        self._tp = ClientPartition(range_.topic, range_.partition)
        self._position = range_.begin
        self._progress = self._looked = time.monotonic()
        self._loss: DataLossError | None = None
        self._unknown = 0

    def batches(self, *, fail_on_data_loss: bool) -> Iterator[RawBatch]:
        """The messages of the range.

        Raises:
            DataLossError: Offsets are gone, and ``fail_on_data_loss``; else that is a warning.
            BrokerError: The broker refuses, or stays away.
        """
        HEARD.forget()
        self._consumer.assign([self._tp])
        self._go_to(self._range.begin)
        while self._position < self._range.end:
            records = self._poll()
            if records:
                yield self._batch(records)
                self._progress = time.monotonic()  # the time spent downstream is not ours
            elif self._loss is None:
                self._look_closer()
            if self._loss is not None:
                if fail_on_data_loss:
                    raise self._loss
                logger.warning("%s", self._loss)
                self._go_on_after(self._loss)

    def _poll(self) -> list[Any]:
        """The next records of the range; its position is passed on, over gaps too."""
        try:
            found = self._consumer.poll(timeout_ms=_POLL_MS, max_records=_BATCH)
            position = self._consumer.position(self._tp, **_NO_DELAY)
        except _OUT_OF_RANGE:
            self._out_of_range()
            return []
        except (kafka_errors.KafkaError, OSError) as error:
            if is_hopeless(error) or not is_transient(error):
                raise BrokerError(f"{self._where()} cannot be read: {told(error)}.") from None
            logger.info("%s: reading goes on after %s", self._where(), told(error))
            return []
        self._moved(position)
        records: list[Any] = found.get(self._tp, [])
        if self._position > self._range.end:
            records = records[: bisect_left(records, self._range.end, key=attrgetter("offset"))]
        return records

    def _batch(self, records: list[Any]) -> RawBatch:
        details = records if self._details else []
        return RawBatch(
            self._range.topic,
            self._range.partition,
            [record.key for record in records],
            [record.value for record in records],
            [record.offset for record in records],
            [_timestamp(record.timestamp_type, record.timestamp) for record in details],
            [record.headers for record in details],
            [_leader_epoch(record) for record in details],
        )

    def _moved(self, position: int) -> None:
        if position > self._position:
            self._position = position
            self._progress = time.monotonic()

    def _look_closer(self) -> None:
        """When nothing came for long: is it the broker's trouble, or does the log end too early?"""
        now = time.monotonic()
        if now - max(self._progress, self._looked) < patience.LOOK_S:
            return
        self._looked = now
        bounds = self._bounds()
        if self._unknown >= _LOOKS:
            self._lost(None, "the topic was deleted while it was read")
        elif bounds is not None and bounds.latest < self._range.end:
            self._ends_early(bounds)
        elif HEARD.hopeless or now - self._progress > patience.MESSAGE_S:
            raise BrokerError(
                f"{self._where()}: nothing arrived for {now - self._progress:.0f} seconds."
                f"{describe_trouble()}"
            )

    def _out_of_range(self) -> None:
        bounds = self._bounds()
        if bounds is not None and bounds.earliest > self._position:
            self._lost(
                bounds.earliest, "retention or a deletion of records has taken the offsets away"
            )
        elif bounds is not None and bounds.latest < self._position:
            self._ends_early(bounds)
        else:
            self._go_to(self._position)  # ask again: the broker that said so may be gone

    def _ends_early(self, bounds: Bounds) -> None:
        self._lost(
            bounds.earliest,
            f"the partition ends at offset {bounds.latest}, before offset {self._range.end} that was "
            "planned; was the topic created again, or truncated?",
        )

    def _lost(self, earliest: int | None, reason: str) -> None:
        range_ = self._range
        self._loss = DataLossError(range_.topic, range_.partition, self._position, earliest, reason)

    def _go_on_after(self, loss: DataLossError) -> None:
        """At the earliest offset when that is ahead; else nothing of the range is left."""
        self._loss = None
        end = self._range.end
        ahead = loss.earliest is not None and loss.earliest > self._position
        self._moved(min(loss.earliest or end, end) if ahead else end)
        if self._position < end:
            self._go_to(self._position)

    def _go_to(self, position: int) -> None:
        self._consumer.seek(self._tp, position)

    def _bounds(self) -> Bounds | None:
        """What the broker has now; None when it does not answer, or does not know the partition."""
        try:
            with closing(self._asker()) as asker:
                (found,) = asker.bounds([TopicPartition(*self._tp)], committed=False).values()
        except UnknownTopicError:
            self._unknown += 1
            return None
        except BrokerError as error:
            logger.info("The bounds of %s are not known: %s", self._where(), error)
            return None
        self._unknown = 0
        return found

    def _where(self) -> str:
        range_ = self._range
        return (
            f"Topic {range_.topic!r}, partition {range_.partition}, offset {self._position} (reading "
            f"{range_.begin} to {range_.end})"
        )


def _timestamp(kind: int, ms: int | None) -> tuple[int, int]:
    """The protocol has 0 for CreateTime and 1 for LogAppendTime, and -1 ms for none."""
    return (kind + 1, ms) if ms is not None and ms >= 0 else (0, -1)


def _leader_epoch(record: Any) -> int | None:
    epoch = getattr(record, "leader_epoch", -1)  # kafka-python-ng does not tell
    return None if epoch < 0 else epoch
