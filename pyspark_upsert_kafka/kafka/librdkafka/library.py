"""The library that confluent-kafka brings, for what confluent-kafka itself does not offer."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from functools import cache
from itertools import chain
from typing import Any

import confluent_kafka as ck


class Message(ctypes.Structure):
    """``rd_kafka_message_t`` of rdkafka.h, part of its stable interface."""

    _fields_ = (
        ("err", c_int), ("topic", c_size_t), ("partition", c_int32),
        ("value", c_size_t), ("value_size", c_size_t), ("key", c_size_t), ("key_size", c_size_t),
        ("offset", c_int64), ("private", c_size_t),
    )  # fmt: skip


class PartitionOffset(ctypes.Structure):
    """``rd_kafka_topic_partition_t`` of rdkafka.h, as far as it is set here."""

    _fields_ = (
        ("topic", c_size_t), ("partition", c_int32), ("offset", c_int64),
        ("metadata", c_size_t), ("metadata_size", c_size_t),
    )  # fmt: skip


_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "rd_kafka_conf_new": (c_void_p,),
    "rd_kafka_conf_destroy": (None, c_void_p),
    "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_conf_set_events": (None, c_void_p, c_int),
    "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_name": (c_char_p, c_void_p),
    "rd_kafka_set_log_queue": (c_int, c_void_p, c_void_p),
    "rd_kafka_topic_new": (c_void_p, c_void_p, c_char_p, c_void_p),
    "rd_kafka_topic_name": (c_char_p, c_size_t),
    "rd_kafka_topic_destroy": (None, c_void_p),
    "rd_kafka_produce_batch": (c_int, c_void_p, c_int32, c_int, c_void_p, c_int),
    "rd_kafka_fatal_error": (c_int, c_void_p, c_char_p, c_size_t),
    "rd_kafka_queue_get_main": (c_void_p, c_void_p),
    "rd_kafka_queue_poll": (c_void_p, c_void_p, c_int),
    "rd_kafka_queue_destroy": (None, c_void_p),
    "rd_kafka_event_type": (c_int, c_void_p),
    "rd_kafka_event_message_next": (POINTER(Message), c_void_p),
    "rd_kafka_event_error": (c_int, c_void_p),
    "rd_kafka_event_error_string": (c_char_p, c_void_p),
    "rd_kafka_event_log": (c_int, c_void_p, POINTER(c_char_p), POINTER(c_char_p), POINTER(c_int)),
    "rd_kafka_event_destroy": (None, c_void_p),
    "rd_kafka_metadata": (c_int, c_void_p, c_int, c_void_p, POINTER(c_void_p), c_int),
    "rd_kafka_metadata_destroy": (None, c_void_p),
    "rd_kafka_flush": (c_int, c_void_p, c_int),
    "rd_kafka_purge": (c_int, c_void_p, c_int),
    "rd_kafka_outq_len": (c_int, c_void_p),
    "rd_kafka_destroy": (None, c_void_p),
    "rd_kafka_queue_get_consumer": (c_void_p, c_void_p),
    "rd_kafka_consume_batch_queue": (c_ssize_t, c_void_p, c_int, c_void_p, c_size_t),
    "rd_kafka_message_destroy": (None, c_void_p),
    "rd_kafka_message_errstr": (c_char_p, c_void_p),
    "rd_kafka_topic_partition_list_new": (c_void_p, c_int),
    "rd_kafka_topic_partition_list_add": (c_void_p, c_void_p, c_char_p, c_int32),
    "rd_kafka_topic_partition_list_set_offset": (c_int, c_void_p, c_char_p, c_int32, c_int64),
    "rd_kafka_topic_partition_list_destroy": (None, c_void_p),
    "rd_kafka_assign": (c_int, c_void_p, c_void_p),
    "rd_kafka_query_watermark_offsets": (
        c_int,
        c_void_p,
        c_char_p,
        c_int32,
        POINTER(c_int64),
        POINTER(c_int64),
        c_int,
    ),
    "rd_kafka_last_error": (c_int,),
    "rd_kafka_init_transactions": (c_void_p, c_void_p, c_int),
    "rd_kafka_begin_transaction": (c_void_p, c_void_p),
    "rd_kafka_send_offsets_to_transaction": (c_void_p, c_void_p, c_void_p, c_void_p, c_int),
    "rd_kafka_commit_transaction": (c_void_p, c_void_p, c_int),
    "rd_kafka_abort_transaction": (c_void_p, c_void_p, c_int),
    "rd_kafka_consumer_group_metadata_new": (c_void_p, c_char_p),
    "rd_kafka_consumer_group_metadata_destroy": (None, c_void_p),
    "rd_kafka_error_code": (c_int, c_void_p),
    "rd_kafka_error_string": (c_char_p, c_void_p),
    "rd_kafka_error_is_fatal": (c_int, c_void_p),
    "rd_kafka_error_is_retriable": (c_int, c_void_p),
    "rd_kafka_error_txn_requires_abort": (c_int, c_void_p),
    "rd_kafka_error_destroy": (None, c_void_p),
    "rd_kafka_mem_malloc": (c_void_p, c_void_p, c_size_t),
    "rd_kafka_mem_free": (None, c_void_p, c_void_p),
}
"""The type of each function's result, and those of its arguments."""

