"""librdkafka's own batch call, on Arrow's columns, through the library that confluent-kafka brings.

It is there for speed only: confluent-kafka takes messages one by one, holds the state of each for its callback
and takes every delivery report into Python. Handing over a row so costs a task 1.1 µs, and this way 0.4.
What the call cannot carry (timestamps, headers, transactions), or where the library's functions cannot be reached,
confluent-kafka's own producer sends.

What librdkafka reports is fetched as events and not by callbacks: whatever is raised in a callback, Ctrl-C too, ctypes
drops, and a message that was not delivered would be taken for one that was.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_void_p
from typing import Any

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_upsert_kafka.kafka.librdkafka.delivery_reports import DeliveryReports
from pyspark_upsert_kafka.kafka.librdkafka.library import (
    DELIVERIES,
    ERROR,
    LOGGED,
    TEXT_BYTES,
    Message,
    destroy_producer,
    library,
    open_producer,
)

_BY_KEY = -1
_COPY = 2
_QUEUED_AND_IN_FLIGHT = 3
_LOG_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # of logging, by syslog's

_EMPTY = ctypes.create_string_buffer(1)
"""Where an empty column's values point to: an empty value is no null."""


def takes(config: Mapping[str, Any]) -> bool:
    """Whether librdkafka's functions can be reached, and the configuration is one of plain values, without callbacks."""
    given = (value for name, value in config.items() if name != "logger")
    return library() is not None and all(isinstance(value, bool | int | str) for value in given)


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


class BatchProducer:
    """A producer of librdkafka: the methods of confluent-kafka's that `LibrdkafkaSender` calls, and `produce_batch`.

    Only failed deliveries are reported. Everything is reported from within `poll` and `flush`.

    Args:
        config: librdkafka's configuration, and a ``logger``.
        reports: Where it reports to.

    Raises:
        KafkaException: The configuration is wrong.
    """

    def __init__(self, config: Mapping[str, Any], reports: DeliveryReports) -> None:
        found: Any = library()
        given = dict(config)
        self._logger, self._reports = given.pop("logger"), reports
        self._library, self._handle = found, open_producer(found, given)
        self._events = found.rd_kafka_queue_get_main(self._handle)
        weakref.finalize(self, destroy_producer, found, self._handle, self._events, os.getpid())

    def __len__(self) -> int:
        return int(self._library.rd_kafka_outq_len(self._handle))

    def produce_batch(self, batch: MessageBatch, begin: int) -> tuple[int, ck.KafkaError | None]:
        """Copies messages from ``begin`` on into the queue.

        Returns:
            The first message that was not taken, and why; else the number of messages.
        """
        topic = self._library.rd_kafka_topic_new(self._handle, batch.topic.encode(), None)
        try:
            rest = batch.messages[begin:]
            arguments = (topic, _BY_KEY, _COPY, rest.ctypes.data, len(rest))
            if self._library.rd_kafka_produce_batch(*arguments) == len(rest):
                return len(batch), None
        finally:
            self._library.rd_kafka_topic_destroy(topic)
        first = int(rest["err"].astype(bool).argmax())
        return begin + first, ck.KafkaError(int(rest["err"][first]))

    def poll(self, timeout_s: float) -> None:
        """Waits for reports and passes them on."""
        timeout_ms = int(timeout_s * 1000)
        while event := self._library.rd_kafka_queue_poll(self._events, timeout_ms):
            timeout_ms = 0
            try:
                self._pass_on(event)
            finally:
                self._library.rd_kafka_event_destroy(event)

    def flush(self, timeout_s: float) -> int:
        """Waits until nothing is unsent, or something was not delivered; returns how many messages still are."""
        self._library.rd_kafka_flush(self._handle, int(timeout_s * 1000))
        self.poll(0)
        return len(self)

    def purge(self) -> None:
        """Drops what is unsent."""
        self._library.rd_kafka_purge(self._handle, _QUEUED_AND_IN_FLIGHT)

    def refresh(self, timeout_s: float) -> None:
        """Has brokers tell how many partitions the topics have by now to which something was sent.

        Raises:
            KafkaException: No broker answers in time.
        """
        answer, no_topic = c_void_p(), None
        timeout_ms = int(timeout_s * 1000)
        code = self._library.rd_kafka_metadata(self._handle, 0, no_topic, answer, timeout_ms)
        if code:
            raise ck.KafkaException(ck.KafkaError(code))
        self._library.rd_kafka_metadata_destroy(answer)

    def _pass_on(self, event: int) -> None:
        kind = self._library.rd_kafka_event_type(event)
        if kind == DELIVERIES:
            while message := self._library.rd_kafka_event_message_next(event):
                self._note(message.contents)
        elif kind == ERROR:
            self._reports.errors.on_error(self._error(event))
        elif kind == LOGGED:
            self._log(event)

    def _note(self, message: Message) -> None:
        if message.err:  # whoever wants every report may set 'delivery.report.only.error'
            topic = self._library.rd_kafka_topic_name(message.topic).decode()
            key = ctypes.string_at(message.key, message.key_size) if message.key else None
            self._reports.add(topic, message.partition, key, ck.KafkaError(message.err))

    def _error(self, event: int) -> ck.KafkaError:
        code = self._library.rd_kafka_event_error(event)
        reason = self._library.rd_kafka_event_error_string(event)
        if code == ck.KafkaError._FATAL:  # noqa: SLF001
            text = ctypes.create_string_buffer(TEXT_BYTES)
            code = self._library.rd_kafka_fatal_error(self._handle, text, TEXT_BYTES)
            reason = text.value
        return ck.KafkaError(code, reason.decode(errors="replace"))

    def _log(self, event: int) -> None:
        kind, text, level = c_char_p(), c_char_p(), c_int()
        self._library.rd_kafka_event_log(event, kind, text, level)
        parts = (kind.value, self._library.rd_kafka_name(self._handle), text.value)
        shown = ((part or b"").decode(errors="replace") for part in parts)
        self._logger.log(_LOG_LEVELS[level.value], "%s [%s] %s", *shown)


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
