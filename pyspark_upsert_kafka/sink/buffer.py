"""The keyed buffer: a sender that keeps the last change per topic and key (Flink's ``ReducingUpsertWriter``)."""

from __future__ import annotations

import threading
from itertools import repeat
from typing import Any

from pyspark_upsert_kafka.core.options import BufferFlush
from pyspark_upsert_kafka.kafka.client import Messages, Sender


class KeyedBuffer:
    """Sends on only the last change of each key since the last flush.

    It flushes at so many distinct keys, when the interval has passed (a thread of its own sees to that
    while no row arrives), and when it is told to. There is no order between keys; dropping an overwritten
    change is harmless, since it would be overwritten by key anyway.
    """

    def __init__(self, sender: Sender, when: BufferFlush) -> None:
        self._sender, self._when = sender, when
        self._last: dict[Any, tuple[Any, ...]] = {}
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
        changes = list(zip(*_columns(messages), strict=False))
        names = list(zip(*_columns(messages)[:2], strict=False))
        begin = 0
        while begin < len(changes):
            with self._lock:
                self._raise_failure()
                end = begin + self._when.max_rows - len(self._last)
                self._last.update(zip(names[begin:end], changes[begin:end], strict=True))
                if len(self._last) >= self._when.max_rows:
                    self._pass_on()
            begin = end

    def flush(self) -> None:
        """Sends what is left and returns when the broker has confirmed everything."""
        with self._lock:
            self._raise_failure()
            self._pass_on()
            self._sender.flush()

    def close(self) -> None:
        """Stops the clock and closes the sender; what is still in the buffer is not sent."""
        self._closed.set()
        self._clock.join()
        self._sender.close()

    def _pass_on(self) -> None:
        if self._last:
            topics, keys, values, timestamps, headers = map(
                list, zip(*self._last.values(), strict=True)
            )
            self._last = {}
            self._sender.send(Messages(topics, keys, values, timestamps, headers))

    def _flush_at_intervals(self) -> None:
        while not self._closed.wait(self._when.interval_s):
            with self._lock:
                try:
                    self._pass_on()
                except Exception as failure:  # noqa: BLE001 - the task must see whatever it was
                    self._failure = failure
                    return

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
