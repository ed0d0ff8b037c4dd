"""The rows of the benchmark: seven columns, about 130 bytes as JSON."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SCHEMA = (
    "id BIGINT, name STRING, region STRING, score DOUBLE, clicks INT, active BOOLEAN, "
    "updated TIMESTAMP"
)

METADATA = "_offset BIGINT, _partition INT, _timestamp TIMESTAMP"
"""Columns that show where a message is, and when it was written."""


def rows(spark: SparkSession, count: int, keys: int, tasks: int) -> DataFrame:
    """``count`` rows over ``keys`` primary keys, in ``tasks`` partitions."""
    number = f.col("number")
    return (
        spark.range(0, count, 1, tasks)
        .toDF("number")
        .select(
            (number % keys).alias("id"),
            f.concat(f.lit("user "), number % 1000).alias("name"),
            f.concat(f.lit("region-"), number % 10).alias("region"),
            (number * 0.37).alias("score"),
            (number % 100).cast("int").alias("clicks"),
            (number % 2 == 0).alias("active"),
            f.timestamp_millis(1_767_225_600_000 + number).alias("updated"),
        )
    )


def with_deletes(rows: DataFrame) -> DataFrame:
    """The rows, of which every fiftieth is a delete."""
    is_delete = f.col("clicks") % 50 == 7
    kind = f.when(is_delete, "delete").otherwise("upsert")
    return rows.withColumn("_change_type", kind)


def with_envelopes(rows: DataFrame) -> DataFrame:
    """The rows in Debezium's envelopes, beside their key: half of them new rows, the others updates with the row before."""
    row = f.struct("*")
    is_update = f.col("clicks") % 2 == 1
    source = f.struct(
        f.lit("2.5.0.Final").alias("version"),
        f.lit("mysql").alias("connector"),
        f.lit("shop").alias("db"),
        f.lit("users").alias("table"),
        f.unix_millis("updated").alias("ts_ms"),
    )
    return rows.select(
        "id",
        f.when(is_update, row).alias("before"),
        row.alias("after"),
        source.alias("source"),
        f.when(is_update, "u").otherwise("c").alias("op"),
        f.unix_millis("updated").alias("ts_ms"),
    )
