"""Fields of many values as bytes: arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, grouped, joined
from pyspark_upsert_kafka.formats.conform import as_lists
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.decoded_values import key_order
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_packed
from pyspark_upsert_kafka.formats.protobuf.encoded_values import Fill
from pyspark_upsert_kafka.formats.protobuf.kinds import LENGTH, wire_type
from pyspark_upsert_kafka.formats.protobuf.tags import EncodeValues, lengths_of, tag_of, with_length

Writer = Callable[[pa.Array], ByteParts]
"""A column to its field in each message."""


def array(column: Column, encode: EncodeValues, fill: Fill) -> Writer:
    """Compiles the writer of a repeated field, given how to encode and to fill its elements."""
    tag = tag_of(column.field, wire_type(column.field.type))
    tag_of_all = tag_of(column.field, LENGTH) if is_packed(column.field) else None

    def write(arrays: pa.Array) -> ByteParts:
        values = fill(arrays.flatten())
        each = b"" if tag_of_all else tag
        parts = encode(each, values, np.ones(len(values), np.bool_))
        lists = grouped(joined(parts, len(values)), _counts(arrays))
        if tag_of_all is None:
            return [lists]
        return with_length(tag_of_all, lists, lengths_of(lists) > 0)

    return write


def entries(column: Column, encoders: Sequence[EncodeValues], fill: Fill) -> Writer:
    """Compiles the writer of a map, given how to encode keys and values, and to fill values."""
    tags = [tag_of(part.field, wire_type(part.field.type)) for part in column.parts]
    tag = tag_of(column.field, LENGTH)

    def write(maps: pa.Array) -> ByteParts:
        lists = as_lists(maps)
        keys, values = lists.flatten().flatten()
        order = key_order(pc.list_parent_indices(lists), keys)
        sides = keys.take(order), fill(values.take(order))
        every = np.ones(len(keys), np.bool_)
        parts = [
            part
            for encode, tag_of_side, side in zip(encoders, tags, sides, strict=True)
            for part in encode(tag_of_side, side, every)
        ]
        pairs = with_length(tag, joined(parts, len(keys)), every)
        return [grouped(joined(pairs, len(keys)), _counts(lists))]

    return write


def _counts(lists: pa.Array) -> np.ndarray:
    """How many elements each list has."""
    counts: np.ndarray = pc.list_value_length(lists).fill_null(0).to_numpy()
    return counts
