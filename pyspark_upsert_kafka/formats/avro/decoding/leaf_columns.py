"""Columns of simple types, read from all messages at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.cursors import Cursors
from pyspark_upsert_kafka.formats.avro.decoding.plan import (
    BytesNode,
    EnumNode,
    MismatchNode,
    NullNode,
    NumberNode,
)
from pyspark_upsert_kafka.formats.binary.numbers import Numbers


def skip_bytes(cursors: Cursors, size: int | None) -> Numbers:
    """Where the bytes begin that end where the cursors are now."""
    if size is not None:
        start = cursors.at.copy()
        cursors.move(size)
        return start
    lengths = cursors.longs()
    wrong = (lengths < 0) | (lengths > cursors.end - cursors.at)
    if wrong.any():
        cursors.defer(wrong)
        lengths[wrong] = 0
    start = cursors.at.copy()
    cursors.at += lengths
    return start


def binaries(cursors: Cursors, start: Numbers) -> pa.BinaryArray:
    """The bytes from there to where the cursors are."""
    return cursors.buffer.slices(start, cursors.at)


def texts(cursors: Cursors, start: Numbers) -> pa.StringArray:
    """Those bytes as texts; a message with what is not UTF-8 is deferred."""
    column, wrong = cursors.buffer.texts(start, cursors.at)
    cursors.defer(wrong)
    return column


_HEX = np.frombuffer(bytes(range(256)).hex().encode(), "S2")
_DASHES = np.array([4, 6, 8, 10])


def uuids(cursors: Cursors, start: Numbers) -> pa.StringArray:
    """Sixteen bytes each, in hexadecimal digits with dashes."""
    data = cursors.buffer.data[start[:, np.newaxis] + np.arange(16)]
    pairs = [_HEX[data[:, at]] for at in range(16)]
    dash = np.full(start.size, b"-", "S1")
    for at in reversed(_DASHES):
        pairs.insert(at, dash)
    text = np.rec.fromarrays(pairs).tobytes()
    offsets = np.arange(start.size + 1, dtype=np.int32) * 36
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), start.size, buffers)


def decimals(cursors: Cursors, start: Numbers, kind: pa.Decimal128Type) -> pa.Array:
    """Big-endian two's complement, whose sign is spread over sixteen bytes.

    Longer ones are deferred to the row path: they may still be a small number.
    """
    lengths = cursors.at - start
    low = cursors.buffer.words[cursors.at - 8].byteswap().view(np.int64)
    high = cursors.buffer.words[cursors.at - 16].byteswap().view(np.int64)
    cursors.defer((lengths == 0) | (lengths > 16))
    short = lengths <= 8
    low = np.where(short, _signed(low, lengths), low)
    high = np.where(short, low >> 63, _signed(high, lengths - 8))
    cursors.defer(_beyond(high, low.view(np.uint64), kind.precision))
    buffer = pa.py_buffer(np.stack([low, high], axis=1))
    return pa.Array.from_buffers(kind, start.size, [None, buffer])


def _signed(numbers: Numbers, lengths: Numbers) -> Numbers:
    """The last so many bytes of each number, the first bit of them being the sign."""
    unused = 8 * np.clip(8 - lengths, 0, 7)
    return np.asarray((numbers << unused) >> unused)


def _beyond(high: Numbers, low: Numbers, precision: int) -> Numbers:
    """Which numbers of two halves have more digits."""
    (over, over_low), (under, under_low) = (
        divmod(bound, 1 << 64) for bound in (10**precision, -(10**precision))
    )
    too_large = (high > over) | ((high == over) & (low >= np.uint64(over_low)))
    too_small = (high < under) | ((high == under) & (low <= np.uint64(under_low)))
    return np.asarray(too_large | too_small)


Read = Callable[[Cursors], Any]
"""Reads one node of all messages and gives its column; None when no column wants it."""


def _null(node: NullNode) -> Read:
    kind = node.arrow
    return lambda cursors: None if kind is None else pa.nulls(len(cursors.at), kind)


def _mismatch(node: MismatchNode) -> Read:
    def read(cursors: Cursors) -> pa.Array:
        cursors.defer(np.ones(len(cursors.at), bool))
        return pa.nulls(len(cursors.at), node.arrow)

    return read


def _number(node: NumberNode) -> Read:
    raw = _integers(node) if node.wire in ("int", "long") else _RAW[node.wire]
    kind, through = node.arrow, node.through
    if kind is None:
        return lambda cursors: _nothing(raw(cursors))
    if pa.types.is_boolean(kind):
        return lambda cursors: pa.array(raw(cursors))
    last = [] if through else [f"int{kind.bit_width}"]

    def read(cursors: Cursors) -> pa.Array:
        numbers = raw(cursors)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            for dtype in (*through, *last):
                numbers = numbers.astype(dtype, copy=False)
        return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(numbers)])

    return read


def _nothing(_: Any) -> None:
    return None


def _integers(node: NumberNode) -> Callable[[Cursors], Numbers]:
    bound = 1 << (31 if node.wire == "int" else 63)
    scale = node.scale
    low, high = max(scale.low, -bound), min(scale.high, bound - 1)
    checked = (low, high) != (-(1 << 63), (1 << 63) - 1)

    def numbers(cursors: Cursors) -> Numbers:
        seen = cursors.longs()
        if checked:
            cursors.defer((seen < low) | (seen > high))
        if scale.times != 1:
            seen *= scale.times
        return seen if scale.over == 1 else seen // scale.over

    return numbers


def _booleans(cursors: Cursors) -> Numbers:
    seen = cursors.bytes()
    cursors.defer(seen > 1)
    return np.asarray(seen == 1)


_RAW: dict[str, Callable[[Cursors], Numbers]] = {
    "boolean": _booleans,
    "float": lambda cursors: cursors.next_words(4).astype("<u4").view("<f4"),
    "double": lambda cursors: cursors.next_words(8).view("<f8"),
}


def _sized(node: BytesNode) -> Read:
    size, kind = node.size, node.arrow
    if kind is None:
        return lambda cursors: _nothing(skip_bytes(cursors, size))
    if node.form == "decimal":
        return lambda cursors: decimals(cursors, skip_bytes(cursors, size), kind)
    column = {"bytes": binaries, "text": texts, "uuid": uuids}[node.form]
    return lambda cursors: column(cursors, skip_bytes(cursors, size))


def _symbol(node: EnumNode) -> Read:
    count = len(node.symbols)
    skipped = node.arrow is None
    known = np.array([skipped or symbol is not None for symbol in node.symbols] + [False])
    symbols = pa.array([*node.symbols, None], pa.string())

    def read(cursors: Cursors) -> pa.Array | None:
        numbers = cursors.longs()
        numbers[(numbers < 0) | (numbers > count)] = count
        cursors.defer(~known[numbers])
        return None if skipped else symbols.take(pa.array(numbers))

    return read


LEAVES: dict[type[Any], Callable[[Any], Read]] = {
    MismatchNode: _mismatch,
    NullNode: _null,
    NumberNode: _number,
    BytesNode: _sized,
    EnumNode: _symbol,
}
