"""Which types are written to which columns without CAST, as in Flink."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.sql.script_frames import is_implicit_cast


@pytest.mark.parametrize(
    ("source", "target", "is_cast"),
    [
        (IntegerType(), IntegerType(), True),
        (IntegerType(), LongType(), True),
        (LongType(), IntegerType(), False),
        (LongType(), DoubleType(), True),
        (DoubleType(), LongType(), False),
        (DoubleType(), FloatType(), False),
        (LongType(), DecimalType(10, 2), True),
        (DecimalType(38, 2), DecimalType(10, 2), True),
        (DecimalType(5, 2), FloatType(), True),
        (IntegerType(), StringType(), False),
        (StringType(), IntegerType(), False),
        (NullType(), StringType(), True),
        (TimestampNTZType(), DateType(), True),
        (DateType(), TimestampNTZType(), False),
        (TimestampType(), TimestampNTZType(), True),
        (BooleanType(), IntegerType(), False),
        (ArrayType(IntegerType()), ArrayType(LongType()), True),
        (ArrayType(LongType()), ArrayType(IntegerType()), False),
        (MapType(StringType(), IntegerType()), MapType(StringType(), LongType()), True),
        (
            StructType([StructField("a", IntegerType())]),
            StructType([StructField("b", LongType())]),
            True,
        ),
        (StructType([StructField("a", IntegerType())]), StructType(), False),
    ],
)
def test_what_is_implicit_cast(source: DataType, target: DataType, is_cast: bool) -> None:
    """What loses nothing, and decimals of any digits; names of fields make no difference."""
    assert is_implicit_cast(source, target) is is_cast
