"""Enums: by name in a STRING, by number in an integer column.

A number without a name is read as its digits, as protobuf's JSON has it, and written so too where the
enum is open (proto3). Flink reads it as ``UNRECOGNIZED``, and writes the first value for whatever name or
number it does not know; here that is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StringType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.protobuf.columns import Column


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
