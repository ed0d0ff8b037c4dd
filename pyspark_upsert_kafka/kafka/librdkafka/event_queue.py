"""What a client of the library reports beside messages: errors of its own, lines of its log, and deliveries.

It is fetched as events and not by callbacks: whatever is raised in a callback, Ctrl-C too, ctypes drops, and a message
that was not delivered would be taken for one that was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ctypes import CDLL, c_char_p, c_int, create_string_buffer

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.librdkafka.library import (
    DELIVERIES,
    ERROR,
    LOGGED,
    TEXT_BYTES,
    Handles,
    Message,
)

_LOG_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # of logging, by syslog's


class EventQueue:
    """The events of a client.

    Args:
        library: The library.
        handles: The client.
        errors: Where errors are reported to.
        logger: Where the log goes to.
        deliver: Called with each message of a delivery report.
    """

    def __init__(
        self,
        library: CDLL,
        handles: Handles,
        errors: ReportedErrors,
        logger: logging.Logger,
        deliver: Callable[[Message], None] | None = None,
    ) -> None:
        self._library, self._client = library, handles.client
        self._errors, self._logger, self._deliver = errors, logger, deliver
        self._handle = handles.queue(library.rd_kafka_queue_get_main)

    def poll(self, timeout_s: float) -> None:
        """Waits for events and passes them on."""
        timeout_ms = int(timeout_s * 1000)
        while event := self._library.rd_kafka_queue_poll(self._handle, timeout_ms):
            timeout_ms = 0
            try:
                self._pass_on(event)
            finally:
                self._library.rd_kafka_event_destroy(event)

    def _pass_on(self, event: int) -> None:
        kind = self._library.rd_kafka_event_type(event)
        if kind == DELIVERIES and self._deliver is not None:
            while message := self._library.rd_kafka_event_message_next(event):
                self._deliver(message.contents)
        elif kind == ERROR:
            self._errors.on_error(self._error(event))
        elif kind == LOGGED:
            self._log(event)

    def _error(self, event: int) -> ck.KafkaError:
        code = self._library.rd_kafka_event_error(event)
        reason = self._library.rd_kafka_event_error_string(event)
        if code == ck.KafkaError._FATAL:  # noqa: SLF001
            text = create_string_buffer(TEXT_BYTES)
            code = self._library.rd_kafka_fatal_error(self._client, text, TEXT_BYTES)
            reason = text.value
        return ck.KafkaError(code, reason.decode(errors="replace"))

    def _log(self, event: int) -> None:
        kind, text, level = c_char_p(), c_char_p(), c_int()
        self._library.rd_kafka_event_log(event, kind, text, level)
        parts = (kind.value, self._library.rd_kafka_name(self._client), text.value)
        shown = ((part or b"").decode(errors="replace") for part in parts)
        self._logger.log(_LOG_LEVELS[level.value], "%s [%s] %s", *shown)
