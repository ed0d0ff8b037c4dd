"""The last change of each key, bounded in keys and in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
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
        names = list(zip(messages.topic_of_each(), messages.keys, strict=True))
        rows = list(messages.rows())
        begin = 0
        while begin < len(rows):
            most = begin + self._max_keys - len(self._last)
            end, size = _fitting(messages, begin, most, MAX_HELD_BYTES - self._bytes)
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
