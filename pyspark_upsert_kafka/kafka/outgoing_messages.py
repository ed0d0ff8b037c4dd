"""Messages to send, as parallel columns; the partition of each key; those that were not delivered, whichever client sends them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.kafka.failures import SECURITY_HINT, ClientErrors

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


_ONE_SPOILS_THE_BATCH = frozenset({2, 10, 18, 32, 87})
"""Kafka's error codes CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP,
INVALID_RECORD: for one message a broker refuses all that came in a batch with it."""

TOO_LARGE_HINT = "(see the topic's 'max.message.bytes' and 'properties.max.request.size')"
"""Where to look when a message is too large: to append to a sentence."""


class Undelivered:
    """Counts the messages that were not delivered; the first of them is the error that the task has.

    A message that failed only because another one of its batch was refused does not count as the first: the other one does.
    """

    def __init__(self) -> None:
        self._first: DeliveryError | None = None
        self._first_refused_with_batch = False
        self._first_cause: tuple[str, int | None, int | None] | None = None
        self._count = self._with_first_cause = 0

    def __bool__(self) -> bool:
        return self._first is not None

    def add(
        self, error: DeliveryError, code: int | None, *, refused_with_batch: bool = False
    ) -> None:
        """Takes note of a message that was not delivered.

        Args:
            error: What went wrong with it.
            code: The error's code in Kafka's protocol; None = it has none.
            refused_with_batch: Whether nothing is wrong with it, but with another message of its batch.
        """
        cause = (error.topic, error.partition, code)
        if self._first is None or (self._first_refused_with_batch and not refused_with_batch):
            self._first, self._first_cause = error, cause
            self._first_refused_with_batch = refused_with_batch
        self._count += 1
        self._with_first_cause += cause == self._first_cause

    def raise_first(self) -> None:
        """Does nothing as long as every message was delivered.

        Raises:
            DeliveryError: The first message that was not, and how many were not.
        """
        first = self._first
        if first is None:
            return
        reason = first.reason
        if self._first_cause is not None and self._first_cause[2] in _ONE_SPOILS_THE_BATCH:
            reason = in_a_batch(reason, self._with_first_cause)
        # The client's own error, if one is being handled, says nothing more.
        raise type(first)(first.topic, first.partition, first.key, reason, self._count) from None


def in_a_batch(reason: str, count: int) -> str:
    """The reason why a message was refused, together with others of its batch.

    >>> in_a_batch("Invalid timestamp", 1)
    'Invalid timestamp'
    >>> in_a_batch("Invalid timestamp", 3)
    'Invalid timestamp, for at least one of the 3 messages of the batch that begins with this key'
    """
    if count == 1:
        return reason
    return (
        f"{reason}, for at least one of the {count} messages of the batch that begins with this key"
    )


def raise_if_fatal(errors: ClientErrors) -> None:
    """Does nothing as long as brokers may confirm messages yet.

    Raises:
        BrokerError: The client is refused, for so long that it will stay so, or has no token to log in with.
    """
    if (lost := errors.lost_login) is not None:
        raise type(lost)(f"Nothing can be written. {lost}") from None
    fatal = errors.fatal_error
    if fatal is not None:
        raise BrokerError(f"Nothing can be written: {fatal}.{SECURITY_HINT}") from None


def larger_than_queue(size: int) -> str:
    """Why a message is refused that would not fit even into an empty queue."""
    return (
        f"a message of {size} bytes does not fit into the client's queue: raise "
        "'properties.buffer.memory' (bytes) or 'properties.queue.buffering.max.kbytes'"
    )


_MULTIPLIER, _SEED, _BITS = 0x5BD1E995, 0x9747B28C, 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition to which the Java client, and this connector, send a key.

    >>> partition_of(b'{"user_region":"Asia"}', 4)
    0
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """The hash of Kafka's ``Utils.murmur2``, as an unsigned number of 32 bits.

    >>> murmur2(b"foobar") - 2**32  # from Kafka's own UtilsTest
    -790332482
    """
    state = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _BITS
        part = (part ^ part >> 24) * _MULTIPLIER & _BITS
        state = state * _MULTIPLIER & _BITS ^ part
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _BITS
    state = (state ^ state >> 13) * _MULTIPLIER & _BITS
    return state ^ state >> 15
