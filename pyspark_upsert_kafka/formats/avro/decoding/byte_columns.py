"""Columns made of bytes, read in step: binaries, texts, decimals, UUIDs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.avro.decoding.positions import Positions
from pyspark_upsert_kafka.formats.bytewise.numbers import Numbers


def skipped(positions: Positions, size: int | None) -> Numbers:
    """Where the bytes begin that end where the positions are now."""
    if size is not None:
        start = positions.at.copy()
        positions.move(size)
        return start
    lengths = positions.longs()
    wrong = (lengths < 0) | (lengths > positions.end - positions.at)
    if wrong.any():
        positions.leave(wrong)
        lengths[wrong] = 0
    start = positions.at.copy()
    positions.at += lengths
    return start


def binaries(positions: Positions, start: Numbers) -> pa.BinaryArray:
    """The bytes from there to where the positions are."""
    return positions.octets.slices(start, positions.at)


def texts(positions: Positions, start: Numbers) -> pa.StringArray:
    """Those bytes as texts; a message with what is not UTF-8 is left."""
    column, wrong = positions.octets.texts(start, positions.at)
    positions.leave(wrong)
    return column


_HEX = np.frombuffer(bytes(range(256)).hex().encode(), "S2")
_DASHES = np.array([4, 6, 8, 10])


def uuids(positions: Positions, start: Numbers) -> pa.StringArray:
    """Sixteen bytes each, in hexadecimal digits with dashes."""
    data = positions.octets.data[start[:, np.newaxis] + np.arange(16)]
    pairs = [_HEX[data[:, at]] for at in range(16)]
    dash = np.full(start.size, b"-", "S1")
    for at in reversed(_DASHES):
        pairs.insert(at, dash)
    text = np.rec.fromarrays(pairs).tobytes()
    offsets = np.arange(start.size + 1, dtype=np.int32) * 36
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), start.size, buffers)


def decimals(positions: Positions, start: Numbers, kind: pa.Decimal128Type) -> pa.Array:
    """Big-endian two's complement, whose sign is spread over sixteen bytes.

    More bytes than that are left to the exact way: they may still be a small number.
    """
    lengths = positions.at - start
    low = positions.octets.words[positions.at - 8].byteswap().view(np.int64)
    high = positions.octets.words[positions.at - 16].byteswap().view(np.int64)
    positions.leave((lengths == 0) | (lengths > 16))
    short = lengths <= 8
    low = np.where(short, _signed(low, lengths), low)
    high = np.where(short, low >> 63, _signed(high, lengths - 8))
    positions.leave(_beyond(high, low.view(np.uint64), kind.precision))
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
