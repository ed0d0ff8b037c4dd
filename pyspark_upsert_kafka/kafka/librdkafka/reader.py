"""Reads ranges with librdkafka."""

from __future__ import annotations

import atexit
import gc
import logging
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import confluent_kafka as ck
import numpy as np

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.metadata import IN_HEADERS, Detail, Headers
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.failures import FailureKind, explained
from pyspark_upsert_kafka.kafka.librdkafka.cluster import pooled_cluster
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors, kind_of
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.native import BatchConsumer, Event, can_take, takes
from pyspark_upsert_kafka.kafka.pooled_reader import (
    LARGE_FETCH,
    MEDIUM_FETCH,
    SMALL_FETCH,
    PooledReader,
)
from pyspark_upsert_kafka.kafka.range_fetch import (
    BATCH_BYTES,
    Fetched,
    Fetcher,
    header_bytes,
)
from pyspark_upsert_kafka.kafka.raw_batch import BAD_HEADERS, RawBatch, numbers

logger = logging.getLogger("pyspark_upsert_kafka")

_BATCH = 20_000
"""Messages in a batch at most: enough for columnar decoding, little enough for memory."""

_BATCH_S = 0.05
"""How long a batch is filled, by default: bounds its delay."""

_CHUNK = 2_000
"""Messages taken at once: few enough to stay in the processor's cache until they are columns."""

_UNSEEN_BYTES = 1024 * 1024
"""Of a message before one was seen, what a broker allows by default: the first chunk is a few messages, however large they are."""

_CHUNK_S = 0.005
"""How long a chunk is waited for; one with gaps at its end never fills."""

_LOOKUP_S = 1.0
"""How long a topic is looked up: about as long as librdkafka waits before it does so itself."""

_BOUNDS_S = 5.0
"""For the bounds of a partition, which are asked for again while no message comes."""

_DAMAGED = frozenset({
    ck.KafkaError._BAD_MSG,  # noqa: SLF001 - how confluent-kafka spells librdkafka's own codes
    ck.KafkaError.INVALID_MSG,  # CORRUPT_MESSAGE: the broker itself has found it
})  # fmt: skip
"""The messages that came are not those that were written: a checksum is wrong."""

_NOT_UNPACKED = ck.KafkaError._BAD_COMPRESSION  # noqa: SLF001
"""Compressed messages cannot be unpacked, though their checksum is right."""

_FETCHED_AGAIN = frozenset({
    # Said of a fetch without a message, as of a segment that compaction has emptied: librdkafka goes on behind it.
    ck.KafkaError.MSG_SIZE_TOO_LARGE,
    ck.KafkaError.UNKNOWN,  # UNKNOWN_SERVER_ERROR, after which Java's consumer fetches again too
})  # fmt: skip
"""librdkafka fetches again by itself after these errors of a partition."""


@dataclass(frozen=True)
class Connection:
    """A consumer, the errors that it reports, and the topics that it has read."""

    consumer: Any
    errors: ReportedErrors
    topics: set[str] = field(default_factory=set)


