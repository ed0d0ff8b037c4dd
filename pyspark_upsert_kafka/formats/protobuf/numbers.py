"""Numbers: how they are read, as a value and as a column, and how they are written."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DecimalType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, fixed, varints
from pyspark_upsert_kafka.formats.binary.numbers import unzigzag, zigzag
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.column_builders import Built, all_good
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.wire import (
    INTEGERS,
    MEANING,
    SIZE,
    VARINT,
    ZIGZAG,
    EncodeValues,
    Kind,
    bounds,
    wire_type,
    with_tag,
)

NumbersOf = Callable[[pa.Array], np.ndarray]
"""A column to numbers that fit its field; NULL becomes any of them. Raises EncodeError."""


def value_reader(column: Column) -> Callable[[Any], Any]:
    """Compiles the conversion from a number of the runtime to a value; it raises UnreadableError."""
    if isinstance(column.type, DecimalType):
        return Decimal
    return _integer(column) if type(column.type) in BITS else lambda value: value


def _integer(column: Column) -> Callable[[int], int]:
    bound = 1 << (BITS[type(column.type)] - 1)

    def read(value: int) -> int:
        if -bound <= value < bound:
            return value
        raise UnreadableError(
            f"field '{column.path}': {value} does not fit into {column.type.simpleString().upper()}"
        )

    return read


def column_reader(column: Column) -> Callable[[np.ndarray], Built]:
    """Compiles the conversion from numbers on the wire to a column."""
    kind = column.field.type
    if isinstance(column.type, DecimalType):
        return lambda raw: all_good(pa.array(raw).cast(pa.decimal128(20, 0)))
    if kind in INTEGERS:
        return lambda raw: integers(column, meaning(kind, raw))
    return lambda raw: all_good(pa.array(meaning(kind, raw)))


def meaning(kind: int, raw: np.ndarray) -> np.ndarray:
    """What the numbers on the wire stand for; more bits than the kind has are cut off."""
    if kind == Kind.BOOL:
        return np.asarray(raw != 0)
    bits = raw.astype(f"u{SIZE[Kind(kind)]}", copy=False)
    if kind in ZIGZAG:
        return unzigzag(bits)
    return bits.view(MEANING[Kind(kind)])


def integers(column: Column, values: np.ndarray) -> Built:
    """Whole numbers as a column; bad are those for which it has no room."""
    bits = BITS[type(column.type)]
    smallest, largest = bounds(column.field.type)
    bad = np.zeros(len(values), np.bool_)
    if largest >= 1 << (bits - 1):
        bad |= values >= values.dtype.type(1 << (bits - 1))
    if smallest < -(1 << (bits - 1)):
        bad |= values < -(1 << (bits - 1))
    return pa.array(values.astype(f"i{bits // 8}")), bad


def writer(column: Column, numbers_of: NumbersOf, *, drops_default: bool) -> EncodeValues:
    """Compiles the conversion from values to bytes, each behind a tag, and nothing where not present.

    Args:
        column: The column.
        numbers_of: The conversion from the column to numbers that fit its field.
        drops_default: Whether a zero is not written.
    """
    kind = column.field.type
    cells = varints if wire_type(kind) == VARINT else fixed

    def encode(tag: bytes, array: pa.Array, present: np.ndarray) -> ByteParts:
        numbers = _on_the_wire(kind, numbers_of(array))
        if drops_default:
            # Bits are compared, for -0.0 is no default.
            present = present & (numbers.view(f"u{numbers.dtype.itemsize}") != 0)
        return with_tag(tag, cells(numbers), present)

    return encode


def _on_the_wire(kind: int, values: np.ndarray) -> np.ndarray:
    if wire_type(kind) != VARINT:
        return values.astype(MEANING[kind], copy=False)
    return zigzag(values) if kind in ZIGZAG else values


def numbers_of(column: Column) -> NumbersOf:
    """Compiles the conversion from a column to numbers that fit its field."""
    if isinstance(column.type, DecimalType):
        return lambda array: _unsigned(column, array)
    if column.field.type in INTEGERS:
        return lambda array: in_bounds(column, to_numpy(array))
    return to_numpy


def to_numpy(array: pa.Array) -> np.ndarray:
    """The numbers of a column; NULL is 0."""
    zero = pa.scalar(0).cast(array.type)
    values: np.ndarray = array.fill_null(zero).to_numpy(zero_copy_only=False)
    return values


def in_bounds(column: Column, values: np.ndarray) -> np.ndarray:
    """The numbers, once it is sure that the field has room for them. Raises EncodeError."""
    smallest, largest = bounds(column.field.type)
    for value in (int(values.min(initial=0)), int(values.max(initial=0))):
        if not smallest <= value <= largest:
            raise EncodeError(column.path, _too_large(column, value))
    return values


def _unsigned(column: Column, array: pa.Array) -> np.ndarray:
    try:
        return to_numpy(array.cast(pa.uint64()))
    except pa.ArrowInvalid:
        _, largest = bounds(column.field.type)
        out = (value for value in array.drop_null().to_pylist() if not 0 <= value <= largest)
        raise EncodeError(column.path, _too_large(column, next(out))) from None


def _too_large(column: Column, value: Any) -> str:
    return f"{value} does not fit into {Kind(column.field.type).name.lower()}"
