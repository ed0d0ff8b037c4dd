"""Messages to send, as parallel columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TypeVar

T = TypeVar("T")

Headers = Sequence[tuple[str, bytes | None]]

Row = tuple[str, bytes | None, bytes | None, int, Headers | None]
"""Topic, key, value, timestamp (0 = now) and headers of one message."""


@dataclass(frozen=True)
class Messages:
    """Messages to send, as parallel columns; None for timestamps or headers = none has any.

    Args:
        topics: One topic for all, or one for each message.
        keys: Message keys; None only in a dead letter.
        values: Message values; None = a tombstone.
        timestamps: Record timestamps in ms since the epoch; 0 = now.
        headers: Headers of each message.
    """

    topics: str | Sequence[str]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: Sequence[int] | None = None
    headers: Sequence[Headers | None] | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> Messages:
        """The messages that these rows are; there must be one at least.

        >>> Messages.from_rows([("t", b"k", b"v", 0, None)])
        Messages(topics=['t'], keys=[b'k'], values=[b'v'], timestamps=[0], headers=[None])
        """
        topics, keys, values, timestamps, headers = map(list, zip(*rows, strict=True))
        return cls(topics, keys, values, timestamps, headers)

    def __len__(self) -> int:
        return len(self.keys)

    def topic_of_each(self) -> Iterable[str]:
        """The topic of each message.

        >>> list(Messages("t", [b"k", b"l"], [b"v", None]).topic_of_each())
        ['t', 't']
        """
        return repeat(self.topics, len(self)) if isinstance(self.topics, str) else self.topics

    def rows(self) -> Iterator[Row]:
        """The messages one by one.

        >>> list(Messages("t", [b"k"], [b"v"]).rows())
        [('t', b'k', b'v', 0, None)]
        """
        timestamps = repeat(0, len(self)) if self.timestamps is None else self.timestamps
        headers = repeat(None, len(self)) if self.headers is None else self.headers
        return zip(self.topic_of_each(), self.keys, self.values, timestamps, headers, strict=True)

    def filter(self, mask: Sequence[bool]) -> Messages:
        """The messages for which the mask is true.

        >>> Messages("t", [b"k", b"l"], [b"v", None]).filter([False, True])
        Messages(topics='t', keys=[b'l'], values=[None], timestamps=None, headers=None)
        """
        return Messages(
            self.topics if isinstance(self.topics, str) else list(compress(self.topics, mask)),
            list(compress(self.keys, mask)),
            list(compress(self.values, mask)),
            None if self.timestamps is None else list(compress(self.timestamps, mask)),
            None if self.headers is None else list(compress(self.headers, mask)),
        )

    def followed_by(self, others: Messages) -> Messages:
        """These messages and then others, which have the same kinds of columns."""

        def both(ours: Sequence[T] | None, theirs: Sequence[T] | None) -> list[T] | None:
            return None if ours is None or theirs is None else [*ours, *theirs]

        return Messages(
            self.topics if isinstance(self.topics, str) else [*self.topics, *others.topics],
            [*self.keys, *others.keys],
            [*self.values, *others.values],
            both(self.timestamps, others.timestamps),
            both(self.headers, others.headers),
        )
