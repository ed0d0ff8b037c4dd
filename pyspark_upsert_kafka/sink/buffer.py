"""The keyed buffer: a sender that keeps the last change per topic and key (Flink's ``ReducingUpsertWriter``)."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from pyspark_upsert_kafka.core.options import BufferFlush
from pyspark_upsert_kafka.kafka.interfaces import Sender
from pyspark_upsert_kafka.kafka.sending.messages import Messages
from pyspark_upsert_kafka.sink.newest_changes import NewestChanges

_SOON_S = 1.0
"""How long the clock may take to finish sending, before that is cancelled."""


class KeyedBuffer:
    """Sends on only the last change of each key since the last flush.

    It flushes at a number of distinct keys or of bytes, when the interval has passed (a thread of its
    own sees to that while no row arrives), and by `flush`. There is no order between keys; dropping
    an overwritten change is harmless, since it would be overwritten by key anyway.

    Args:
        sender: Sends what the buffer passes on.
        when: The number of keys and the interval.
        closed: Is set when the buffer ends. The thread of the interval waits for it, an interval at a time; so tests
            give one whose time they move.
    """

    def __init__(
        self, sender: Sender, when: BufferFlush, closed: threading.Event | None = None
    ) -> None:
        self._sender, self._interval_s = sender, when.interval_s
        self._changes = NewestChanges(when.max_rows)
        self._lock = threading.Lock()
        self._closed = closed or threading.Event()
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
