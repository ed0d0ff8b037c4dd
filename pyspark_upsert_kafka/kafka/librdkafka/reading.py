"""One pass over one range with librdkafka."""

from __future__ import annotations

import gc
import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import confluent_kafka as ck

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.failures import Kind
from pyspark_upsert_kafka.kafka.interfaces import BAD_HEADERS, Headers, RawBatch
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, kind_of
from pyspark_upsert_kafka.kafka.reading import RangeReading
from pyspark_upsert_kafka.kafka.sizes import BATCH_BYTES

logger = logging.getLogger("pyspark_upsert_kafka")

_BATCH = 20_000
"""Messages in a batch at most: enough for columnar decoding, little enough for memory."""

_BATCH_S = 0.05
"""How long a batch is filled: bounds its delay."""

_CHUNK = 2_000
"""Messages taken at once: few enough to stay in the processor's cache until they are columns."""

_CHUNK_S = 0.005
"""How long a chunk is waited for; one with gaps at its end never fills."""

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


@dataclass(frozen=True)
class Connection:
    """A consumer, and what it says goes wrong."""

    consumer: ck.Consumer
    errors: ReportedErrors


class Reading(RangeReading):
    """One pass over one range.

    Args:
        connection: Used by nobody else.
        admin: A connection for asking.
        servers: The bootstrap servers, for errors.
        range_: What to read.
        details: Whether timestamps, headers and leader epochs are taken out too.
    """

    def __init__(
        self,
        connection: Connection,
        admin: Callable[[], AbstractContextManager[AdminRequests]],
        servers: str,
        range_: Range,
        *,
        details: bool,
    ) -> None:
        super().__init__(range_, servers, admin)
        self._consumer, self._errors = connection.consumer, connection.errors
        self._details = details
        self.bytes_taken = 0

    def _next(self) -> RawBatch:
        """What comes within `_BATCH_S`; nothing after lost offsets."""
        batch = RawBatch(self._range.topic, self._range.partition, [], [], [])
        deadline = time.monotonic() + _BATCH_S
        full = self.bytes_taken + BATCH_BYTES
        while (
            len(batch) < _BATCH
            and self.bytes_taken < full
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
            self._errors.note_progress()
            self._moved(messages[-1].offset() + 1)
            if self._position > self._range.end:
                messages = messages[: bisect_left(messages, self._range.end, key=ck.Message.offset)]
            self._take_out(messages, batch)
        if len(messages) < len(received):
            for message in received:
                if message.error() is not None:
                    self._event(message)

    def _take_out(self, messages: list[ck.Message], batch: RawBatch) -> None:
        self.bytes_taken += sum(map(len, messages))
        batch.keys.extend(map(ck.Message.key, messages))
        batch.values.extend(map(ck.Message.value, messages))
        batch.offsets.extend(map(ck.Message.offset, messages))
        if self._details:
            batch.timestamps.extend(map(ck.Message.timestamp, messages))
            _take_headers(messages, batch)
            batch.leader_epochs.extend(map(ck.Message.leader_epoch, messages))

    def _event(self, message: ck.Message) -> None:
        error = message.error()
        code = error.code()
        if code == ck.KafkaError._PARTITION_EOF:  # noqa: SLF001
            self._errors.note_progress()
            self._moved(message.offset())
        elif code == ck.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            self._out_of_range()
        elif code in _GROUP_TROUBLE:
            logger.info("Reading goes on without a group: %s", error.str())
        elif kind_of(error) is Kind.FATAL:
            raise BrokerError(f"{self._where()} cannot be read: {error.str()}.")

    def _go_to(self, position: int) -> None:
        self._consumer.assign(
            [ck.TopicPartition(self._range.topic, self._range.partition, position)]
        )

    def _bounds(self) -> Bounds | None:
        partition = ck.TopicPartition(self._range.topic, self._range.partition)
        try:
            found = self._consumer.get_watermark_offsets(partition, timeout=timeouts.STALL_CHECK_S)
        except ck.KafkaException as error:
            logger.info("The bounds of %s are not known: %s", self._where(), error)
            return None
        return None if found is None else Bounds(found[0], found[1], found[1])

    def _client_errors(self) -> tuple[bool, str]:
        return self._errors.fatal_error is not None, self._errors.describe()


def _take_headers(messages: list[ck.Message], batch: RawBatch) -> None:
    begin = len(batch.headers)
    try:
        # A call by `map` is checked at once for an error that the binding leaves behind.
        batch.headers.extend([found or () for found in [*map(ck.Message.headers, messages)]])
    except (SystemError, UnicodeDecodeError):
        for at, message in enumerate(messages, begin):
            found = _readable(message)
            batch.headers.append(found or ())
            if found is None:
                batch.bad_headers[at] = BAD_HEADERS


def _readable(message: ck.Message) -> Headers | None:
    """Its headers; None when the key of one is not UTF-8.

    The binding says so by an error, but only when first asked. From then on it gives pairs without a key:
    not None, but no object at all, and to touch it ends the process. The collector does not count it.
    """
    try:
        (found,) = map(ck.Message.headers, (message,))
    except (SystemError, UnicodeDecodeError):
        return None
    pairs = found or ()
    return pairs if len(gc.get_referents(*pairs)) == 2 * len(pairs) else None


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
