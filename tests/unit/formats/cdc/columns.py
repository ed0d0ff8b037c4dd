"""Columns of semantic types, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DataType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.formats.cdc.columns_by_schema import field_mapping
from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema
from pyspark_upsert_kafka.formats.decoded_size import Budget


def spark_type(text: str) -> DataType:
    """A type as Spark's DDL writes it."""
    return spark_columns(f"d {text}").fields[0].dataType


def arrow_type(kind: DataType) -> pa.DataType:
    """The type that Spark demands of a column."""
    return arrow_schema(StructType([StructField("value", kind)])).field(0).type


def converted(
    schema: ConnectSchema, values: Sequence[Any], wanted: DataType, **more: Any
) -> tuple[pa.Array, dict[int, str]]:
    """Values as the plain decoder gives them, as a column of the table, and what is wrong with the bad ones."""
    mapping = field_mapping(schema, wanted, "d", **more)
    array = pa.array(values, arrow_type(mapping.physical))
    if mapping.convert is None:
        return array, {}
    column, errors = mapping.convert(array, Budget(max(1, len(values))))
    return column, dict(errors)
