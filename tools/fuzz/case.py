"""A case: a table, and messages that its format must read, some of them spoiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

Peer = Callable[[Sequence[bytes]], "list[Any]"]
"""What another implementation makes of each message: its row as a dict, a `NoRow`, or UNKNOWN."""


class NoRow(str):
    """Why a peer cannot read a message."""

    __slots__ = ()


UNKNOWN = object()
"""A peer has no say about a message, or about a value."""


@dataclass(frozen=True)
class Table:
    """One side of a table.

    Args:
        format: The name of its format.
        schema: Its columns.
        side: ``key`` or ``value``.
        options: Options of the format as texts, by their names.
        files: Files that options name as ``{name}``, such as Protobuf's descriptors.
        schemas: The schemas of a registry by their ids, as texts.
        required: The columns that are part of the primary key.
    """

    format: str
    schema: StructType
    side: str = "value"
    options: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    schemas: Mapping[int, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    """Messages of one table.

    Args:
        table: The table.
        messages: Some good, some bad.
        expected: Rows that are known, because a row was written as a message that nobody has touched.
        places: The messages that must be these rows, in their order.
        rows: Rows to be written; None = those that are read.
        again: Whether what is read, written and read again is the same.
        peer: Another implementation.
    """

    table: Table
    messages: Sequence[bytes]
    expected: pa.RecordBatch | None = None
    places: np.ndarray = field(default_factory=lambda: np.array([], np.int64))
    again: bool = True
    peer: Peer | None = None

    def only(self, chosen: Sequence[int], copies: int = 1) -> Case:
        """The case with some of its messages, in their order, so many times."""
        known = {int(place): row for row, place in enumerate(self.places)}
        every = [*chosen] * copies
        places = [at for at, index in enumerate(every) if index in known]
        rows = [known[every[at]] for at in places]
        return replace(
            self,
            messages=[self.messages[index] for index in every],
            expected=None
            if self.expected is None
            else self.expected.take(pa.array(rows, pa.int64())),
            places=np.array(places, np.int64),
        )


def written(
    table: Table, messages: Sequence[bytes], rows: pa.RecordBatch, kept: Sequence[int], **more: Any
) -> Case:
    """A case of messages that were made of rows, of which some are still as they were.

    Args:
        table: The table.
        messages: One for each row, spoiled or not, and others behind them.
        rows: The rows.
        kept: The messages that must be their rows.
        more: Other arguments of `Case`.
    """
    places = np.array(kept, np.int64)
    return Case(table, messages, rows.take(pa.array(places)), places, **more)


_PIECES = [
    b"\0", b"\xff", b"\x80", b"\x7f", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf",
    b"\xfe\xff", b"\n", b"\r\n", b"\n\n", b" ", b"\t", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b";", b"'", b"#", b"*", b"1",
    b"null", b"\x01", b"\x02", b"\x0b", b"\x0c", b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\x80" * 9 + b"\x01", b"\xe9", b"0" * 30,
]  # fmt: skip

_WHOLE = [
    b"", b"\0", b"\n", b" ", b"\xef\xbb\xbf", b"\xff" * 20, b"\0" * 20, b"null", b"[]", b"{}", b'""', b"[" * 3000,
    b'{"a":' * 1000, b"1" * 5000, b"\x80" * 50, b"\x0b" * 200, b"\x0a\x7f" * 60,
]  # fmt: skip

Mutate = Callable[[Random, bytes], bytes]


def _cut(rng: Random, message: bytes) -> bytes:
    return message[: rng.randrange(len(message) + 1)]


def _flip(rng: Random, message: bytes) -> bytes:
    if not message:
        return b"\x01"
    at = rng.randrange(len(message))
    return message[:at] + bytes([message[at] ^ 1 << rng.randrange(8)]) + message[at + 1 :]


def _put(rng: Random, message: bytes) -> bytes:
    at = rng.randrange(len(message) + 1)
    return message[:at] + rng.choice(_PIECES) + message[at + rng.randrange(2) :]


def _twice(rng: Random, message: bytes) -> bytes:
    low, high = sorted((rng.randrange(len(message) + 1), rng.randrange(len(message) + 1)))
    return message[:high] + message[low:high] * rng.choice([1, 1, 1, 2, 40]) + message[high:]


def _out(rng: Random, message: bytes) -> bytes:
    low = rng.randrange(len(message) + 1)
    return message[:low] + message[low + rng.randrange(1, 6) :]


def _other(rng: Random, message: bytes) -> bytes:
    if not message:
        return message
    at = rng.randrange(len(message))
    return message[:at] + rng.randbytes(rng.randrange(1, 4)) + message[at + 1 :]


def _around(rng: Random, message: bytes) -> bytes:
    piece = rng.choice(_PIECES)
    return piece + message if rng.random() < 0.5 else message + piece


def _anything(rng: Random, _: bytes) -> bytes:
    return rng.choice(_WHOLE) if rng.random() < 0.6 else rng.randbytes(rng.randrange(20))


_EVERY = (_cut, _flip, _flip, _put, _put, _twice, _out, _other, _around)


def spoil(rng: Random, message: bytes) -> bytes:
    """A message with one or two of its bytes wrong, or another one altogether."""
    if rng.random() < 0.05:
        return _anything(rng, message)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        message = rng.choice(_EVERY)(rng, message)
    return message


def spoiled(
    rng: Random, messages: Sequence[bytes], share: float, mutate: Mutate = spoil
) -> tuple[list[bytes], list[int]]:
    """The messages, a share of them spoiled, and the places of the others."""
    out, kept = [], []
    for at, message in enumerate(messages):
        if rng.random() < share:
            out.append(mutate(rng, message) if rng.random() < 0.6 else spoil(rng, message))
        else:
            out.append(message)
            kept.append(at)
    return out, kept


def share_of_bad(rng: Random) -> float:
    """How many messages of a batch are spoiled."""
    return rng.choice([0.0, 0.0, 0.001, 0.01, 0.1, 0.3, 0.3, 0.7, 1.0])
