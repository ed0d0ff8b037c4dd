"""librdkafka's own batch call, on Arrow's columns, through the library that confluent-kafka brings.

It is there for speed only: confluent-kafka takes messages one by one, holds the state of each for its callback
and takes every delivery report into Python. Handing over a row so costs a task 1.1 µs, and this way 0.4.
What the call cannot carry (timestamps, headers), or where the library's functions cannot be reached,
confluent-kafka's own producer sends.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping, Sequence
from ctypes import c_void_p
from functools import partial
from typing import Any, Protocol

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_upsert_kafka.kafka.native.library import (
    PRODUCER,
    ErrorReports,
    EventQueue,
    Handles,
    Message,
    PartitionOffset,
    library,
)

_BY_KEY = -1
_COPY = 2
QUEUED_AND_IN_FLIGHT = 3
"""What is dropped: RD_KAFKA_PURGE_F_QUEUE and _INFLIGHT."""


_EMPTY = ctypes.create_string_buffer(1)
"""Where an empty column's values point to: an empty value is no null."""


class MessageBatch:
    """Messages of one topic as librdkafka takes them, which point into the columns.

    Args:
        topic: The topic.
        keys: The keys; null = none.
        values: The values; null = a tombstone.
    """

    def __init__(self, topic: str, keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray) -> None:
        self.topic, self._keys, self._values = topic, keys, values
        self.messages = np.zeros(len(keys), np.dtype(Message))
        self.messages["key"], self.messages["key_size"] = _places(keys)
        self.messages["value"], self.messages["value_size"] = _places(values)

    def __len__(self) -> int:
        return len(self.messages)

    def key(self, at: int) -> bytes | None:
        """The key of a message."""
        key: bytes | None = self._keys[at].as_py()
        return key

    def size(self, at: int) -> int:
        """Bytes of a message's key and value."""
        return int(self.messages["key_size"][at] + self.messages["value_size"][at])


class Reports(Protocol):
    """Where a producer reports to."""

    @property
    def errors(self) -> ErrorReports:
        """Errors of its own."""

    def add(
        self, topic: str, partition: int | None, key: bytes | None, error: ck.KafkaError
    ) -> None:
        """Takes note of a message that was not delivered."""


class BatchProducer:
    """A producer of librdkafka: the methods of confluent-kafka's that `LibrdkafkaSender` calls, and `produce_batch`.

    Only failed deliveries are reported. Everything is reported from within `poll` and `flush`.

    Args:
        config: librdkafka's configuration, and a ``logger``.
        reports: Where it reports to.

    Raises:
        KafkaException: The configuration is wrong.
    """

    def __init__(self, config: Mapping[str, Any], reports: Reports) -> None:
        found: Any = library()
        given = dict(config)
        logger = given.pop("logger")
        self.handles = handles = Handles()
        self._ending = weakref.finalize(self, handles.end, found)
        self._library, self._handle = found, handles.open(found, PRODUCER, given)
        note = partial(_note, found, reports)  # no method, which would hold on to the producer
        self._events = EventQueue(found, handles, reports.errors, logger, note)

    def __len__(self) -> int:
        return int(self._library.rd_kafka_outq_len(self._handle))

    def produce_batch(self, batch: MessageBatch, begin: int) -> tuple[int, ck.KafkaError | None]:
        """Copies messages from ``begin`` on into the queue.

        Returns:
            The first message that was not taken, and why; else the number of messages.
        """
        topic = self._topic(batch.topic)
        try:
            rest = batch.messages[begin:]
            arguments = (topic, _BY_KEY, _COPY, rest.ctypes.data, len(rest))
            if self._library.rd_kafka_produce_batch(*arguments) == len(rest):
                return len(batch), None
        finally:
            self._library.rd_kafka_topic_destroy(topic)
        first = int(rest["err"].astype(bool).argmax())
        return begin + first, self._events.error(int(rest["err"][first]))

    def poll(self, timeout_s: float) -> None:
        """Waits for reports and passes them on."""
        self._events.poll(timeout_s)

    def flush(self, timeout_s: float) -> int:
        """Waits until nothing is unsent, or something was not delivered; returns how many messages still are."""
        self._library.rd_kafka_flush(self._handle, int(timeout_s * 1000))
        self.poll(0)
        return len(self)

    def purge(self) -> None:
        """Drops what is unsent."""
        self._library.rd_kafka_purge(self._handle, QUEUED_AND_IN_FLIGHT)

    def refresh(self, topics: Sequence[str], timeout_s: float) -> None:
        """Has a broker tell in one answer how many partitions the topics have by now.

        Raises:
            KafkaException: No broker answers in time.
        """
        answer, every_known_topic = c_void_p(), None
        timeout_ms = int(timeout_s * 1000)
        # Where librdkafka knows no topic, it asks for all topics of the cluster.
        known = [self._topic(topic) for topic in topics]
        try:
            code = self._library.rd_kafka_metadata(
                self._handle, 0, every_known_topic, answer, timeout_ms
            )
        finally:
            for topic in known:
                self._library.rd_kafka_topic_destroy(topic)
        if code:
            raise ck.KafkaException(ck.KafkaError(code))
        self._library.rd_kafka_metadata_destroy(answer)

    def _topic(self, name: str) -> int:
        """The client's own of a topic, to be destroyed after use."""
        topic: int = self._library.rd_kafka_topic_new(self._handle, name.encode(), None)
        return topic


def _note(found: ctypes.CDLL, reports: Reports, message: Message) -> None:
    if message.err:  # whoever wants every report may set 'delivery.report.only.error'
        topic = found.rd_kafka_topic_name(message.topic).decode()
        key = ctypes.string_at(message.key, message.key_size) if message.key else None
        partition = message.partition if message.partition >= 0 else None
        reports.add(topic, partition, key, ck.KafkaError(message.err))


def _places(column: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where in memory each value begins, 0 for null, and how long it is."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset :][: len(column) + 1]
    base = data.address if data is not None and data.size else ctypes.addressof(_EMPTY)
    places, sizes = bounds[:-1] + base, np.diff(bounds)
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        places[nulls] = sizes[nulls] = 0
    return places, sizes


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

    def __init__(self, config: Mapping[str, Any], reports: Reports) -> None:
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
