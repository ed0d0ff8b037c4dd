"""Messages to send, as parallel columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

T = TypeVar("T")

Headers = Sequence[tuple[str, bytes | None]]

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
    """

    topics: str | Sequence[str]
    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    timestamps: Sequence[int] | None = None
    headers: Sequence[Headers | None] | None = None

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
        )

    def followed_by(self, others: Messages) -> Messages:
        """These messages and then others, which have the same kinds of columns."""

        def both(ours: Sequence[T] | None, theirs: Sequence[T] | None) -> list[T] | None:
            return None if ours is None or theirs is None else [*ours, *theirs]

        return Messages(
            self.topics if isinstance(self.topics, str) else [*self.topics, *others.topics],
            pa.concat_arrays([self.keys, others.keys]),
            pa.concat_arrays([self.values, others.values]),
            both(self.timestamps, others.timestamps),
            both(self.headers, others.headers),
        )
