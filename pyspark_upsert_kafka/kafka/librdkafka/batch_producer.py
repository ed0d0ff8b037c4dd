"""librdkafka's own batch call, on Arrow's columns, through the library that confluent-kafka brings.

It is there for speed only: confluent-kafka takes messages one by one, holds the state of each for its callback
and takes every delivery report into Python. Handing over a row so costs a task 1.1 µs, and this way 0.4.
What the call cannot carry (timestamps, headers, transactions), or where the library's functions cannot be reached,
confluent-kafka's own producer sends.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from typing import Any

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_upsert_kafka.kafka.librdkafka.delivery_reports import DeliveryReports


class _Message(ctypes.Structure):
    """``rd_kafka_message_t`` of rdkafka.h, part of its stable interface."""

    _fields_ = (
        ("err", c_int), ("topic", c_size_t), ("partition", c_int32),
        ("value", c_size_t), ("value_size", c_size_t), ("key", c_size_t), ("key_size", c_size_t),
        ("offset", c_int64), ("private", c_size_t),
    )  # fmt: skip


_ON_DELIVERY = CFUNCTYPE(None, c_void_p, POINTER(_Message), c_void_p)
_ON_ERROR = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)
_ON_LOG = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "rd_kafka_conf_new": (c_void_p,),
    "rd_kafka_conf_destroy": (None, c_void_p),
    "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_conf_set_dr_msg_cb": (None, c_void_p, _ON_DELIVERY),
    "rd_kafka_conf_set_error_cb": (None, c_void_p, _ON_ERROR),
    "rd_kafka_conf_set_log_cb": (None, c_void_p, _ON_LOG),
    "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_name": (c_char_p, c_void_p),
    "rd_kafka_set_log_queue": (c_int, c_void_p, c_void_p),
    "rd_kafka_topic_new": (c_void_p, c_void_p, c_char_p, c_void_p),
    "rd_kafka_topic_name": (c_char_p, c_size_t),
    "rd_kafka_topic_destroy": (None, c_void_p),
    "rd_kafka_produce_batch": (c_int, c_void_p, c_int32, c_int, c_void_p, c_int),
    "rd_kafka_fatal_error": (c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_poll": (c_int, c_void_p, c_int),
    "rd_kafka_flush": (c_int, c_void_p, c_int),
    "rd_kafka_purge": (c_int, c_void_p, c_int),
    "rd_kafka_outq_len": (c_int, c_void_p),
    "rd_kafka_destroy": (None, c_void_p),
}
"""The type of each function's result, and those of its arguments."""

_PRODUCER = 0
_BY_KEY = -1
_COPY = 2
_QUEUED_AND_IN_FLIGHT = 3
_TEXT_BYTES = 512
_LOG_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # of logging, by syslog's

_EMPTY = ctypes.create_string_buffer(1)
"""Where nothing stands that is no null."""


@cache
def library() -> ctypes.CDLL | None:
    """The librdkafka that confluent-kafka has loaded; None = its functions cannot be reached from here.

    The binding's own file is asked, since the system looks for a name in all that it depends on.
    """
    try:
        found = ctypes.CDLL(ck.cimpl.__file__)
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    return found


def takes(config: Mapping[str, Any]) -> bool:
    """Whether there is a `BatchProducer`, and it can take this configuration: it knows no callback but its own."""
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
        self.messages = np.zeros(len(keys), np.dtype(_Message))
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
    """A producer of librdkafka with what `LibrdkafkaSender` asks of confluent-kafka's, and `produce_batch`.

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
        callbacks = _callbacks(found, reports, given.pop("logger"))
        self._library, self._handle = found, _opened(found, given, callbacks)
        # The callbacks live as long as librdkafka may call them.
        weakref.finalize(self, _destroy, found, self._handle, callbacks)

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
        self._library.rd_kafka_poll(self._handle, int(timeout_s * 1000))

    def flush(self, timeout_s: float) -> int:
        """Waits until nothing is unsent; returns how many messages still are."""
        self._library.rd_kafka_flush(self._handle, int(timeout_s * 1000))
        return len(self)

    def purge(self) -> None:
        """Drops what is unsent."""
        self._library.rd_kafka_purge(self._handle, _QUEUED_AND_IN_FLIGHT)


def _opened(found: ctypes.CDLL, config: Mapping[str, Any], callbacks: tuple[Any, ...]) -> int:
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    conf = found.rd_kafka_conf_new()
    try:
        # Logged from within poll, by no thread of librdkafka.
        for name, value in {**config, "log.queue": True}.items():
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            if found.rd_kafka_conf_set(conf, name.encode(), shown.encode(), text, _TEXT_BYTES):
                raise _refused(text)
        on_delivery, on_error, on_log = callbacks
        found.rd_kafka_conf_set_dr_msg_cb(conf, on_delivery)
        found.rd_kafka_conf_set_error_cb(conf, on_error)
        found.rd_kafka_conf_set_log_cb(conf, on_log)
        handle: int | None = found.rd_kafka_new(_PRODUCER, conf, text, _TEXT_BYTES)
        if handle is None:
            raise _refused(text)
    except ck.KafkaException:
        found.rd_kafka_conf_destroy(conf)
        raise
    found.rd_kafka_set_log_queue(handle, None)
    return handle


def _refused(text: ctypes.Array[ctypes.c_char]) -> ck.KafkaException:
    reason = text.value.decode(errors="replace")
    return ck.KafkaException(ck.KafkaError(ck.KafkaError._INVALID_ARG, reason))  # noqa: SLF001 - confluent-kafka's spelling


def _callbacks(found: ctypes.CDLL, reports: DeliveryReports, logger: Any) -> tuple[Any, ...]:
    def on_delivery(_: int, reported: Any, __: int) -> None:
        message = reported.contents
        topic = found.rd_kafka_topic_name(message.topic).decode()
        key = ctypes.string_at(message.key, message.key_size) if message.key else None
        reports.add(topic, message.partition, key, ck.KafkaError(message.err))

    def on_error(handle: int, code: int, reason: bytes, _: int) -> None:
        if code == ck.KafkaError._FATAL:  # noqa: SLF001
            text = ctypes.create_string_buffer(_TEXT_BYTES)
            code, reason = found.rd_kafka_fatal_error(handle, text, _TEXT_BYTES), text.value
        reports.errors.on_error(ck.KafkaError(code, reason.decode(errors="replace")))

    def on_log(handle: int, level: int, kind: bytes, text: bytes) -> None:
        parts = (kind, found.rd_kafka_name(handle), text)
        shown = (part.decode(errors="replace") for part in parts)
        logger.log(_LOG_LEVELS[level], "%s [%s] %s", *shown)

    return _ON_DELIVERY(on_delivery), _ON_ERROR(on_error), _ON_LOG(on_log)


def _destroy(found: ctypes.CDLL, handle: int, _: tuple[Any, ...]) -> None:
    found.rd_kafka_destroy(handle)


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
