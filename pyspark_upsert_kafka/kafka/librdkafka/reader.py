"""Reads a range of one partition with librdkafka, up to its end by position."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from typing import cast

import confluent_kafka as ck

from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka.client import Headers
from pyspark_upsert_kafka.kafka.librdkafka.asking import Trouble, ask
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, invalid_property

logger = logging.getLogger("pyspark_upsert_kafka")

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
    "queued.max.messages.kbytes": 32 * 1024,
    "max.partition.fetch.bytes": 4 * 1024 * 1024,
}

_MESSAGES = 20_000
"""Messages in a batch at most: enough for columnar decoding, little enough for memory."""

_WAIT_S = 0.05
"""How long a full batch is waited for: a range's last batch may have gaps and never fill."""

_PATIENCE_S = 120.0
"""No message and no end of partition for so long: something is wrong (as Spark's pollTimeoutMs)."""

_idle: dict[Properties, list[ck.Consumer]] = {}
"""Consumers between micro-batches: connecting anew for each would cost more than a small read."""


class LibrdkafkaBatch:
    """Messages of one partition; columns are taken out when first asked for."""

    def __init__(self, topic: str, partition: int, messages: list[ck.Message]) -> None:
        self.topic, self.partition = topic, partition
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @cached_property
    def keys(self) -> list[bytes | None]:
        """Message keys."""
        return [message.key() for message in self._messages]

    @cached_property
    def values(self) -> list[bytes | None]:
        """Message values; None = a tombstone."""
        return [message.value() for message in self._messages]

    @cached_property
    def offsets(self) -> list[int]:
        """Offsets, rising."""
        return [message.offset() for message in self._messages]

    @cached_property
    def timestamps(self) -> list[tuple[int, int]]:
        """Timestamp type and ms since the epoch."""
        return [message.timestamp() for message in self._messages]

    @cached_property
    def headers(self) -> list[Headers]:
        """Headers in their order."""
        return [message.headers() or () for message in self._messages]

    @cached_property
    def leader_epochs(self) -> list[int | None]:
        """Leader epochs."""
        return [message.leader_epoch() for message in self._messages]


class LibrdkafkaReader:
    """Reads ranges; consumers are opened in the worker and kept for its next task."""

    def __init__(self, properties: Properties, committed: bool, fail_on_data_loss: bool) -> None:
        self._properties = Properties(
            {**properties, "isolation.level": "read_committed" if committed else "read_uncommitted"}
        )
        self._fail_on_data_loss = fail_on_data_loss

    def __call__(self, range_: Range) -> Iterator[LibrdkafkaBatch]:
        """The messages of the range, in batches."""
        idle = _idle.setdefault(self._properties, [])
        trouble = Trouble()
        consumer = idle.pop() if idle else self._open(trouble)
        reading = _Reading(consumer, range_, trouble, self._properties["bootstrap.servers"])
        try:
            yield from reading.batches(fail_on_data_loss=self._fail_on_data_loss)
        except BaseException:
            consumer.close()
            raise
        consumer.unassign()
        idle.append(consumer)

    def _open(self, trouble: Trouble) -> ck.Consumer:
        config = client_config(self._properties, "reader", {**_CONFIG, "error_cb": trouble})
        try:
            return ck.Consumer(config)
        except ck.KafkaException as error:
            raise invalid_property(error) from None


