"""The keyed buffer: a sender that keeps the last change per topic and key (Flink's ``ReducingUpsertWriter``)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.core.options.frozen_options import BufferFlush
from pyspark_upsert_kafka.kafka.clients import Sender
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages

Numbers: TypeAlias = npt.NDArray[np.signedinteger]
Mask: TypeAlias = npt.NDArray[np.bool_]

_FIRST_LOOK = 50_000
"""How many messages come at least before those that they overwrite are dropped, unless it may be full before."""


class NewestChanges:
    """Keeps the newest change per topic and key of the messages that it is given.

    What is overwritten is dropped when as many messages have come as were left the last time, so that each is looked at a
    few times at most, and memory holds about twice the changes that it keeps.

    Args:
        max_keys: The number of keys at which it is full.
        max_bytes: The bytes of keys, values and headers with which it is full, too.
    """

    def __init__(self, max_keys: int, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_keys, self._max_bytes = max_keys, max_bytes
        self._parts: list[Messages] = []
        self._count = self._bytes = 0
        self._kept = 0  # of the count, after it was last looked for what is overwritten

    def add(self, messages: Messages) -> Iterator[Messages]:
        """Takes messages, and gives all that it holds for each time that it was full; its keys are counted a little late."""
        sizes = _sizes(messages)
        begin = 0
        while begin < len(sizes):
            most, room = self._look_at - self._count, self._max_bytes - self._bytes
            end, size = _fitting(sizes, begin, most, room)
            self._parts.append(messages.part(begin, end))
            self._count += end - begin
            self._bytes += size
            begin = end
            has_many_bytes = self._bytes >= self._max_bytes
            if has_many_bytes or self._count >= self._look_at:
                yield from self._full()
            # Looking costs little only if much can come before the next time.
            if has_many_bytes and self._bytes >= self._max_bytes // 2:
                yield from self.drain()

    def drain(self) -> Iterator[Messages]:
        """Gives all changes that it holds, if any; it is empty then."""
        yield from self._full()
        if self._parts:
            (messages,) = self._parts
            self._hold([])
            yield messages

    @property
    def _look_at(self) -> int:
        """The number of messages at which it looks for what is overwritten."""
        return max(2 * self._kept, min(self._max_keys, self._kept + _FIRST_LOOK))

    def _full(self) -> Iterator[Messages]:
        """Drops what is overwritten, and gives all that it held for each time that it was full."""
        if self._count == self._kept:
            return
        ends, newest = flushes(_numbered(self._parts), self._max_keys)
        parts, self._parts = deque(self._parts), []
        kept = Messages.joined(list(_filtered(parts, newest)))
        begin = 0
        for end in newest.cumsum()[np.array(ends, np.int64) - 1].tolist():
            yield kept.part(begin, end)
            begin = end
        self._hold([kept.part(begin, len(kept))] if begin < len(kept) else [])

    def _hold(self, parts: list[Messages]) -> None:
        """Holds these messages and no others; none of them is overwritten."""
        self._parts = parts
        self._count = self._kept = sum(map(len, parts))
        self._bytes = sum(int(_sizes(part).sum()) for part in parts)


def flushes(keys: Numbers, max_keys: int) -> tuple[list[int], Mask]:
    """When messages fill a buffer of distinct keys, and which of them it flushes: the newest of each key.

    Args:
        keys: The number of each message's key, from 0.
        max_keys: The number of distinct keys at which the buffer is flushed.

    Returns:
        The ends of the stretches of messages that fill it, and for each message whether no message of its key follows in its
        stretch. The last stretch may be one that does not fill it.

    >>> ends, newest = flushes(np.array([0, 1, 0, 2, 0, 0]), 3)
    >>> ends, newest.tolist()
    ([4], [False, True, True, True, False, True])
    """
    places = np.empty(int(keys.max(initial=-1)) + 1, keys.dtype)
    newest: Mask = np.empty(len(keys), np.bool_)
    ends: list[int] = []
    begin, size = 0, 2 * max_keys
    while begin < len(keys):
        stretch = keys[begin : begin + size]
        distinct = _first_of_each(stretch, places).cumsum(dtype=keys.dtype)
        count = int(np.searchsorted(distinct, max_keys)) + 1
        is_full = count <= len(stretch)
        if is_full or begin + size >= len(keys):
            stretch = stretch[:count]
            newest[begin : begin + len(stretch)] = _last_of_each(stretch, places)
            begin, size = begin + len(stretch), 2 * max_keys
            ends += [begin] if is_full else []
        else:
            size *= 2
    return ends, newest


def _first_of_each(keys: Numbers, places: Numbers) -> Mask:
    """For each key whether it is the first of its number; ``places`` has room for each number."""
    numbers = np.arange(len(keys), dtype=keys.dtype)
    places[keys] = len(keys)
    np.minimum.at(places, keys, numbers)
    first: Mask = places[keys] == numbers
    return first


def _last_of_each(keys: Numbers, places: Numbers) -> Mask:
    """For each key whether it is the last of its number; ``places`` has room for each number."""
    numbers = np.arange(len(keys), dtype=keys.dtype)
    places[keys] = -1
    np.maximum.at(places, keys, numbers)
    last: Mask = places[keys] == numbers
    return last


def _numbered(parts: Sequence[Messages]) -> Numbers:
    """A number for each message, the same for those of one topic and key."""
    keys = _codes(pa.chunked_array([part.keys for part in parts]))
    topics = {part.topics if isinstance(part.topics, str) else None for part in parts}
    if len(topics) == 1 and None not in topics:
        return keys
    names = pa.chunked_array([pa.array(list(part.topic_of_each()), pa.string()) for part in parts])
    of_topics = _codes(names)
    both = keys.astype(np.int64) * (int(of_topics.max(initial=0)) + 1) + of_topics
    numbers: Numbers = np.unique(both, return_inverse=True)[1]
    return numbers


def _codes(column: pa.ChunkedArray) -> Numbers:
    """The place of each value among the distinct ones."""
    encoded = column.dictionary_encode(null_encoding="encode").chunks
    # All chunks have one dictionary.
    return np.concatenate([chunk.indices.to_numpy() for chunk in encoded])


def _filtered(parts: deque[Messages], mask: Mask) -> Iterator[Messages]:
    """The messages for which the mask is true; each part is released as soon as it is filtered."""
    begin = 0
    while parts:
        part = parts.popleft()
        wanted = mask[begin : begin + len(part)]
        begin += len(part)
        yield part if wanted.all() else part.filter(wanted)


def _fitting(sizes: Numbers, begin: int, most: int, room: int) -> tuple[int, int]:
    """The end of the messages from ``begin`` on that fit into a number of bytes, and their size; at least one."""
    cumulated = sizes[begin : begin + most].cumsum()
    count = max(1, int(np.searchsorted(cumulated, room, side="right")))
    return begin + count, int(cumulated[count - 1])


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


_SOON_S = 1.0
"""How long the clock may take to finish sending, before that is cancelled."""


class KeyedBuffer:
    """Sends on only the last change of each key since the last flush.

    It flushes at a number of distinct keys or of bytes, when the interval has passed (a thread of its
    own sees to that while no row arrives), and by `flush`. There is no order between keys; dropping
    an overwritten change is harmless, since it would be overwritten by key anyway.

    Args:
        sender: Sends what the buffer passes on.
        when: The number of keys and of bytes, and the interval.
        closed: Is set when the buffer ends. The thread of the interval waits for it, an interval at a time; so tests
            give one whose time they move.
    """

    def __init__(
        self, sender: Sender, when: BufferFlush, closed: threading.Event | None = None
    ) -> None:
        self._sender, self._interval_s = sender, when.interval_s
        self._changes = NewestChanges(when.max_rows, when.max_bytes)
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