DELIVERIES, LOGGED, ERROR = 0x1, 0x4, 0x8
"""The kinds of events: RD_KAFKA_EVENT_DR, _LOG and _ERROR."""

TEXT_BYTES = 512
"""For the text of an error."""

PRODUCER, CONSUMER = 0, 1
"""The kinds of clients: RD_KAFKA_PRODUCER and RD_KAFKA_CONSUMER."""


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
    """Whether librdkafka's functions can be reached, and the configuration is one of plain values, without callbacks."""
    given = (value for name, value in config.items() if name != "logger")
    return library() is not None and all(isinstance(value, bool | int | str) for value in given)


class Handles:
    """A client of the library and its queues, which are ended together, once, in the process that has opened them.

    Each is noted in the same step of the interpreter that opens it: Ctrl-C comes between two steps, and a client that
    nobody knows would keep its threads, and what they have fetched.
    """

    def __init__(self) -> None:
        self._clients: list[int] = []
        self._queues: list[int] = []
        self._process = os.getpid()

    @property
    def is_ours(self) -> bool:
        """Whether this process has opened them: a fork has no threads of them that could end."""
        return os.getpid() == self._process

    @property
    def client(self) -> int:
        """The client."""
        return self._clients[0]

    def open(self, found: ctypes.CDLL, kind: int, config: Mapping[str, Any]) -> int:
        """Opens a producer or a consumer that reports by events.

        Raises:
            KafkaException: The configuration is wrong.
        """
        text = ctypes.create_string_buffer(TEXT_BYTES)
        conf = found.rd_kafka_conf_new()
        try:
            for name, value in {**config, "log.queue": True}.items():
                shown = str(value).lower() if isinstance(value, bool) else str(value)
                if found.rd_kafka_conf_set(conf, name.encode(), shown.encode(), text, TEXT_BYTES):
                    raise _refused(text)
            found.rd_kafka_conf_set_events(conf, DELIVERIES | LOGGED | ERROR)
            opened = map(found.rd_kafka_new, (kind,), (conf,), (text,), (TEXT_BYTES,))
            self._clients.extend(filter(None, opened))
            if not self._clients:
                raise _refused(text)
        except ck.KafkaException:
            found.rd_kafka_conf_destroy(conf)
            raise
        found.rd_kafka_set_log_queue(self.client, None)
        return self.client

    def queue(self, get: Any) -> int:
        """A queue of the client, which this function of the library gets."""
        self._queues.extend(map(get, (self.client,)))
        return self._queues[-1]

    def end(self, found: ctypes.CDLL) -> None:
        """Ends what is open, and the client's threads."""
        if not self.is_ours:
            return
        destroyed = (
            map(found.rd_kafka_queue_destroy, self._queues),
            map(found.rd_kafka_destroy, self._clients),
        )
        deque(chain(*destroyed), maxlen=0)
        self._queues, self._clients = [], []


def _refused(text: ctypes.Array[ctypes.c_char]) -> ck.KafkaException:
    reason = text.value.decode(errors="replace")
    return ck.KafkaException(ck.KafkaError(ck.KafkaError._INVALID_ARG, reason))  # noqa: SLF001 - confluent-kafka's spelling
