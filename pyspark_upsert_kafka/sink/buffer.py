"""The keyed buffer: a sender that keeps the last change per topic and key (Flink's ``ReducingUpsertWriter``)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.options import BufferFlush
from pyspark_upsert_kafka.formats.binary.numbers import Numbers
from pyspark_upsert_kafka.kafka.interfaces import Sender
from pyspark_upsert_kafka.kafka.sending.messages import Headers, Messages, Row

_SOON_S = 1.0
"""How long the clock may take to finish sending, before that is cancelled."""


class LastChanges:
    """Keeps the last change per topic and key of the messages that it is given.

    Args:
        max_keys: The number of keys at which it is full; it is full with `MAX_HELD_BYTES` of keys, values and headers, too.
    """

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._last: dict[tuple[str, bytes | None], Row] = {}
        # At least as many as it holds: changes that were overwritten are included until all are counted again.
        self._bytes = 0

    def add(self, messages: Messages) -> Iterator[Messages]:
        """Takes messages, and gives all that it holds each time that it is full."""
        rows = list(messages.rows())
        names = [(topic, key) for topic, key, *_ in rows]
        sizes = _sizes(messages)
        begin = 0
        while begin < len(rows):
            most = begin + self._max_keys - len(self._last)
            end, size = _fitting(sizes, begin, most, MAX_HELD_BYTES - self._bytes)
            self._last.update(zip(names[begin:end], rows[begin:end], strict=True))
            self._bytes += size
            if len(self._last) >= self._max_keys or self._has_too_many_bytes():
                yield from self.drain()
            begin = end

    def drain(self) -> Iterator[Messages]:
        """Gives all changes that it holds, if any; it is empty then."""
        if self._last:
            messages = Messages.from_rows(self._last.values())
            self._last, self._bytes = {}, 0
            yield messages

    def _has_too_many_bytes(self) -> bool:
        """Whether it holds too many; changes that were overwritten are gone from it."""
        if self._bytes < MAX_HELD_BYTES:
            return False
        self._bytes = sum(
            len(key or b"") + len(value or b"") + _size_of_headers(headers)
            for _, key, value, _, headers in self._last.values()
        )
        # Counting costs little only if much can come before the next time.
        return self._bytes >= MAX_HELD_BYTES // 2


def _fitting(sizes: Numbers, begin: int, most: int, room: int) -> tuple[int, int]:
    """The end of the messages from ``begin`` on that fit into a number of bytes, and their size; at least one."""
    end = min(most, len(sizes))
    fit = int(np.searchsorted(sizes[begin:end].cumsum(), room, side="right"))
    end = begin + max(fit, 1)
    return end, int(sizes[begin:end].sum())


def _sizes(messages: Messages) -> Numbers:
    """Bytes of each message's key, value and headers."""
    sizes: Numbers = np.zeros(len(messages), np.int64)
    for column in (messages.keys, messages.values):
        sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy()
    if messages.headers is not None:
        sizes += np.fromiter(map(_size_of_headers, messages.headers), np.int64, len(sizes))
    return sizes


def _size_of_headers(headers: Headers | None) -> int:
    return sum(len(name) + len(content or b"") for name, content in headers or ())


class KeyedBuffer:
    """Sends on only the last change of each key since the last flush.

    It flushes at a number of distinct keys or of bytes, when the interval has passed (a thread of its
    own sees to that while no row arrives), and by `flush`. There is no order between keys; dropping
    an overwritten change is harmless, since it would be overwritten by key anyway.
    """

    def __init__(self, sender: Sender, when: BufferFlush) -> None:
        self._sender, self._interval_s = sender, when.interval_s
        self._changes = LastChanges(when.max_rows)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._failure: Exception | None = None
        self._clock = threading.Thread(target=self._flush_at_intervals, daemon=True)
        self._clock.start()

    def send(self, messages: Messages) -> None:
        """Takes messages; passes on what a full buffer gives.

        Raises:
            DeliveryError: A message sent earlier was refused.
        """
        with self._lock:
            self._raise_failure()
            self._pass_on(self._changes.add(messages))

    def flush(self) -> None:
        """Sends what is left and returns when the broker has confirmed everything."""
        with self._lock:
            self._raise_failure()
            self._pass_on(self._changes.drain())
            self._sender.flush()

    def close(self) -> None:
        """Stops the clock and closes the sender; what is still in the buffer is not sent.

        The clock may be sending to a broker that does not answer: that is cancelled, since it must not send later,
        when another attempt may have written newer changes.
        """
        self._closed.set()
        if not self._lock.acquire(timeout=_SOON_S):
            self._sender.cancel()
            self._lock.acquire()
        try:
            self._sender.close()
        finally:
            self._lock.release()
        self._clock.join()

    def cancel(self) -> None:
        """Ends, from another thread, what waits in `send` or `flush`; after it there is only `close`."""
        self._closed.set()
        self._sender.cancel()

    def _pass_on(self, parts: Iterable[Messages]) -> None:
        for messages in parts:
            self._sender.send(messages)

    def _flush_at_intervals(self) -> None:
        interval_s = min(self._interval_s, threading.TIMEOUT_MAX)
        while self._failure is None and not self._closed.wait(interval_s):
            with self._lock:
                if self._closed.is_set():
                    return
                try:
                    self._pass_on(self._changes.drain())
                except Exception as failure:  # noqa: BLE001 - the task must see whatever it was
                    self._failure = failure

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
