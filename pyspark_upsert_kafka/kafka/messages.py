"""Messages to send, as parallel columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_upsert_kafka.core.metadata import Headers

T = TypeVar("T")

Row = tuple[str, bytes | None, bytes | None, int, Headers | None]
"""Topic, key, value, timestamp (0 = now) and headers of one message."""


def octets(values: Iterable[bytes | None]) -> pa.LargeBinaryArray:
    """Keys or values as a column."""
    return pa.array(values, pa.large_binary())


def list_of(column: pa.LargeBinaryArray) -> list[bytes | None]:
    """The keys or values of a column, which NumPy lists faster than Arrow's ``to_pylist``.

    >>> list_of(octets([b"k", None]))
    [b'k', None]
    """
    values: list[bytes | None] = column.to_numpy(zero_copy_only=False).tolist()
    return values


@dataclass(frozen=True)
class Messages:
    """Messages to send, as parallel columns; None for timestamps or headers = none has any.

    Args:
        topics: One topic for all, or one for each message.
        keys: Message keys; null only in a dead letter.
        values: Message values; null = a tombstone.
        timestamps: Record timestamps in ms since the epoch; 0 = now.
        headers: Headers of each message.
        partition: The partition of all of them; None = each goes to that of its key.
    """

    topics: str | Sequence[str]
    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    timestamps: Sequence[int] | None = None
    headers: Sequence[Headers | None] | None = None
    partition: int | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Messages:
        """The messages that these rows are; there must be one at least.

        >>> Messages.from_rows([("t", b"k", b"v", 7, None)]).timestamps
        [7]
        """
        topics, keys, values, timestamps, headers = map(list, zip(*rows, strict=True))
        return cls(
            topics,
            octets(keys),
            octets(values),
            timestamps if any(timestamps) else None,
            headers if any(headers) else None,
        )

    def __len__(self) -> int:
        return len(self.keys)

    def topic_of_each(self) -> Iterable[str]:
        """The topic of each message.

        >>> list(Messages("t", octets([b"k", b"l"]), octets([b"v", None])).topic_of_each())
        ['t', 't']
        """
        return repeat(self.topics, len(self)) if isinstance(self.topics, str) else self.topics

    def by_topic(self) -> Iterator[tuple[str, Messages]]:
        """The messages of each topic, in their order."""
        if isinstance(self.topics, str):
            yield self.topics, self
            return
        topics = np.array(self.topics, dtype=object)
        for topic in dict.fromkeys(self.topics):
            yield topic, self.filter(topics == topic)

    def rows(self) -> Iterator[Row]:
        """The messages one by one.

        >>> list(Messages("t", octets([b"k"]), octets([b"v"])).rows())
        [('t', b'k', b'v', 0, None)]
        """
        timestamps = repeat(0, len(self)) if self.timestamps is None else self.timestamps
        headers = repeat(None, len(self)) if self.headers is None else self.headers
        keys, values = list_of(self.keys), list_of(self.values)
        return zip(self.topic_of_each(), keys, values, timestamps, headers, strict=True)

    def filter(self, mask: npt.NDArray[np.bool_]) -> Messages:
        """The messages for which the mask is true.

        >>> messages = Messages("t", octets([b"k", b"l"]), octets([b"v", None]))
        >>> list(messages.filter(np.array([False, True])).rows())
        [('t', b'l', None, 0, None)]
        """
        kept = pa.array(mask)
        return Messages(
            self.topics if isinstance(self.topics, str) else list(compress(self.topics, mask)),
            self.keys.filter(kept),
            self.values.filter(kept),
            None if self.timestamps is None else list(compress(self.timestamps, mask)),
            None if self.headers is None else list(compress(self.headers, mask)),
            self.partition,
        )

    def part(self, begin: int, end: int) -> Messages:
        """Some of the messages, in their order; their keys and values are not copied.

        >>> list(Messages("t", octets([b"k", b"l"]), octets([b"v", None])).part(1, 2).rows())
        [('t', b'l', None, 0, None)]
        """
        return Messages(
            self.topics if isinstance(self.topics, str) else self.topics[begin:end],
            self.keys[begin:end],
            self.values[begin:end],
            None if self.timestamps is None else self.timestamps[begin:end],
            None if self.headers is None else self.headers[begin:end],
            self.partition,
        )

    @classmethod
    def joined(cls, parts: Sequence[Messages]) -> Messages:
        """The messages of all parts, one part after the other; there must be one at least, and none of a given partition.

        >>> first, second = (Messages("t", octets([key]), octets([b"v"]), at) for key, at in [(b"k", [7]), (b"l", None)])
        >>> Messages.joined([first, second]).timestamps
        [7, 0]
        """
        first, *others = parts
        if not others:
            return first
        is_one = isinstance(first.topics, str) and all(p.topics == first.topics for p in others)
        return cls(
            first.topics if is_one else [name for part in parts for name in part.topic_of_each()],
            pa.concat_arrays([part.keys for part in parts]),
            pa.concat_arrays([part.values for part in parts]),
            _joined([(part.timestamps, len(part)) for part in parts], 0),
            _joined([(part.headers, len(part)) for part in parts], None),
        )


def _joined(columns: Sequence[tuple[Sequence[T] | None, int]], missing: T) -> list[T] | None:
    """The columns one after another, with this value in place of those that are None; None = all are."""
    if all(column is None for column, _ in columns):
        return None
    return [
        value
        for column, count in columns
        for value in (repeat(missing, count) if column is None else column)
    ]
