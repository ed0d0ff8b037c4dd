"""The library that confluent-kafka brings, for what that itself does not offer: its functions, a client of it, events, tokens to log in.

Events are fetched and not given to callbacks: whatever is raised in a callback, Ctrl-C too, ctypes drops, and a message
that was not delivered would be taken for one that was. That a broker throttles a client is no event: its callback runs no code of
Python, in which Ctrl-C could be raised.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from ctypes import (
    CDLL,
    CFUNCTYPE,
    POINTER,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_ssize_t,
    c_void_p,
    create_string_buffer,
)
from functools import cache, partial
from io import StringIO
from itertools import chain
from typing import Any, Protocol

import confluent_kafka as ck

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.logins.login_tokens import TOKENS, Token
from pyspark_upsert_kafka.logins.token_providers import OWN_WAY


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


_ON_THROTTLED = CFUNCTYPE(None, c_void_p, c_void_p, c_int32, c_int, c_void_p)
"""``throttle_cb`` of rdkafka.h: the client, the broker's name, its id, the time in ms, what the client was given for callbacks."""

_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "rd_kafka_conf_new": (c_void_p,),
    "rd_kafka_conf_destroy": (None, c_void_p),
    "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
    "rd_kafka_conf_set_events": (None, c_void_p, c_int),
    "rd_kafka_conf_set_throttle_cb": (None, c_void_p, _ON_THROTTLED),
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
    "rd_kafka_opaque": (c_void_p, c_void_p),
    "rd_kafka_oauthbearer_set_token": (
        c_int,
        c_void_p,
        c_char_p,
        c_int64,
        c_char_p,
        POINTER(c_char_p),
        c_size_t,
        c_char_p,
        c_size_t,
    ),
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

MAY_BE_CALLED = "Native functions"
"""Where a client's configuration has ``False`` if librdkafka's functions may not be called for it.

No option gives it: their names are in lower case.
"""

_SWITCH = "PYSPARK_UPSERT_KAFKA_NATIVE"
"""The environment variable that turns all of this off."""


def is_on() -> bool:
    """Whether librdkafka's functions may be called.

    Raises:
        OptionError: The environment variable has a value that means nothing.
    """
    value = os.environ.get(_SWITCH, "on")
    if value not in ("on", "off"):
        raise OptionError(
            f"Invalid value of the environment variable '{_SWITCH}': expected 'on' or 'off', but is {value!r}."
        )
    return value == "on"


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
    """Whether librdkafka's functions can be reached, and the configuration is one of plain values, without callbacks.

    By ``aws_iam`` confluent-kafka gets tokens, which librdkafka knows only by name.
    """
    given = (value for name, value in config.items() if name not in ("logger", TOKENS))
    is_plain = all(isinstance(value, bool | int | str) for value in given)
    return (
        is_plain
        and config.get(OWN_WAY) != "aws_iam"
        and may_be_called(config)
        and library() is not None
    )


def may_be_called(config: Mapping[str, Any]) -> bool:
    """Whether neither the environment nor the option has turned them off for a client with this configuration."""
    return is_on() and config.get(MAY_BE_CALLED, True)


class Handles:
    """A client of the library and its queues, which are ended together, once, in the process that has opened them.

    Each is noted in the same step of the interpreter that opens it: Ctrl-C comes between two steps, and a client that
    nobody knows would keep its threads, and what they have fetched.
    """

    def __init__(self) -> None:
        self._clients: list[int] = []
        self._queues: list[int] = []
        self._process = os.getpid()
        self.throttled = StringIO()
        """A line for each time that a broker throttles the client: of `_ON_THROTTLED` the arguments."""
        self._on_throttled = _ON_THROTTLED(partial(print, file=self.throttled))
        self.before_end: Callable[[], object] = lambda: None
        """Called before the client is ended."""

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
            found.rd_kafka_conf_set_throttle_cb(conf, self._on_throttled)
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
        self.before_end()
        destroyed = (
            map(found.rd_kafka_queue_destroy, self._queues),
            map(found.rd_kafka_destroy, self._clients),
        )
        deque(chain(*destroyed), maxlen=0)
        self._queues, self._clients = [], []


def _refused(text: ctypes.Array[ctypes.c_char]) -> ck.KafkaException:
    reason = text.value.decode(errors="replace")
    return ck.KafkaException(ck.KafkaError(ck.KafkaError._INVALID_ARG, reason))  # noqa: SLF001 - confluent-kafka's spelling


_LOG_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # of logging, by syslog's


