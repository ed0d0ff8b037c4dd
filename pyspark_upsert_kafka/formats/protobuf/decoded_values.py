"""Numbers and slices of the wire as Arrow columns, each in the type of its column.

Every function also says which values are bad: those that the row path must look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DecimalType, StringType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.binary.numbers import unzigzag
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.kinds import (
    INTEGERS,
    MEANING,
    SIZE,
    ZIGZAG,
    Kind,
    bounds,
)
from pyspark_upsert_kafka.formats.simple_types import BITS


def enum_names(enum: Any) -> dict[int, str]:
    """The name of each number; of aliases the first, as Java has it."""
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return names


def filler(column: Column) -> Callable[[pa.Array], pa.Array]:
    """Compiles the conversion from NULL to the first value of a column's enum."""
    first = column.field.enum_type.values[0]
    if isinstance(column.type, StringType):
        return lambda array: array.fill_null(first.name)
    # A TINYINT may have no room for it.
    return lambda array: array.cast(pa.int64()).fill_null(first.number)


def finder(enum: Any) -> Callable[[np.ndarray], tuple[pa.Array, np.ndarray]]:
    """Compiles the conversion from numbers to names, and which numbers have none."""
    by_number = dict(sorted(enum_names(enum).items()))
    known = np.array(list(by_number), np.int32)
    names = pa.array(by_number.values(), pa.string())

    def find(numbers: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return names.take(pa.array(places)), known[places] != numbers

    return find


def numberer(column: Column) -> Callable[[pa.Array], np.ndarray]:
    """Compiles the conversion from names, or from numbers, to numbers; it raises EncodeError."""
    enum = column.field.enum_type
    by_name = {value.name: value.number for value in enum.values}
    known, fill = set(by_name.values()), filler(column)

    def number(value: Any) -> int:
        found = by_name.get(value, _digits(value)) if type(value) is str else value
        if found is None or (found not in known and enum.is_closed):
            shown = ", ".join(by_name)
            raise EncodeError(
                column.path, f"{value!r} is no value of enum '{enum.full_name}': {shown}"
            )
        return int(found)

    def numbers(array: pa.Array) -> np.ndarray:
        encoded = fill(array).dictionary_encode()
        values = [number(value) for value in encoded.dictionary.to_pylist()]
        places = encoded.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array(values, np.int64)[places])

    return numbers


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None


Built = tuple[pa.Array, np.ndarray]
"""A column, and which of its values are bad."""


def numbers(kind: int, raw: np.ndarray) -> np.ndarray:
    """What the numbers on the wire stand for; more bits than the kind has are cut off."""
    if kind == Kind.BOOL:
        return np.asarray(raw != 0)
    bits = raw.astype(f"u{SIZE[Kind(kind)]}", copy=False)
    if kind in ZIGZAG:
        return unzigzag(bits)
    return bits.view(MEANING[Kind(kind)])


def number_builder(column: Column) -> Callable[[np.ndarray], Built]:
    """Compiles the conversion from numbers on the wire to a column."""
    kind = column.field.type
    if kind == Kind.ENUM:
        return _enum_builder(column)
    if isinstance(column.type, DecimalType):
        return lambda raw: all_good(pa.array(raw).cast(pa.decimal128(20, 0)))
    if kind in INTEGERS:
        return lambda raw: _integers(column, numbers(kind, raw))
    return lambda raw: all_good(pa.array(numbers(kind, raw)))


def all_good(array: pa.Array) -> Built:
    """The column with none of its values bad."""
    return array, np.zeros(len(array), np.bool_)


def _integers(column: Column, values: np.ndarray) -> Built:
    bits = BITS[type(column.type)]
    smallest, largest = bounds(column.field.type)
    bad = np.zeros(len(values), np.bool_)
    if largest >= 1 << (bits - 1):
        bad |= values >= values.dtype.type(1 << (bits - 1))
    if smallest < -(1 << (bits - 1)):
        bad |= values < -(1 << (bits - 1))
    return pa.array(values.astype(f"i{bits // 8}")), bad


def _enum_builder(column: Column) -> Callable[[np.ndarray], Built]:
    find, as_text = finder(column.field.enum_type), isinstance(column.type, StringType)

    def build(raw: np.ndarray) -> Built:
        values = numbers(Kind.ENUM, raw)
        names, unknown = find(values)
        if as_text:
            return names, unknown
        array, bad = _integers(column, values)
        return array, bad | unknown

    return build


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
    """The default of a field with presence as its column has it; None = nothing, zero or empty."""
    value = column.field.default_value
    if column.field.containing_type.GetOptions().map_entry:
        value = type(value)()  # of an enum too: to the runtime it is 0, and not the first value
    if column.field.type == Kind.ENUM and isinstance(column.type, StringType):
        return enum_names(column.field.enum_type)[value]
    return value or None


def fits(column: Column, default: Any) -> bool:
    """Whether a default has room in its column."""
    bits = BITS.get(type(column.type), 64)
    return not isinstance(default, int) or -(1 << (bits - 1)) <= default < 1 << (bits - 1)


def key_order(rows: np.ndarray, keys: pa.Array) -> pa.Array:
    """The order of a map's entries: by row, and in a row by key."""
    sortable = keys.cast(pa.uint8()) if pa.types.is_boolean(keys.type) else keys
    table = pa.table({"row": rows, "key": sortable})
    return pc.sort_indices(table, [("row", "ascending"), ("key", "ascending")])
