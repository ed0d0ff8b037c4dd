"""The keyed buffer: a sender that keeps the last change per topic and key (Flink's ``ReducingUpsertWriter``)."""

from __future__ import annotations

import threading
from itertools import chain, repeat
from typing import Any

from pyspark_upsert_kafka.core.options import BufferFlush
from pyspark_upsert_kafka.kafka.interfaces import Headers, Messages, Sender

_MOST_BYTES = 64 * 1024 * 1024
"""Of keys, values and headers in the buffer: at that many it is flushed, however few its keys are."""

_SOON_S = 1.0
"""For the clock to finish what it sends, before closing goes on without it."""


class KeyedBuffer:
    """Sends on only the last change of each key since the last flush.

    It flushes at so many distinct keys or at so many bytes, when the interval has passed (a thread of its
    own sees to that while no row arrives), and when it is told to. There is no order between keys; dropping
    an overwritten change is harmless, since it would be overwritten by key anyway.
    """

    def __init__(self, sender: Sender, when: BufferFlush) -> None:
        self._sender, self._when = sender, when
        self._last: dict[Any, tuple[Any, ...]] = {}
        # At most so many: what was overwritten is counted until all are counted anew.
        self._bytes = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._sender_is_open = True
        self._failure: Exception | None = None
        self._clock = threading.Thread(target=self._flush_at_intervals, daemon=True)
        self._clock.start()

    def send(self, messages: Messages) -> None:
        """Takes messages; passes on what a full buffer gives.

        Raises:
            DeliveryError: A message sent earlier was refused.
        """
        changes = list(zip(*_columns(messages), strict=False))
        names = list(zip(*_columns(messages)[:2], strict=False))
        begin = 0
        while begin < len(changes):
            with self._lock:
                self._raise_failure()
                most = begin + self._when.max_rows - len(self._last)
                end, size = _fitting(messages, begin, most, _MOST_BYTES - self._bytes)
                self._last.update(zip(names[begin:end], changes[begin:end], strict=True))
                self._bytes += size
                if len(self._last) >= self._when.max_rows or self._is_full():
                    self._pass_on()
            begin = end

    def flush(self) -> None:
        """Sends what is left and returns when the broker has confirmed everything."""
        with self._lock:
            self._raise_failure()
            self._pass_on()
            self._sender.flush()

    def close(self) -> None:
        """Stops the clock and closes the sender; what is still in the buffer is not sent.

        A clock that is just sending may have to wait for a broker that does not answer. Nobody waits for
        that: it closes the sender itself when it is done.
        """
        self._closed.set()
        if self._lock.acquire(timeout=_SOON_S):
            try:
                self._close_sender()
            finally:
                self._lock.release()
            self._clock.join(_SOON_S)

    def _is_full(self) -> bool:
        """Whether the buffer holds too many bytes: changes that were overwritten are gone from it."""
        if self._bytes < _MOST_BYTES:
            return False
        self._bytes = sum(
            len(key or b"") + len(value or b"") + _size_of_headers(headers)
            for _, key, value, _, headers in self._last.values()
        )
        # Counting costs little only if much can come before the next time.
        return self._bytes >= _MOST_BYTES // 2

    def _pass_on(self) -> None:
        if self._last:
            topics, keys, values, timestamps, headers = map(
                list, zip(*self._last.values(), strict=True)
            )
            self._last, self._bytes = {}, 0
            self._sender.send(Messages(topics, keys, values, timestamps, headers))

    def _flush_at_intervals(self) -> None:
        interval_s = min(self._when.interval_s, threading.TIMEOUT_MAX)
        while self._failure is None and not self._closed.wait(interval_s):
            with self._lock:
                try:
                    self._pass_on()
                except Exception as failure:  # noqa: BLE001 - the task must see whatever it was
                    self._failure = failure
        if self._closed.is_set():
            with self._lock:
                self._close_sender()

    def _close_sender(self) -> None:
        if self._sender_is_open:
            self._sender_is_open = False
            self._sender.close()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _columns(messages: Messages) -> list[Any]:
    topics: Any = messages.topics
    return [
        repeat(topics) if isinstance(topics, str) else topics,
        messages.keys,
        messages.values,
        repeat(0) if messages.timestamps is None else messages.timestamps,
        repeat(None) if messages.headers is None else messages.headers,
    ]


def _fitting(messages: Messages, begin: int, most: int, room: int) -> tuple[int, int]:
    """Where messages from ``begin`` on end that fit into so many bytes, and their size; at least one."""
    end = min(most, len(messages))
    while (size := _size(messages, begin, end)) > room and end - begin > 1:
        end = begin + (end - begin) // 2
    return end, size


def _size(messages: Messages, begin: int, end: int) -> int:
    """Bytes of these messages' keys, values and headers."""
    contents = chain(messages.keys[begin:end], messages.values[begin:end])
    size = sum(map(len, filter(None, contents)))
    if messages.headers is not None:
        size += sum(map(_size_of_headers, messages.headers[begin:end]))
    return size


def _size_of_headers(headers: Headers | None) -> int:
    return sum(len(name) + len(content or b"") for name, content in headers or ())
