"""Arrow as Spark's Python workers expect it, columns of it as keys, and how much of it a task holds."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

Column = TypeVar("Column", "pa.Array", "pa.ChunkedArray")

MAX_HELD_BYTES = 64 * 1024 * 1024
"""How many bytes a task may gather in one place: rows that are decoded together, rows to encode, a buffer."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark demands of a source that has this schema.

    Spark 4.2 and newer compare every batch with it: types, order, names and nullability, with
    timestamps in UTC.

    Raises:
        PySparkTypeError: A type cannot travel between Spark and Python at all.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        return cast("pa.Schema", to_arrow_schema(schema, timezone="UTC"))
    return cast("pa.Schema", to_arrow_schema(schema))  # PySpark 4.0 and 4.1: UTC is the default


def canonical_floats(column: Column) -> Column:
    """The column with -0.0 as 0.0 and one NaN for all, which as keys are equal; others as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    zero = pa.scalar(0.0, column.type)
    return cast("Column", pc.if_else(pc.is_nan(column), nan, pc.add(column, zero)))


def canonical_keys(keys: pa.RecordBatch) -> pa.RecordBatch:
    """Key columns with `canonical_floats`: so equal keys get equal bytes, in every format."""
    import pyarrow as pa

    columns = [canonical_floats(column) for column in keys.columns]
    return pa.RecordBatch.from_arrays(columns, schema=keys.schema)


def polars_key(column: Column) -> Column:
    """A key column as polars can compare it: `canonical_floats`, and times with a zone as numbers.

    Polars knows fewer names of zones than Spark, not ``+05:30``; the numbers are the same in all zones.
    """
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pa.int64())
    return canonical_floats(column)
