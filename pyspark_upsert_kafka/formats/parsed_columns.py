"""What the text formats share: from columns as a parser reads them to columns in exactly the table's types.

A parser reads numbers, booleans and texts itself. Other values it reads as texts, which are then converted
column by column. Whatever it might get wrong makes it refuse the batch, by a ValueError.

On the column path, a column is read as a whole where all its values can be converted together; else value by value.
So a value that is refused costs its own column, and what a batch costs grows with its values, however many of them
are refused or bad, and in however many columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.exact_types import rows_lacking, with_type

Convert = Callable[[pa.Array], pa.Array]
"""A column as it was parsed to the column that the table has; ValueError = the batch is refused."""


def unchanged(array: pa.Array) -> pa.Array:
    """The column as it was parsed."""
    return array


def finite(array: pa.Array) -> pa.Array:
    """The column, unless a number in it is infinite or none: parsers spell these otherwise than Java."""
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is not finite")
    return array


@dataclass(frozen=True)
class Conversion:
    """How a column is read by a parser.

    Args:
        parsed: The type to parse it as.
        convert: The way from there to the type of the table.
    """

    parsed: pa.DataType
    convert: Convert = unchanged


def converted(
    columns: Sequence[pa.Array],
    conversions: Sequence[Conversion],
    target: Iterable[pa.Field],
    demanded: Iterable[pa.Field] | None = None,
) -> list[pa.Array]:
    """Parsed columns in the types of the table.

    Args:
        columns: The columns as they were parsed.
        conversions: How each was.
        target: The fields of the table.
        demanded: The same fields, NOT NULL where a null counts as a missing value; by default the target.
    """
    arrays = [each.convert(array) for array, each in zip(columns, conversions, strict=True)]
    return with_types(arrays, target, demanded)


def with_types(
    arrays: Sequence[pa.Array],
    target: Iterable[pa.Field],
    demanded: Iterable[pa.Field] | None = None,
) -> list[pa.Array]:
    """Columns in exactly the types of the table; ValueError = a value is missing in one of them."""
    fields = list(target)
    for array, field in zip(arrays, demanded or fields, strict=True):
        if rows_lacking(array, field):
            raise ValueError("a value is missing")
    return [with_type(array, field.type) for array, field in zip(arrays, fields, strict=True)]


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column of a table; those of an only chunk are not copied."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


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
                return with_types([self.vectorised(values)], [self.field])[0]
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
