"""Fields of many values as bytes: arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.bytewise.pieces import Pieces, grouped, joined
from pyspark_upsert_kafka.formats.conform import as_lists
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_packed
from pyspark_upsert_kafka.formats.protobuf.kinds import LENGTH, wire_type
from pyspark_upsert_kafka.formats.protobuf.spelling import Fill
from pyspark_upsert_kafka.formats.protobuf.tags import Spell, lengths_of, tag_of, with_length
from pyspark_upsert_kafka.formats.protobuf.values import key_order

Writer = Callable[[pa.Array], Pieces]
"""A column to its field in each message."""


def array(column: Column, spell: Spell, fill: Fill) -> Writer:
    """Compiles the writer of a repeated field, given how to spell and to fill its elements."""
    tag = tag_of(column.field, wire_type(column.field.type))
    tag_of_all = tag_of(column.field, LENGTH) if is_packed(column.field) else None

    def write(arrays: pa.Array) -> Pieces:
        values = fill(arrays.flatten())
        each = b"" if tag_of_all else tag
        pieces = spell(each, values, np.ones(len(values), np.bool_))
        lists = grouped(joined(pieces, len(values)), _counts(arrays))
        if tag_of_all is None:
            return [lists]
        return with_length(tag_of_all, lists, lengths_of(lists) > 0)

    return write


def entries(column: Column, spells: Sequence[Spell], fill: Fill) -> Writer:
    """Compiles the writer of a map, given how to spell keys and values, and to fill values."""
    tags = [tag_of(part.field, wire_type(part.field.type)) for part in column.parts]
    tag = tag_of(column.field, LENGTH)

    def write(maps: pa.Array) -> Pieces:
        lists = as_lists(maps)
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
        return [grouped(joined(pairs, len(keys)), _counts(lists))]

    return write


def _counts(lists: pa.Array) -> np.ndarray:
    """How many elements each list has."""
    counts: np.ndarray = pc.list_value_length(lists).fill_null(0).to_numpy()
    return counts
