"""One pass over one range: its messages in batches, up to its end by position."""

from __future__ import annotations

import gc
import logging
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import confluent_kafka as ck

from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.client import RawBatch
from pyspark_upsert_kafka.kafka.librdkafka.asking import TRANSIENT, Trouble

logger = logging.getLogger("pyspark_upsert_kafka")

_BATCH = 20_000
"""Messages in a batch at most: enough for columnar decoding, little enough for memory."""

_BATCH_S = 0.05
"""How long a batch is filled: bounds its bytes, whatever the size of a message, and its delay."""

_CHUNK = 2_000
"""Messages taken at once: few enough to stay in the processor's cache until they are columns."""

_CHUNK_S = 0.005
"""How long a chunk is waited for; one with gaps at its end never fills."""

_LOOKS = 2
"""A topic that the broker does not know so often in a row is deleted."""

_UNKNOWN = frozenset({
    ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
    ck.KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    ck.KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
})  # fmt: skip
"""What a consumer says of a deleted topic; but also while a broker restarts, so it proves nothing."""

_GROUP_TROUBLE = frozenset({
    ck.KafkaError.GROUP_AUTHORIZATION_FAILED,
    ck.KafkaError.INVALID_GROUP_ID,
    ck.KafkaError.GROUP_MAX_SIZE_REACHED,
})  # fmt: skip
"""librdkafka looks for its group's coordinator; reading assigned partitions needs none."""


class Reading:
    """One pass over one range.

    Args:
        consumer: Used by nobody else.
        trouble: What the consumer says goes wrong.
        servers: The bootstrap servers, for errors.
        range_: What to read.
        details: Whether timestamps, headers and leader epochs are taken out too.
    """

    def __init__(
        self,
        consumer: ck.Consumer,
        trouble: Trouble,
        servers: str,
        range_: Range,
        *,
        details: bool,
    ) -> None:
        self._consumer, self._trouble, self._servers = consumer, trouble, servers
        self._range, self._details = range_, details
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
        self._go_to(self._range.begin)
        while self._position < self._range.end:
            batch = self._batch()
            if len(batch):
                yield batch
                self._progress = time.monotonic()  # the time spent downstream is not ours
            else:
                self._look_closer()
            if self._loss is not None:
                if fail_on_data_loss:
                    raise self._loss
                logger.warning("%s", self._loss)
                self._go_on_after(self._loss)

    def _batch(self) -> RawBatch:
        """What comes within `_BATCH_S`; nothing after lost offsets."""
        batch = RawBatch(self._range.topic, self._range.partition, [], [], [])
        deadline = time.monotonic() + _BATCH_S
        while (
            len(batch) < _BATCH
            and self._position < self._range.end
            and self._loss is None
            and time.monotonic() < deadline
        ):
            with _no_garbage_collection():
                self._take_chunk(batch)
        return batch

    def _take_chunk(self, batch: RawBatch) -> None:
        wanted = min(_CHUNK, self._range.end - self._position)
        received = self._consumer.consume(wanted, _CHUNK_S)
        messages = [message for message in received if message.error() is None]
        if messages:
            self._moved(messages[-1].offset() + 1)
            if self._position > self._range.end:
                messages = messages[: bisect_left(messages, self._range.end, key=ck.Message.offset)]
            self._take_out(messages, batch)
        if len(messages) < len(received):
            for message in received:
                if message.error() is not None:
                    self._event(message)

    def _take_out(self, messages: list[ck.Message], batch: RawBatch) -> None:
        batch.keys.extend(map(ck.Message.key, messages))
        batch.values.extend(map(ck.Message.value, messages))
        batch.offsets.extend(map(ck.Message.offset, messages))
        if self._details:
            batch.timestamps.extend(map(ck.Message.timestamp, messages))
            batch.headers.extend(message.headers() or () for message in messages)
            batch.leader_epochs.extend(map(ck.Message.leader_epoch, messages))

    def _event(self, message: ck.Message) -> None:
        error = message.error()
        code = error.code()
        if code == ck.KafkaError._PARTITION_EOF:  # noqa: SLF001
            self._moved(message.offset())
        elif code == ck.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            self._out_of_range()
        elif code in _GROUP_TROUBLE:
            logger.info("Reading goes on without a group: %s", error.str())
        elif code not in TRANSIENT and code not in _UNKNOWN:
            raise BrokerError(f"{self._where()} cannot be read: {error.str()}.")

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
        self._unknown = self._unknown + 1 if self._is_unknown() else 0
        bounds = self._bounds() if self._unknown == 0 else None
        if self._unknown >= _LOOKS:
            self._lost(None, "the topic was deleted while it was read")
        elif bounds is not None and bounds[1] < self._range.end:
            self._ends_early(*bounds)
        elif self._trouble.hopeless is not None or now - self._progress > patience.MESSAGE_S:
            raise BrokerError(
                f"{self._where()}: nothing arrived for {now - self._progress:.0f} seconds."
                f"{self._trouble.describe()}"
            )

    def _out_of_range(self) -> None:
        bounds = self._bounds()
        if bounds is None:
            self._go_to(self._position)  # ask again: the broker that said so may be gone
        elif bounds[0] > self._position:
            self._lost(bounds[0], "retention or a deletion of records has taken the offsets away")
        elif bounds[1] < self._position:
            self._ends_early(*bounds)
        else:
            self._go_to(self._position)

    def _ends_early(self, earliest: int, latest: int) -> None:
        self._lost(
            earliest,
            f"the partition ends at offset {latest}, before offset {self._range.end} that was "
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
        self._consumer.assign(
            [ck.TopicPartition(self._range.topic, self._range.partition, position)]
        )

    def _is_unknown(self) -> bool:
        """Whether a broker says that there is no such partition."""
        try:
            found = self._consumer.list_topics(self._range.topic, timeout=patience.LOOK_S)
        except ck.KafkaException:
            return False
        topic = found.topics[self._range.topic]
        if topic.error is not None:
            return bool(topic.error.code() in _UNKNOWN)
        return self._range.partition not in topic.partitions

    def _bounds(self) -> tuple[int, int] | None:
        """Earliest and latest offset, as the broker says now; None when it does not answer."""
        partition = ck.TopicPartition(self._range.topic, self._range.partition)
        try:
            found = self._consumer.get_watermark_offsets(partition, timeout=patience.LOOK_S)
        except ck.KafkaException as error:
            logger.info("The bounds of %s are not known: %s", self._where(), error)
            return None
        return cast("tuple[int, int] | None", found)

    def _where(self) -> str:
        range_ = self._range
        return (
            f"Topic {range_.topic!r}, partition {range_.partition}, offset {self._position} (reading "
            f"{range_.begin} to {range_.end}) at {self._servers!r}"
        )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Messages cannot be in cycles; looking at each once more would cost as much as parsing it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