class _Reading:
    """One pass over one range."""

    def __init__(
        self, consumer: ck.Consumer, range_: Range, trouble: Trouble, servers: str
    ) -> None:
        self._consumer, self._range = consumer, range_
        self._trouble, self._servers = trouble, servers
        self._position = range_.begin
        self._progress = time.monotonic()

    def batches(self, *, fail_on_data_loss: bool) -> Iterator[LibrdkafkaBatch]:
        range_ = self._range
        self._go_to(range_.begin)
        while self._position < range_.end:
            wanted = min(_MESSAGES, range_.end - self._position)
            received = self._consumer.consume(wanted, _WAIT_S)
            messages = [message for message in received if message.error() is None]
            if messages:
                self._moved(messages[-1].offset() + 1)
                if self._position > range_.end:
                    messages = messages[: bisect_left(messages, range_.end, key=_offset)]
            if messages:
                yield LibrdkafkaBatch(range_.topic, range_.partition, messages)
                self._progress = time.monotonic()  # the time spent downstream is not ours
            if len(messages) < len(received):
                for message in received:
                    if message.error() is not None:
                        self._event(message, fail_on_data_loss=fail_on_data_loss)
            if time.monotonic() - self._progress > _PATIENCE_S:
                self._stuck()

    def _event(self, message: ck.Message, *, fail_on_data_loss: bool) -> None:
        error = message.error()
        code = error.code()
        if code == ck.KafkaError._PARTITION_EOF:  # noqa: SLF001
            self._moved(message.offset())
        elif code == ck.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            self._lost(fail_on_data_loss=fail_on_data_loss)
        elif code in (ck.KafkaError.UNKNOWN_TOPIC_OR_PART, ck.KafkaError._UNKNOWN_TOPIC):  # noqa: SLF001
            range_ = self._range
            raise DataLossError(
                range_.topic, range_.partition, self._position, None,
                "the topic was deleted while it was read",
            )  # fmt: skip
        elif not error.retriable() and code != ck.KafkaError._TRANSPORT:  # noqa: SLF001
            raise BrokerError(f"{self._where()} cannot be read: {error.str()}.")

    def _moved(self, position: int) -> None:
        if position > self._position:
            self._position = position
            self._progress = time.monotonic()

    def _lost(self, *, fail_on_data_loss: bool) -> None:
        """The position is not in the log: retention took it, or the topic is another one."""
        earliest, _ = self._watermarks()
        range_ = self._range
        loss = DataLossError(
            range_.topic, range_.partition, self._position, earliest,
            "retention or a deletion of records has taken the offsets away",
        )  # fmt: skip
        if fail_on_data_loss:
            raise loss
        logger.warning("%s", loss)
        self._moved(range_.end if earliest <= self._position else min(earliest, range_.end))
        if self._position < range_.end:
            self._go_to(self._position)

    def _go_to(self, position: int) -> None:
        self._consumer.assign(
            [ck.TopicPartition(self._range.topic, self._range.partition, position)]
        )

    def _stuck(self) -> None:
        """Nothing came for long: a lost end of the log is data loss, all else the broker's trouble."""
        _, latest = self._watermarks()
        range_ = self._range
        if latest < range_.end:
            raise DataLossError(
                range_.topic, range_.partition, range_.end - 1, latest,
                f"the partition ends at offset {latest}; was the topic created again, or truncated?",
            )  # fmt: skip
        raise BrokerError(
            f"{self._where()}: nothing arrived for {_PATIENCE_S:.0f} seconds."
            f"{self._trouble.describe()}"
        )

    def _watermarks(self) -> tuple[int, int]:
        partition = ck.TopicPartition(self._range.topic, self._range.partition)

        def question(timeout: float) -> tuple[int, int]:
            found = self._consumer.get_watermark_offsets(partition, timeout=timeout)
            if found is None:
                raise ck.KafkaException(ck.KafkaError(ck.KafkaError._TIMED_OUT))  # noqa: SLF001
            return cast("tuple[int, int]", found)

        return ask(
            f"look up the bounds of {partition.topic}", self._servers, self._trouble, question
        )

    def _where(self) -> str:
        range_ = self._range
        return (
            f"Topic {range_.topic!r}, partition {range_.partition}, offset {self._position} (reading "
            f"{range_.begin} to {range_.end}) at {self._servers!r}"
        )


def _offset(message: ck.Message) -> int:
    return cast("int", message.offset())
