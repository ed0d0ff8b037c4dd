"""Values of columns as the numbers that stand on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import DecimalType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.binary.byte_parts import (
    ByteParts,
    Cells,
    constant,
    fixed,
    only,
    varints,
)
from pyspark_upsert_kafka.formats.binary.numbers import varint, zigzag
from pyspark_upsert_kafka.formats.protobuf import decoded_values as enums
from pyspark_upsert_kafka.formats.protobuf.columns import Column
from pyspark_upsert_kafka.formats.protobuf.kinds import (
    INTEGERS,
    MEANING,
    VARINT,
    ZIGZAG,
    Kind,
    bounds,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.timestamps import DURATIONS, TIMESTAMPS
from pyspark_upsert_kafka.formats.protobuf.types import TIMESTAMP

EncodeValues = Callable[[bytes, pa.Array, np.ndarray], ByteParts]
"""Values with the tag before each, but nothing where not present."""


def tag_of(field: Any, wire: int) -> bytes:
    """The tag of a field in a wire type."""
    return varint(field.number << 3 | wire)


def with_tag(tag: bytes, values: Cells, present: np.ndarray) -> ByteParts:
    """Values with a tag before them, and nothing where not present."""
    return [only(cells, present) for cells in (constant(tag, len(present)), values)]


def with_length(tag: bytes, bodies: pa.LargeBinaryArray, present: np.ndarray) -> ByteParts:
    """Bytes with tag and length before them, and nothing where not present."""
    return [*with_tag(tag, varints(lengths_of(bodies)), present), bodies]


def lengths_of(bodies: pa.LargeBinaryArray) -> np.ndarray:
    """How many bytes each one has."""
    lengths: np.ndarray = pc.binary_length(bodies).fill_null(0).to_numpy()
    return lengths


Fill = Callable[[pa.Array], pa.Array]
"""A column to one where something stands for each NULL."""

_SECONDS, _NANOS = b"\x08", b"\x10"


def number_encoder(column: Column, *, drops_default: bool) -> EncodeValues:
    """Compiles the conversion from values to bytes, each behind a tag, and nothing where not present."""
    kind = column.field.type
    values_of = _values_of(column)
    cells = varints if wire_type(kind) == VARINT else fixed

    def encode(tag: bytes, array: pa.Array, present: np.ndarray) -> ByteParts:
        numbers = _on_the_wire(kind, values_of(array))
        if drops_default:
            # Bits are compared, for -0.0 is no default.
            present = present & (numbers.view(f"u{numbers.dtype.itemsize}") != 0)
        return with_tag(tag, cells(numbers), present)

    return encode


def _on_the_wire(kind: int, values: np.ndarray) -> np.ndarray:
    if wire_type(kind) != VARINT:
        return values.astype(MEANING[kind], copy=False)
    return zigzag(values) if kind in ZIGZAG else values


def _values_of(column: Column) -> Callable[[pa.Array], np.ndarray]:
    """Compiles the conversion from a column to numbers that fit its field; NULL becomes any of them."""
    if column.field.type == Kind.ENUM:
        numbers = enums.numberer(column)
        return lambda array: _in_bounds(column, numbers(array))
    if isinstance(column.type, DecimalType):
        return lambda array: _unsigned(column, array)
    if column.field.type in INTEGERS:
        return lambda array: _in_bounds(column, _numpy(array))
    return _numpy


def _numpy(array: pa.Array) -> np.ndarray:
    zero = pa.scalar(0).cast(array.type)
    values: np.ndarray = array.fill_null(zero).to_numpy(zero_copy_only=False)
    return values


def _in_bounds(column: Column, values: np.ndarray) -> np.ndarray:
    smallest, largest = bounds(column.field.type)
    for value in (int(values.min(initial=0)), int(values.max(initial=0))):
        if not smallest <= value <= largest:
            raise EncodeError(column.path, _too_large(column, value))
    return values


def _unsigned(column: Column, array: pa.Array) -> np.ndarray:
    try:
        return _numpy(array.cast(pa.uint64()))
    except pa.ArrowInvalid:
        _, largest = bounds(column.field.type)
        out = (value for value in array.drop_null().to_pylist() if not 0 <= value <= largest)
        raise EncodeError(column.path, _too_large(column, next(out))) from None


def _too_large(column: Column, value: Any) -> str:
    return f"{value} does not fit into {Kind(column.field.type).name.lower()}"


def filler(column: Column, null_string: str) -> Fill:
    """Compiles the conversion from NULL in an array or a map to what is written for it.

    Flink's ``PbCodegenUtils.pbDefaultValueCode``: the default of the type, the first value of an enum,
    and for strings what an option says.
    """
    if column.field.type == Kind.STRING:
        return lambda array: array.fill_null(null_string)
    if column.field.type == Kind.ENUM:
        return enums.filler(column)
    return lambda array: array


def timestamp_parts(column: Column, array: pa.Array) -> ByteParts:
    """Timestamps or durations as the fields of their message."""
    is_timestamp = column.field.message_type.full_name == TIMESTAMP
    timestamps = TIMESTAMPS if is_timestamp else DURATIONS
    seconds, nanos, good = timestamps.split(_numpy(array.cast(pa.int64())))
    if not good.all():
        raise EncodeError(
            column.path, f"{array[int(np.argmin(good))]}: expected {timestamps.expected}"
        )
    return [
        part
        for tag, numbers in ((_SECONDS, seconds), (_NANOS, nanos))
        for part in with_tag(tag, varints(numbers), numbers != 0)
    ]
