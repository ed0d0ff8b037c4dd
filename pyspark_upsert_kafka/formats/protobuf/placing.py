"""What was found of a field to its column: a value, an array or a map for each message."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.bytewise.numbers import offsets_of
from pyspark_upsert_kafka.formats.bytewise.octets import Octets
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.kinds import LENGTH, wire_type
from pyspark_upsert_kafka.formats.protobuf.occurrences import every, last
from pyspark_upsert_kafka.formats.protobuf.scanning import Slot
from pyspark_upsert_kafka.formats.protobuf.unread import Read
from pyspark_upsert_kafka.formats.protobuf.values import (
    Built,
    default_of,
    fits,
    key_order,
    struct,
    validity,
    with_nulls,
)

Build = Callable[[Octets, Slot, np.ndarray], Built]
"""What was found of a field to its column; bad are the messages that are odd for it."""

Value = Callable[[Octets, np.ndarray, np.ndarray], Built]
"""Numbers, or where slices start and their lengths, to a column of as many values."""


def one(column: Column, kind: pa.DataType, value: Value) -> Build:
    """Compiles the way to a column of single values."""
    has_slices = wire_type(column.field.type) == LENGTH
    default = default_of(column) if column.field.has_presence and column.fills else None

    def build(octets: Octets, slot: Slot, starts: np.ndarray) -> Built:
        present = slot.present
        absent = starts if has_slices else np.zeros(len(present), np.uint64)
        found = last(slot, absent)
        values, bad = value(octets, found.values, found.lengths)
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
    """Compiles the way to a column of arrays."""

    def build(octets: Octets, slot: Slot, _: np.ndarray) -> Built:
        found = every(octets, slot)
        values, bad = element(octets, found.values, found.lengths)
        odd = np.zeros(len(slot.present), np.bool_)
        odd[found.rows[bad]] = True
        odd[found.odd] = True
        return _grouped(column, kind, found.rows, values, odd), odd

    return build


def entries(column: Column, kind: pa.DataType, read: Read) -> Build:
    """Compiles the way to a column of maps, given the one to read their entries."""

    def build(octets: Octets, slot: Slot, _: np.ndarray) -> Built:
        found = every(octets, slot)
        (keys, values), bad = read(octets, found.values, found.values + found.lengths)
        order = key_order(found.rows, keys)
        keys, rows = keys.take(order), found.rows[order]
        again = (rows[1:] == rows[:-1]) & pc.equal(keys[1:], keys[:-1]).to_numpy(False)
        odd = np.zeros(len(slot.present), np.bool_)
        odd[found.rows[bad]] = True
        odd[rows[1:][again]] = True
        both = [keys, values.take(order)]
        pairs = struct(kind.field(0).type, both, np.ones(len(rows), np.bool_))
        return _grouped(column, kind, rows, pairs, odd), odd

    return build


def _grouped(
    column: Column, kind: pa.DataType, rows: np.ndarray, values: pa.Array, odd: np.ndarray
) -> pa.Array:
    """Values that stand side by side as one list for each message."""
    counts = np.bincount(rows, minlength=len(odd))
    offsets = pa.py_buffer(offsets_of(counts).astype(np.int32))
    bits = None if column.fills else validity(counts > 0)
    return pa.Array.from_buffers(kind, len(odd), [bits, offsets], children=[values])
