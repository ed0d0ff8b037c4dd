"""What was found of a field to its column: a value, an array or a map for each message."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.binary.message_buffer import MessageBuffer
from pyspark_upsert_kafka.formats.binary.numbers import offsets_of
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.decoded_values import (
    Built,
    default_of,
    fits,
    key_order,
    struct,
    validity,
    with_nulls,
)
from pyspark_upsert_kafka.formats.protobuf.kinds import LENGTH, wire_type
from pyspark_upsert_kafka.formats.protobuf.occurrences import every, last
from pyspark_upsert_kafka.formats.protobuf.scanning import Slot
from pyspark_upsert_kafka.formats.protobuf.unselected_fields import Read

Build = Callable[[MessageBuffer, Slot, np.ndarray], Built]
"""What was found of a field to its column; bad are the messages that fall back to the row path for it."""

Value = Callable[[MessageBuffer, np.ndarray, np.ndarray], Built]
"""Numbers, or where slices start and their lengths, to a column of as many values."""


def one(column: Column, kind: pa.DataType, value: Value) -> Build:
    """Compiles what makes a column of single values."""
    has_slices = wire_type(column.field.type) == LENGTH
    default = default_of(column) if column.field.has_presence and column.fills else None

    def build(buffer: MessageBuffer, slot: Slot, starts: np.ndarray) -> Built:
        present = slot.present
        absent = starts if has_slices else np.zeros(len(present), np.uint64)
        found = last(slot, absent)
        values, bad = value(buffer, found.values, found.lengths)
        if not column.fills:
            bad &= present
            if not column.nullable:
                bad |= ~present
            return with_nulls(values, present), bad
        if default is None or present.all():
            return values, bad
        if not fits(column, default):
            return values, bad | ~present
        return with_nulls(values, present).fill_null(pa.scalar(default, kind)), bad & present

    return build


def array(column: Column, kind: pa.DataType, element: Value) -> Build:
    """Compiles what makes a column of arrays."""

    def build(buffer: MessageBuffer, slot: Slot, _: np.ndarray) -> Built:
        found = every(buffer, slot)
        values, bad = element(buffer, found.values, found.lengths)
        fallback = np.zeros(len(slot.present), np.bool_)
        fallback[found.rows[bad]] = True
        fallback[found.fallback] = True
        return _grouped(column, kind, found.rows, values, fallback), fallback

    return build


def entries(column: Column, kind: pa.DataType, read: Read) -> Build:
    """Compiles what makes a column of maps, given the one to read their entries."""

    def build(buffer: MessageBuffer, slot: Slot, _: np.ndarray) -> Built:
        found = every(buffer, slot)
        (keys, values), bad = read(buffer, found.values, found.values + found.lengths)
        order = key_order(found.rows, keys)
        keys, rows = keys.take(order), found.rows[order]
        again = (rows[1:] == rows[:-1]) & pc.equal(keys[1:], keys[:-1]).to_numpy(False)
        fallback = np.zeros(len(slot.present), np.bool_)
        fallback[found.rows[bad]] = True
        fallback[rows[1:][again]] = True
        both = [keys, values.take(order)]
        pairs = struct(kind.field(0).type, both, np.ones(len(rows), np.bool_))
        return _grouped(column, kind, rows, pairs, fallback), fallback

    return build


def _grouped(
    column: Column, kind: pa.DataType, rows: np.ndarray, values: pa.Array, fallback: np.ndarray
) -> pa.Array:
    """Values that stand side by side as one list for each message."""
    counts = np.bincount(rows, minlength=len(fallback))
    offsets = pa.py_buffer(offsets_of(counts).astype(np.int32))
    bits = None if column.fills else validity(counts > 0)
    return pa.Array.from_buffers(kind, len(fallback), [bits, offsets], children=[values])
