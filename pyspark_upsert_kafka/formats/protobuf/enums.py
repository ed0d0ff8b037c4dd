"""Enums: how they are read, as a value and as a column, and how they are written: by their names or as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StringType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.protobuf import numbers
from pyspark_upsert_kafka.formats.protobuf.column_builders import Built
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.descriptors import enum_names
from pyspark_upsert_kafka.formats.protobuf.numbers import in_bounds, integers, meaning
from pyspark_upsert_kafka.formats.protobuf.wire import Kind


def value_reader(column: Column) -> Callable[[int], Any]:
    """Compiles the conversion from a number to a value; one that has no name is its digits."""
    if not isinstance(column.type, StringType):
        return numbers.value_reader(column)
    names = enum_names(column.field.enum_type)
    return lambda number: names.get(number) or str(number)


def column_reader(column: Column) -> Callable[[np.ndarray], Built]:
    """Compiles the conversion from numbers on the wire to a column."""
    find, as_text = finder(column.field.enum_type), isinstance(column.type, StringType)

    def build(raw: np.ndarray) -> Built:
        values = meaning(Kind.ENUM, raw)
        names, unknown = find(values)
        if as_text:
            return names, unknown
        array, bad = integers(column, values)
        return array, bad | unknown

    return build


def finder(enum: Any) -> Callable[[np.ndarray], tuple[pa.Array, np.ndarray]]:
    """Compiles the conversion from numbers to names, and which numbers have none."""
    by_number = dict(sorted(enum_names(enum).items()))
    known = np.array(list(by_number), np.int32)
    names = pa.array(by_number.values(), pa.string())

    def find(numbers: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return names.take(pa.array(places)), known[places] != numbers

    return find


def numbers_of(column: Column) -> Callable[[pa.Array], np.ndarray]:
    """Compiles the conversion from a column of names, or of numbers, to numbers; it raises EncodeError."""
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
        return in_bounds(column, np.array(values, np.int64)[places])

    return numbers


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None


def filler(column: Column) -> Callable[[pa.Array], pa.Array]:
    """Compiles the conversion from NULL to the first value of a column's enum."""
    first = column.field.enum_type.values[0]
    if isinstance(column.type, StringType):
        return lambda array: array.fill_null(first.name)
    # A TINYINT may have no room for it.
    return lambda array: array.cast(pa.int64()).fill_null(first.number)