class ErrorReports(Protocol):
    """Where a client reports errors of its own."""

    def on_error(self, error: ck.KafkaError, /) -> None:
        """Takes note of one."""

    def on_throttled(self, broker: int, time_ms: int, /) -> None:
        """Takes note that a broker holds answers back; 0 ms = no longer."""


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
        errors: ErrorReports,
        logger: logging.Logger,
        deliver: Callable[[Message], None] | None = None,
    ) -> None:
        self._library, self._client = library, handles.client
        self._throttled = handles.throttled
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
        if self._throttled.tell():
            lines = self._throttled.getvalue().splitlines()
            self._throttled.seek(0)
            self._throttled.truncate()
            for line in lines:
                broker, time_ms = line.split()[2:4]
                self._errors.on_throttled(int(broker), int(time_ms))

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
        return self.error(code, reason.decode(errors="replace"))

    def error(self, code: int, reason: str | None = None) -> ck.KafkaError:
        """An error of the client; in the place of "fatal error" the one that was.

        Args:
            code: Its code.
            reason: What is said of it; None = what librdkafka says of each of that code.
        """
        if code == ck.KafkaError._FATAL:  # noqa: SLF001
            text = create_string_buffer(TEXT_BYTES)
            code = self._library.rd_kafka_fatal_error(self._client, text, TEXT_BYTES)
            reason = text.value.decode(errors="replace")
        return ck.KafkaError(code) if reason is None else ck.KafkaError(code, reason)

    def _log(self, event: int) -> None:
        kind, text, level = c_char_p(), c_char_p(), c_int()
        self._library.rd_kafka_event_log(event, kind, text, level)
        parts = (kind.value, self._library.rd_kafka_name(self._client), text.value)
        shown = ((part or b"").decode(errors="replace") for part in parts)
        self._logger.log(_LOG_LEVELS[level.value], "%s [%s] %s", *shown)


logger = logging.getLogger("pyspark_upsert_kafka")


class LoginProducer(ck.Producer):  # type: ignore[misc]
    """confluent-kafka's producer, which `Login` can refer to without keeping it."""


class LoginConsumer(ck.Consumer):  # type: ignore[misc]
    """The same for its consumer, which waits with its end for a token that is being set."""

    before_end: Callable[[], object] = staticmethod(lambda: None)

    def close(self) -> None:
        """Ends the consumer."""
        self.before_end()
        super().close()


class Login:
    """Sets the token by which a client logs in, from any thread, as long as the client is open.

    Args:
        client: A client of ours, or one of confluent-kafka: a `LoginProducer`, a `LoginConsumer` or an ``AdminClient``.
    """

    def __init__(self, client: Any) -> None:
        self._client = weakref.ref(client)
        self._lock = threading.Lock()
        self._has_ended = False
        handles = getattr(client, "handles", client)
        if hasattr(handles, "before_end"):
            handles.before_end = self._end

    @property
    def is_open(self) -> bool:
        """Whether the client is there, and has not ended."""
        return not self._has_ended and self._client() is not None

    def set_token(self, token: Token) -> None:
        """Logs in by this token from now on."""
        client = self._client()  # kept until the lock is given back, which its end takes
        if client is None:
            return
        with self._lock:
            if self._has_ended:
                return
            pairs = [part.encode() for pair in token.extensions.items() for part in pair]
            reason = create_string_buffer(TEXT_BYTES)
            found: Any = library()
            refused = found.rd_kafka_oauthbearer_set_token(
                _pointer(client), token.text.encode(), int(token.expires_at * 1000), token.principal.encode(),
                (c_char_p * len(pairs))(*pairs), len(pairs), reason, TEXT_BYTES,
            )  # fmt: skip
        if refused:
            logger.warning(
                "A client does not take its token: %s", reason.value.decode(errors="replace")
            )

    def _end(self) -> None:
        with self._lock:
            self._has_ended = True


@cache
def can_log_in() -> bool:
    """Whether tokens of confluent-kafka's clients can be set: where such a client has librdkafka's, it must be found."""
    found = library()
    if found is None:
        return False
    client = LoginProducer({"log_level": 0})
    return bool(found.rd_kafka_opaque(_pointer(client)) == id(client))


def _pointer(client: Any) -> int | None:
    """The client of the library. confluent-kafka's objects begin with it, and it refers to them in turn."""
    if hasattr(client, "handles"):
        return int(client.handles.client)
    return c_void_p.from_address(id(client) + object.__basicsize__).value
