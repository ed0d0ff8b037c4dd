"""Columns as Spark's DDL writes them, read without Spark: its own parser runs in a JVM."""

from pyspark_upsert_kafka.core.spark_ddl.columns import spark_columns

__all__ = ["spark_columns"]
