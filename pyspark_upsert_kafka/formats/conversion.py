"""From columns as a vectorised parser reads them to columns in exactly the table's types.

A parser reads numbers, booleans and texts itself. Other values it reads as texts, which are then converted
column by column. Whatever it might get wrong makes it refuse the batch, by a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.conform import conform, rows_lacking

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
    """Parsed columns as the table has them.

    Args:
        columns: The columns as they were parsed.
        conversions: How each was.
        target: The fields of the table.
        demanded: The same fields, NOT NULL where a null counts as a missing value; by default the target.
    """
    arrays = [each.convert(array) for array, each in zip(columns, conversions, strict=True)]
    return conformed(arrays, target, demanded)


def conformed(
    arrays: Sequence[pa.Array],
    target: Iterable[pa.Field],
    demanded: Iterable[pa.Field] | None = None,
) -> list[pa.Array]:
    """Columns in exactly the types of the table; ValueError = a value is missing in one of them."""
    fields = list(target)
    for array, field in zip(arrays, demanded or fields, strict=True):
        if rows_lacking(array, field):
            raise ValueError("a value is missing")
    return [conform(array, field.type) for array, field in zip(arrays, fields, strict=True)]


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column of a table; those of an only chunk are not copied."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
