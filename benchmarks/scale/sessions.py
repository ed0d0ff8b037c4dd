"""Spark sessions of the measurements, and the tables that they read."""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

LITTLE_ADDRESS_SPACE = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
"""Otherwise a worker reserves 2.3 GB of addresses before it has read anything, and the limit counts addresses."""

os.environ.update(LITTLE_ADDRESS_SPACE)

from data import SCHEMA, rows  # noqa: E402 - after the environment is set
from pyspark.sql import SparkSession  # noqa: E402

__all__ = ["SCHEMA", "filled", "options_of", "rows", "session"]

WORKER_MEMORY = "1g"
"""What a Python worker may have. A worker that needs more fails."""


def session(master: str = "local[2]", log_level: str = "ERROR") -> SparkSession:
    """A session whose Python workers have 1 GB each."""
    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executor.cores", "1")
        .config("spark.executor.pyspark.memory", WORKER_MEMORY)
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    for name, value in LITTLE_ADDRESS_SPACE.items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(log_level)
    return spark


def options_of(servers: str, topic: str) -> dict[str, str]:
    """The table in a topic."""
    return {
        "properties.bootstrap.servers": servers,
        "topic": topic,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }


def filled(spark: SparkSession, servers: str, topic: str, messages: int, keys: int) -> None:
    """Writes messages over some keys into a topic."""
    writer = rows(spark, messages, keys, 2).write.format("upsert-kafka").mode("append")
    writer.options(**options_of(servers, topic)).save()
