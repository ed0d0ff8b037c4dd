"""Columns as Spark's DDL writes them are read as Spark reads them."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from tests.unit.core.ddl.test_spark_columns import COLUMNS, REFUSED

SPARK_ALONE = {"", "id INTERVAL"}
"""What Spark reads and no table can have: no columns, and a calendar's interval."""


def without_comments(columns: StructType) -> str:
    """The columns with their types and NOT NULL."""
    return re.sub(r"\{'comment': [^}]*\}", "{}", str(columns.jsonValue()))


def test_both_parsers_read_the_same(spark: SparkSession) -> None:
    """A text means the same columns, and what is refused here Spark refuses too."""
    for text in COLUMNS:
        assert without_comments(spark_columns(text)) == without_comments(StructType.fromDDL(text))  # type: ignore[arg-type]
    for text in {text for text, _, _ in REFUSED} - SPARK_ALONE:
        with pytest.raises(PySparkException):
            StructType.fromDDL(text)
