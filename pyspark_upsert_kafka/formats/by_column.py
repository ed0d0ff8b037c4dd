"""Columns read one after the other, each from what the messages have for it.

A column is read as a whole where all its values are plain; only one with an odd value is read value by
value. So an odd value costs its own column, and what a batch costs grows with its values, however many of
them are odd or bad, and in however many columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.conform import conform, rows_lacking


@dataclass(frozen=True)
class Column:
    """How one column is read.

    Args:
        field: The column.
        together: All its values at once; ValueError = one of them is odd. None = there is no such way.
        one: One value, as the exact way reads it; ValueError = it is bad.
    """

    field: pa.Field
    together: Callable[[Any], pa.Array] | None
    one: Callable[[Any], Any]

    def read(self, values: Any, left: np.ndarray) -> pa.Array:
        """The column; messages with a bad value are marked in ``left``."""
        try:
            return self._together(values)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return pa.array(self._one_by_one(values, left), self.field.type)

    def _together(self, values: Any) -> pa.Array:
        if self.together is None:
            raise ValueError("there is no such way")
        array = self.together(values)
        if rows_lacking(array, self.field):
            raise ValueError("a value is missing")
        return conform(array, self.field.type)

    def _one_by_one(self, values: Any, left: np.ndarray) -> list[Any]:
        some: Iterable[Any] = values.to_pylist() if isinstance(values, pa.Array) else values
        read, seen = self.one, []
        for at, value in enumerate(some):
            try:
                seen.append(read(value))
            except ValueError:
                left[at] = True
                seen.append(None)
        return seen


def read_columns(
    columns: Sequence[Column], values: Sequence[Any], count: int
) -> tuple[pa.RecordBatch, np.ndarray]:
    """The rows of some messages, and the mask of those without a row: a value of theirs is bad.

    Args:
        columns: How each column is read.
        values: The values of each column.
        count: How many messages there are.
    """
    left = np.zeros(count, np.bool_)
    arrays = [column.read(each, left) for column, each in zip(columns, values, strict=True)]
    if left.any():
        kept = pa.array(~left)
        arrays = [array.filter(kept) for array in arrays]
    schema = pa.schema([column.field for column in columns])
    return batch_of(arrays, schema, int(count - left.sum())), left
