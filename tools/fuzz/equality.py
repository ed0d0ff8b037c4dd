"""Compares columns: NaN equals itself, and -0.0 is different from 0.0."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.exact_types import as_lists


def difference(some: pa.RecordBatch, others: pa.RecordBatch) -> int | None:
    """The first row that differs; None = all are equal. Both have equally many rows and one schema."""
    if _same_rows(some, others):
        return None
    low, high = 0, some.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        if _same_rows(some.slice(low, middle - low), others.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def _same_rows(some: pa.RecordBatch, others: pa.RecordBatch) -> bool:
    return all(map(same, some.columns, others.columns))


def same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays hold the same values; the type and its nested nullability count too."""
    if len(one) != len(other) or not one.type.equals(other.type, check_metadata=True):
        return False
    if (one.null_count or other.null_count) and not one.is_valid().equals(other.is_valid()):
        return False
    kind = one.type
    if pa.types.is_map(kind):
        return same(as_lists(one), as_lists(other))
    if pa.types.is_list(kind):
        lengths = (pc.fill_null(pc.list_value_length(each), 0) for each in (one, other))
        return next(lengths).equals(next(lengths)) and same(one.flatten(), other.flatten())
    if pa.types.is_struct(kind):
        return all(map(same, one.flatten(), other.flatten()))
    if pa.types.is_floating(kind):
        return bool((_bits(one) == _bits(other)).all())
    return one.equals(other)


def _bits(array: pa.Array) -> np.ndarray:
    numbers = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), numbers.dtype.type("nan"), numbers)
    return numbers.view(np.int32 if numbers.itemsize == 4 else np.int64)
