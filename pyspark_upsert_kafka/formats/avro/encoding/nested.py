"""What holds other values, as Avro's bytes: unions, records, arrays and maps.

Arrays and maps are written as one block, as Java does: count, items, and a zero that ends it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.avro.encoding.leaves import byte_strings, longs
from pyspark_upsert_kafka.formats.avro.encoding.type_mapping import Writer
from pyspark_upsert_kafka.formats.avro.longs import long
from pyspark_upsert_kafka.formats.binary.byte_parts import (
    ByteParts,
    among,
    constant,
    grouped,
    joined,
)
from pyspark_upsert_kafka.formats.conform import as_lists


def blaming(path: str, write: Writer, array: pa.Array) -> ByteParts:
    """The writer's parts; what it says of a value is said of the column."""
    try:
        return write(array)
    except ValueError as why:
        raise EncodeError(path, str(why)) from None


def never_null(path: str, write: Writer, array: pa.Array) -> ByteParts:
    """A value that has no union with null."""
    if array.null_count:
        raise EncodeError(path, "NULL, but the Avro schema has no union with null there")
    return write(array)


def branch(number: int, write: Writer, array: pa.Array) -> ByteParts:
    """A value in one branch of a union."""
    return [constant(long(number), len(array)), *write(array)]


def branch_or_null(number: int, null: int, write: Writer, array: pa.Array) -> ByteParts:
    """A value in one branch of a union, or null in another."""
    if not array.null_count:
        return branch(number, write, array)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = longs(np.where(present, number, null))
    return [numbers, *(among(part, present) for part in write(array.drop_null()))]


def record(fields: list[tuple[int, Writer] | bytes], array: pa.StructArray) -> ByteParts:
    """Each field in turn: the child at a position by its writer, or the same bytes in every row."""
    children = array.flatten()
    parts: ByteParts = []
    for field in fields:
        if isinstance(field, bytes):
            parts.append(constant(field, len(array)))
        else:
            at, write = field
            parts += write(children[at])
    return parts


def items(write: Writer, lists: pa.ListArray) -> ByteParts:
    """An array."""
    counts = pc.list_value_length(lists).to_numpy()
    values = lists.flatten()
    block = grouped(joined(write(values), len(values)), counts)
    count = among(longs(counts[counts > 0]), counts > 0)
    return [count, block, constant(b"\0", len(lists))]


def entries(write: Writer, maps: pa.MapArray) -> ByteParts:
    """A map."""

    def entry(pairs: pa.StructArray) -> ByteParts:
        keys, values = pairs.flatten()
        return [*byte_strings(keys), *write(values)]

    return items(entry, as_lists(maps))
