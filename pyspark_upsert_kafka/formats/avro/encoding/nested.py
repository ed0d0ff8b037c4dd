"""What holds other values, as Avro's bytes: unions, records, arrays and maps.

Arrays and maps are written as one block, as Java does: count, items, and a zero that ends it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.formats.avro.defaults import long
from pyspark_upsert_kafka.formats.avro.encoding.leaves import byte_strings, longs
from pyspark_upsert_kafka.formats.avro.encoding.type_mapping import Writer
from pyspark_upsert_kafka.formats.avro.model import Record
from pyspark_upsert_kafka.formats.binary.byte_parts import (
    ByteParts,
    among,
    constant,
    grouped,
    joined,
)
from pyspark_upsert_kafka.formats.exact_types import as_lists


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


def columns_by_field(record: Record, columns: StructType, path: str) -> dict[str, int]:
    """The position of the column for each field that has one.

    Names match exactly, else in any case when only one pair does.

    Args:
        record: The record to be written.
        columns: The columns, all of which need a field.
        path: Where these columns stand, for errors: empty, or a name and a dot.

    Raises:
        SchemaError: A column has no field, or shares it with another.
    """
    names = [field.name for field in record.fields]
    found: dict[str, int] = {}
    for at, column in enumerate(columns.names):
        name = _field(column, names, path)
        if name in found:
            raise SchemaError(
                f"Columns {path + columns.names[found[name]]!r} and {path + column!r} both give the "
                f"field {name!r} of the Avro schema."
            )
        found[name] = at
    return found


def _field(column: str, names: list[str], path: str) -> str:
    alike = [column] if column in names else [n for n in names if n.lower() == column.lower()]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise SchemaError(
            f"Column {path + column!r} may be any of the fields {', '.join(alike)} of the Avro "
            "schema; write its name as one of them."
        )
    raise SchemaError(
        f"The Avro schema has no field for column {path + column!r}; its fields there: "
        f"{', '.join(names)}."
    )
