"""Bytes of whole columns: how they are joined to fields, and fields of many values made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_packed
from pyspark_upsert_kafka.formats.protobuf.kinds import LENGTH, wire_type
from pyspark_upsert_kafka.formats.protobuf.spelling import Fill
from pyspark_upsert_kafka.formats.protobuf.values import key_order
from pyspark_upsert_kafka.formats.protobuf.wire import binary_column, offsets_of, varint_column

Pieces = list[pa.Array]
"""Binary columns that stand side by side; NULL is nothing."""

Spell = Callable[[bytes, pa.Array, np.ndarray], Pieces]
"""Values with the tag before each, but nothing where not present."""

Writer = Callable[[pa.Array], Pieces]
"""A column to its field in each message."""


def joined(pieces: Pieces, count: int) -> pa.Array:
    """The pieces of each row as one."""
    if not pieces:
        return pa.array([b""] * count, pa.binary())
    if len(pieces) == 1:
        return pieces[0].fill_null(b"")
    return pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement=b"")


def tag_of(field: Any, wire: int) -> bytes:
    """What stands before a value of a field."""
    number, tag = field.number << 3 | wire, bytearray()
    while number >= 0x80:
        tag.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*tag, number])


def with_length(tag: bytes, bodies: pa.Array, present: np.ndarray) -> Pieces:
    """Bytes with tag and length before them, and nothing where not present."""
    return [varint_column(tag, lengths_of(bodies), present), bodies]


def lengths_of(bodies: pa.Array) -> np.ndarray:
    """How many bytes each one has."""
    lengths: np.ndarray = pc.binary_length(bodies).fill_null(0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.uint64)


def _per_row(lists: pa.Array, elements: pa.Array) -> pa.Array:
    """The bytes of each list's elements, which stand side by side already."""
    counts = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = offsets_of(lengths_of(elements).astype(np.int64))[offsets_of(counts)]
    return binary_column(offsets, elements.buffers()[2])


def array(column: Column, spell: Spell, fill: Fill) -> Writer:
    """Compiles the writer of a repeated field, given how to spell and to fill its elements."""
    tag = tag_of(column.field, wire_type(column.field.type))
    tag_of_all = tag_of(column.field, LENGTH) if is_packed(column.field) else None

    def write(arrays: pa.Array) -> Pieces:
        values = fill(arrays.flatten())
        each = b"" if tag_of_all else tag
        pieces = spell(each, values, np.ones(len(values), np.bool_))
        lists = _per_row(arrays, joined(pieces, len(values)))
        if tag_of_all is None:
            return [lists]
        return with_length(tag_of_all, lists, lengths_of(lists) > 0)

    return write


def entries(column: Column, spells: Sequence[Spell], fill: Fill) -> Writer:
    """Compiles the writer of a map, given how to spell keys and values, and to fill values."""
    tags = [tag_of(part.field, wire_type(part.field.type)) for part in column.parts]
    tag = tag_of(column.field, LENGTH)

    def write(maps: pa.Array) -> Pieces:
        lists = maps.cast(pa.list_(maps.type.field(0).type))
        keys, values = lists.flatten().flatten()
        order = key_order(pc.list_parent_indices(lists), keys)
        sides = keys.take(order), fill(values.take(order))
        every = np.ones(len(keys), np.bool_)
        pieces = [
            piece
            for spell, tag_of_side, side in zip(spells, tags, sides, strict=True)
            for piece in spell(tag_of_side, side, every)
        ]
        pairs = with_length(tag, joined(pieces, len(keys)), every)
        return [_per_row(lists, joined(pairs, len(keys)))]

    return write
