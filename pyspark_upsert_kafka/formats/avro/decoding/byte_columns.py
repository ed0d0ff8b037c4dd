"""Columns made of bytes, read from all messages at once: binaries, texts, decimals, UUIDs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.cursors import Cursors
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
