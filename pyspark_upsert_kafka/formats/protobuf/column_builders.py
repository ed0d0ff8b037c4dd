"""Columns of Arrow put together: of what was found of a field a value, an array or a map for each message.

What makes a column also says which of its values are bad: those that the row path must look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StringType

from pyspark_upsert_kafka.formats.binary.message_buffer import MessageBuffer
from pyspark_upsert_kafka.formats.binary.numbers import offsets_of
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.descriptors import enum_names
from pyspark_upsert_kafka.formats.protobuf.occurrences import every, last
from pyspark_upsert_kafka.formats.protobuf.scanning import Slot
from pyspark_upsert_kafka.formats.protobuf.wire import LENGTH, Kind, wire_type

Built = tuple[pa.Array, np.ndarray]
"""A column, and which of its values are bad."""

Build = Callable[[MessageBuffer, Slot, np.ndarray], Built]
"""From what was found of a field to its column; bad are the messages that fall back to the row path because of it."""

Value = Callable[[MessageBuffer, np.ndarray, np.ndarray], Built]
"""Numbers, or where slices start and their lengths, to a column of as many values."""

Read = Callable[[MessageBuffer, np.ndarray, np.ndarray], "tuple[list[pa.Array], np.ndarray]"]
"""Messages, by where each starts and ends, to their columns, and which of them fall back to the row path."""


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
        if not _has_room(column, default):
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


def all_good(array: pa.Array) -> Built:
    """The column with none of its values bad."""
    return array, np.zeros(len(array), np.bool_)


def with_nulls(array: pa.Array, present: np.ndarray) -> pa.Array:
    """The column with NULL where its value is not present."""
    if present.all():
        return array
    if pa.types.is_struct(array.type):
        return struct(array.type, [array.field(i) for i in range(array.type.num_fields)], present)
    buffers = [validity(present), *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def struct(kind: pa.DataType, children: list[pa.Array], present: np.ndarray) -> pa.Array:
    """A column of structs, NULL where not present; Arrow does not compare it with its fields' nullability."""
    bits = None if present.all() else validity(present)
    return pa.Array.from_buffers(kind, len(present), [bits], children=children)


def validity(present: np.ndarray) -> pa.Buffer:
    """The bits by which Arrow knows what is not NULL."""
    return pa.array(present).buffers()[1]


def default_of(column: Column) -> Any:
    """The default of a field with presence, as a value of its column; None = nothing, zero or empty."""
    value = column.field.default_value
    if column.field.containing_type.GetOptions().map_entry:
        value = type(value)()  # of an enum too: to the runtime it is 0, and not the first value
    if column.field.type == Kind.ENUM and isinstance(column.type, StringType):
        return enum_names(column.field.enum_type)[value]
    return value or None


def _has_room(column: Column, default: Any) -> bool:
    """Whether a default has room in its column."""
    bits = BITS.get(type(column.type), 64)
    return not isinstance(default, int) or -(1 << (bits - 1)) <= default < 1 << (bits - 1)


def key_order(rows: np.ndarray, keys: pa.Array) -> pa.Array:
    """The order of a map's entries: by row, and in a row by key."""
    sortable = keys.cast(pa.uint8()) if pa.types.is_boolean(keys.type) else keys
    table = pa.table({"row": rows, "key": sortable})
    return pc.sort_indices(table, [("row", "ascending"), ("key", "ascending")])
