"""Columns read one after the other, each from what the messages have for it.

A column is read as a whole where the vectorised conversion can read all its values; else value by value. So a
value that it refuses costs its own column, and what a batch costs grows with its values, however many of them
are refused or bad, and in however many columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.conversion import conformed


@dataclass(frozen=True)
class Column:
    """How one column is read.

    Args:
        field: The column.
        vectorised: All its values at once; ValueError = it refuses one of them. None = it refuses all.
        one: One value, as the row path reads it; ValueError = it is bad.
    """

    field: pa.Field
    vectorised: Callable[[Any], pa.Array] | None
    one: Callable[[Any], Any]

    def read(self, values: Any, fallback: np.ndarray) -> pa.Array:
        """The column; messages with a bad value are marked in ``fallback``."""
        if self.vectorised is not None:
            try:
                return conformed([self.vectorised(values)], [self.field])[0]
            except ValueError:  # pyarrow's ArrowInvalid is one
                pass
        return pa.array(self._one_by_one(values, fallback), self.field.type)

    def _one_by_one(self, values: Any, fallback: np.ndarray) -> list[Any]:
        some: Iterable[Any] = values.to_pylist() if isinstance(values, pa.Array) else values
        read, seen = self.one, []
        for at, value in enumerate(some):
            try:
                seen.append(read(value))
            except ValueError:
                fallback[at] = True
                seen.append(None)
        return seen


def read_columns(
    columns: Sequence[Column], values: Sequence[Any], count: int
) -> tuple[pa.RecordBatch, np.ndarray]:
    """The rows of some messages, and the mask of those that fall back to the row path: a value is bad.

    Args:
        columns: How each column is read.
        values: The values of each column.
        count: How many messages there are.
    """
    fallback = np.zeros(count, np.bool_)
    arrays = [column.read(each, fallback) for column, each in zip(columns, values, strict=True)]
    if fallback.any():
        kept = pa.array(~fallback)
        arrays = [array.filter(kept) for array in arrays]
    schema = pa.schema([column.field for column in columns])
    return batch_of(arrays, schema, int(count - fallback.sum())), fallback
