"""What was found of a field, put in order: the last value of each message, or every one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyspark_upsert_kafka.formats.binary.message_buffer import TOO_LONG, MessageBuffer
from pyspark_upsert_kafka.formats.binary.numbers import offsets_of
from pyspark_upsert_kafka.formats.protobuf.scanning import Chunk, Slot
from pyspark_upsert_kafka.formats.protobuf.wire import FIXED32, LENGTH, VARINT, wire_type

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Occurrences:
    """Values of a field.

    Args:
        rows: The message of each.
        values: The numbers, or where the slices start.
        lengths: The lengths of the slices; for numbers they have no meaning.
        fallback: Messages of which some could not be read.
    """

    rows: np.ndarray
    values: np.ndarray
    lengths: np.ndarray
    fallback: np.ndarray


def last(slot: Slot, absent: np.ndarray) -> Occurrences:
    """The last value of each message; where there is none, the one given."""
    count = len(slot.present)
    rows, fallback = np.arange(count), _NONE
    values, lengths = absent, np.zeros(count, np.int64)
    for chunk in slot.chunks:
        if len(chunk.rows) == count:
            values = chunk.values
            lengths = lengths if chunk.lengths is None else chunk.lengths
        else:
            values, lengths = values.copy(), lengths.copy()
            values[chunk.rows] = chunk.values
            lengths[chunk.rows] = 0 if chunk.lengths is None else chunk.lengths
    return Occurrences(rows, values, lengths, fallback)


def every(buffer: MessageBuffer, slot: Slot) -> Occurrences:
    """All values, those of one message side by side and in their order."""
    numbers = wire_type(slot.field.type)
    found = [
        _as_they_are(chunk)
        if chunk.lengths is None or numbers == LENGTH
        else _unpacked(buffer, numbers, chunk.rows, chunk.values, chunk.lengths)
        for chunk in slot.chunks
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        return _numbers(_NONE, _NONE if numbers == LENGTH else _NONE.astype(np.uint64), _NONE)
    rows = np.concatenate([each.rows for each in found])
    order = np.argsort(rows, kind="stable")
    return Occurrences(
        rows[order],
        np.concatenate([each.values for each in found])[order],
        np.concatenate([each.lengths for each in found])[order],
        np.concatenate([each.fallback for each in found]),
    )


def _as_they_are(chunk: Chunk) -> Occurrences:
    lengths = np.zeros(len(chunk.rows), np.int64) if chunk.lengths is None else chunk.lengths
    return Occurrences(chunk.rows, chunk.values, lengths, _NONE)


def _unpacked(
    buffer: MessageBuffer, numbers: int, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> Occurrences:
    """The numbers that stand side by side in some slices."""
    if numbers == VARINT:
        return _varints(buffer, rows, starts, lengths)
    size = 4 if numbers == FIXED32 else 8
    whole = lengths % size == 0
    fallback, counts = rows[~whole], lengths[whole] // size
    values = buffer.words[_places(starts[whole], counts, size)] & np.uint64((1 << 8 * size) - 1)
    return _numbers(np.repeat(rows[whole], counts), values, fallback)


def _varints(
    buffer: MessageBuffer, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> Occurrences:
    # A slice that ends within a number would run into the next one.
    whole = (lengths == 0) | (buffer.data[starts + lengths - 1] < 0x80)
    fallback = rows[~whole]
    rows, starts, lengths = rows[whole], starts[whole], lengths[whole]
    at = _places(starts, lengths, 1)
    ends = np.flatnonzero(buffer.data[at] < 0x80) + 1
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
    values, taken = buffer.varints(at[begins])
    per_slice = np.diff(np.searchsorted(ends, offsets_of(lengths), side="right"))
    of_row = np.repeat(rows, per_slice)
    return _numbers(of_row, values, np.concatenate([fallback, of_row[taken == TOO_LONG]]))


def _places(starts: np.ndarray, counts: np.ndarray, size: int) -> np.ndarray:
    """Where each part of some slices stands: a number of parts from each start on, all of one size."""
    offsets = offsets_of(counts)
    first = np.repeat(starts - offsets[:-1] * size, counts)
    return np.asarray(first + np.arange(len(first)) * size)


def _numbers(rows: np.ndarray, values: np.ndarray, fallback: np.ndarray) -> Occurrences:
    return Occurrences(rows, values, np.zeros(len(rows), np.int64), fallback)
