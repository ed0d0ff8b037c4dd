"""A hash of keys that is the same on every machine and in every version: tasks share keys by it, and state is kept by it.

Each value is a sequence of words of eight bytes, zeros after its end: those of a text in UTF-8, those of a number as Arrow
has it. Word after word is multiplied into the hash of its row, and at the end all bits are mixed (the finalizer of SplitMix64).
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.arrow import canonical_floats

Words: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint64]]"

_WORD = 8
"""Bytes of a word."""

_LONG = 1024
"""A text of more bytes is hashed by itself: word after word is worth it where many rows have as many."""

_NULL = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def row_hashes(rows: pa.RecordBatch) -> Words:
    """A hash of each row; rows that are equal as keys have the same.

    Args:
        rows: Columns of simple types. -0.0 is 0.0, and NaN is NaN.
    """
    hashes = np.zeros(rows.num_rows, dtype=np.uint64)
    for column in rows.columns:
        values = _values(canonical_floats(column))
        if column.null_count:
            values[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
        hashes = _with(hashes, values)
    return _mixed(hashes)


def equal_keys(column: pa.Array, other: pa.Array) -> pa.BooleanArray:
    """Whether they are the same key: NaN is, and -0.0 is 0.0."""
    equal = pc.fill_null(pc.equal(column, other), False)
    if not pa.types.is_floating(column.type):
        return equal
    # NULL is no NaN, as of a message whose key lacks the column.
    are_nan = pc.and_(pc.is_nan(column), pc.is_nan(other))
    return pc.or_(equal, pc.fill_null(are_nan, False))


def differing_keys(column: pa.Array, other: pa.Array) -> pa.BooleanArray:
    """Whether both have a value, and not the same key."""
    both = pc.and_(column.is_valid(), other.is_valid())
    return pc.and_(both, pc.invert(equal_keys(column, other)))


def _values(column: pa.Array) -> Words:
    """A number for each value: equal values have the same. That of NULL means nothing."""
    if not len(column) or pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.uint64)
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        column = column.cast(pa.binary() if pa.types.is_large_binary(column.type) else pa.string())
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return _texts(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    size = column.type.bit_width // 8
    data = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    data = data[column.offset * size : (column.offset + len(column)) * size]
    if size <= _WORD:
        return data.view(f"<u{size}").astype(np.uint64)
    words = data.view("<u8").reshape(len(column), size // _WORD)
    hashes = np.zeros(len(column), dtype=np.uint64)
    for at in range(words.shape[1]):
        hashes = _with(hashes, words[:, at])
    return hashes


def _texts(column: pa.Array) -> Words:
    """A hash of each text, or each sequence of bytes."""
    _, offsets, data = column.buffers()
    borders = np.frombuffer(offsets, dtype=np.int32)[column.offset :][: len(column) + 1]
    begin, end = int(borders[0]), int(borders[-1])
    text = data[begin:end].to_pybytes() if data is not None else b""
    begins = (borders[:-1] - begin).astype(np.int64)
    lengths = np.diff(borders).astype(np.int64)
    # A word from any byte on; those past the end are there to be read, and zeros.
    padded = text + bytes(_WORD)
    words = np.ndarray((len(text) + 1,), dtype="<u8", buffer=padded, strides=(1,))
    # Multiplied, since short words are numbers as small as lengths; and none is that of NULL.
    hashes = (lengths.astype(np.uint64) + np.uint64(2)) * _NULL
    left = np.flatnonzero((lengths > 0) & (lengths <= _LONG))
    at = 0
    while len(left):
        rest = lengths[left] - at
        found = words[begins[left] + at]
        short = rest < _WORD
        unused = (_WORD * (_WORD - rest[short])).astype(np.uint64)
        found[short] &= np.uint64(2**64 - 1) >> unused
        hashes[left] = _with(hashes[left], found)
        left, at = left[rest > _WORD], at + _WORD
    for row in np.flatnonzero(lengths > _LONG):
        value = text[begins[row] : begins[row] + lengths[row]]
        digest = hashlib.blake2b(value, digest_size=_WORD).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _with(hashes: Words, words: Words) -> Words:
    """The hashes with another word in each."""
    mixed = (hashes ^ words) * _MULTIPLIER
    return mixed ^ (mixed >> np.uint64(32))


def _mixed(hashes: Words) -> Words:
    """The hashes, mixed so that each bit depends on all bits."""
    mixed = (hashes ^ (hashes >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
