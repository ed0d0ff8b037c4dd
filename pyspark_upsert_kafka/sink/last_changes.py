"""The last change of each key, bounded in keys and in bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
from pyspark_upsert_kafka.formats.binary.numbers import Numbers
from pyspark_upsert_kafka.kafka.messages import Headers, Messages, Row


class LastChanges:
    """Keeps the last change per topic and key of the messages that it is given.

    Args:
        max_keys: It is full with so many keys, or with `MAX_HELD_BYTES` of keys, values and headers.
    """

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._last: dict[tuple[str, bytes | None], Row] = {}
        # At most so many: what was overwritten is counted until all are counted anew.
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
        """All that it holds, if there is anything, and then holds no more."""
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
    """Where messages from ``begin`` on end that fit into so many bytes, and their size; at least one."""
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
