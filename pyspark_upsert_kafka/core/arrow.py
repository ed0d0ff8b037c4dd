"""Spark's types as Arrow types, exactly as Spark's Python workers expect them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


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