class LibrdkafkaFetcher:
    """Fetches the partition of a range.

    Args:
        connection: Used by nobody else.
        range_: Its topic and partition.
        details: What is taken out of messages beside key, value and offset.
        batch_s: How long a batch is filled, in seconds.
        clock: Gives the time in seconds.
    """

    def __init__(
        self,
        connection: Connection,
        range_: Range,
        *,
        details: frozenset[Detail],
        batch_s: float = _BATCH_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._consumer: Any = connection.consumer
        self._takes_columns = isinstance(connection.consumer, BatchConsumer)
        self.errors, self._topics = connection.errors, connection.topics
        self._details, self._batch_s, self._clock = details, batch_s, clock
        self._name, self._partition = range_.topic, range_.partition
        self._message_bytes = _UNSEEN_BYTES  # about; librdkafka's queue counts values only
        self._consumer.poll(0)  # errors of before are passed on now, and cleared
        self.errors.clear()

    def seek(self, offset: int) -> None:
        """Lets the next poll begin at this offset."""
        self._consumer.assign([ck.TopicPartition(self._name, self._partition, offset)])
        self._look_up()

    def _look_up(self) -> None:
        """Asks for the leaders of another topic than before: librdkafka itself asks only once a second."""
        if self._topics and self._name not in self._topics:
            with suppress(ck.KafkaException):  # it asks again, and reports what is wrong
                self._consumer.list_topics(self._name, timeout=_LOOKUP_S)
        self._topics.add(self._name)

    def poll(self, position: int, end: int) -> Fetched:
        """The messages that arrive within the time of a batch."""
        if self._takes_columns:
            self._consumer.poll(0)  # nothing else has it report
        fetched = Fetched(self._batch([]), position)
        parts: list[RawBatch] = []
        deadline = self._clock() + self._batch_s
        while (
            (left := _BATCH - sum(map(len, parts))) > 0
            and fetched.size_bytes < BATCH_BYTES
            and fetched.position < end
            and fetched.may_grow
            and self._clock() < deadline
        ):
            room = (BATCH_BYTES - fetched.size_bytes) // self._message_bytes
            part, events = self._take(min(left, end - fetched.position, 1 + room))
            damage = next(filter(self._is_unreadable, events), None)
            good_end = end if damage is None else min(end, max(damage.offset, fetched.position))
            if len(part):
                parts.append(self._before(good_end, part, fetched))
            if damage is not None:
                # What follows begins anywhere: librdkafka has lost its place in the answer.
                fetched.position = good_end
                if good_end < end:
                    self._note_unreadable(damage, fetched)
                break
            for event in events:
                self._note_event(event, fetched)
        if parts:
            fetched.batch = RawBatch.joined(parts)
        return fetched

    def bounds(self) -> Bounds:
        """The bounds of the partition as its leader knows them now."""
        partition = ck.TopicPartition(self._name, self._partition)
        try:
            found = self._consumer.get_watermark_offsets(partition, timeout=_BOUNDS_S)
        except ck.KafkaException as error:
            raise BrokerError(self.errors.shown(error.args[0].str())) from None
        if found is None:
            raise BrokerError("no answer in time")
        if min(found) < 0:
            raise BrokerError("no offset was answered")
        earliest, high = found
        return Bounds(earliest, high, high)

    def close(self) -> None:
        """Ends fetching, so that the consumer can be used for another range."""
        self._consumer.unassign()

    def _take(self, count: int) -> tuple[RawBatch, list[Event]]:
        """Takes at most a number of messages, and the events between them."""
        if self._takes_columns:
            place = ck.TopicPartition(self._name, self._partition)
            found: tuple[RawBatch, list[Event]] = self._consumer.take(
                place, count, _CHUNK_S, self._details
            )
            return found
        with _no_garbage_collection():
            return self._consumed(count)  # its messages are gone when the collector looks again

    def _consumed(self, count: int) -> tuple[RawBatch, list[Event]]:
        received = self._consumer.consume(min(_CHUNK, count), _CHUNK_S)
        messages, events = received, []
        if any(map(ck.Message.error, received)):
            messages = [each for each in received if each.error() is None]
            events = [_event(each) for each in received if each.error() is not None]
        return self._batch(messages), events

    def _before(self, end: int, part: RawBatch, fetched: Fetched) -> RawBatch:
        """Notes the progress of some messages; those before the end."""
        self.errors.note_progress()
        fetched.position = part.offsets[-1] + 1
        if fetched.position > end:
            part = part.part(0, bisect_left(part.offsets, end))
        size = part.keys.size + part.values.size + header_bytes(part.headers)
        size += sum(ids.size for ids in part.schema_ids.values())
        self._message_bytes = 1 + size // (len(part) or 1)
        fetched.size_bytes += size
        return part

    def _batch(self, messages: list[ck.Message]) -> RawBatch:
        batch = RawBatch(
            self._name,
            self._partition,
            BytesColumn.of(map(ck.Message.key, messages)),
            BytesColumn.of(map(ck.Message.value, messages)),
            _offsets(messages),
        )
        if Detail.TIMESTAMP in self._details:
            pairs = chain.from_iterable(map(ck.Message.timestamp, messages))
            types_and_ms = np.fromiter(pairs, np.int64, 2 * len(messages))
            batch.timestamp_types.extend(numbers(types_and_ms[::2]))
            batch.timestamps.extend(numbers(types_and_ms[1::2]))
        if not self._details.isdisjoint(IN_HEADERS):
            _append_headers(messages, batch)
        if Detail.LEADER_EPOCH in self._details:
            batch.leader_epochs.extend(map(ck.Message.leader_epoch, messages))
        return batch

    def _is_of_range(self, event: Event) -> bool:
        """Whether it is about this partition, and not about one that the consumer has read before."""
        return (event.topic, event.partition) == (self._name, self._partition)

    def _is_unreadable(self, event: Event) -> bool:
        code = event.error.code()
        return (code in _DAMAGED or code == _NOT_UNPACKED) and self._is_of_range(event)

    def _note_unreadable(self, event: Event, fetched: Fetched) -> None:
        said = self.errors.shown(event.error.str())
        if event.error.code() in _DAMAGED:
            fetched.damage = said
        else:
            fetched.fatal_error = (
                f"its messages from this offset on cannot be unpacked ({said.removesuffix('.')}). librdkafka refuses a batch of "
                "zstd that is more than 'properties.receive.message.max.bytes' when it is unpacked (100 MB by default), and may "
                "refuse one of more than a third of that: set it to at most 2147483647"
            )

    def _note_event(self, event: Event, fetched: Fetched) -> None:
        error = event.error
        code = error.code()
        if event.topic is None:
            # librdkafka looks for its group's coordinator; fetching assigned partitions needs none.
            logger.info("Fetching continues without a group: %s", self.errors.shown(error.str()))
        elif not self._is_of_range(event):
            logger.info("Of what was read before: %s", self.errors.shown(error.str()))
        elif code == ck.KafkaError._PARTITION_EOF:  # noqa: SLF001
            self.errors.note_progress()
            fetched.position = max(fetched.position, event.offset)
        elif code == ck.KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            fetched.is_out_of_range = True
        elif code in _FETCHED_AGAIN:
            self.errors.add(error.str())
        elif kind_of(error) is FailureKind.FATAL:
            fetched.fatal_error = explained(code, self.errors.shown(error.str()))


def _event(message: ck.Message) -> Event:
    return Event(message.error(), message.topic(), message.partition(), message.offset())


def _offsets(messages: Sequence[ck.Message]) -> array[int]:
    """The offsets of messages; as they rise, the first and the last tell those between, if there are no gaps."""
    if not messages:
        return array("q")
    first, end = messages[0].offset(), messages[-1].offset() + 1
    if end - first == len(messages):
        return numbers(np.arange(first, end, dtype=np.int64))
    return array("q", map(ck.Message.offset, messages))


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


def _append_headers(messages: list[ck.Message], batch: RawBatch) -> None:
    """Appends the headers of each message to a batch, and why those of a message cannot be read."""
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
        return BATCH_POOL if self._in_batches else POOL

    @property
    def _in_batches(self) -> bool:
        return self._properties.native and can_take(self._settings.details)

    def _cluster(self) -> AbstractContextManager[Cluster]:
        return pooled_cluster(self._properties, "reader", self._settings.outage_s)

    def _connect(self, fetch_bytes: int) -> Connection:
        ours = {**_CONFIG, "max.partition.fetch.bytes": fetch_bytes, **_FETCHES[fetch_bytes]}
        config = client_config(self._properties, "reader", ours)
        errors = ReportedErrors(config)
        config["allow.auto.create.topics"] = False  # what was planned is there, or is lost
        if self._in_batches and takes(config):
            opening = partial(BatchConsumer, errors=errors)
            return Connection(open_client(opening, config), errors)
        return Connection(open_client(ck.Consumer, {**config, **errors.callbacks()}), errors)

    def _fetcher(self, client: Connection, range_: Range) -> Fetcher:
        return LibrdkafkaFetcher(client, range_, details=self._settings.details)
