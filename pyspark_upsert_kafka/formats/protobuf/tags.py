"""What stands before a value: the tag of its field, and its length where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, Cells, constant, only, varints
from pyspark_upsert_kafka.formats.binary.numbers import varint

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
