"""What is compared: the same job, once with this connector and once with Spark's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from data import SCHEMA
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamReader


@dataclass(frozen=True)
class Case:
    """A job and its two sides; each takes a session and a topic.

    Args:
        name: Shown in the table.
        kind: ``read`` or ``write``, ``batch`` or ``stream``.
        ours: This connector's DataFrame (reading) or options (writing).
        theirs: Spark's.
    """

    name: str
    reads: bool
    streams: bool
    ours: Callable[..., DataFrame]
    theirs: Callable[..., DataFrame]


def _ours(mode: str) -> Callable[[DataFrameReader | DataStreamReader, str, str], DataFrame]:
    def load(reader: DataFrameReader | DataStreamReader, servers: str, topic: str) -> DataFrame:
        options = {
            "topic": topic,
            "properties.bootstrap.servers": servers,
            "value.format": "json",
            "read.mode": mode,
        }
        schema = SCHEMA
        if mode != "append":
            options |= {"primary-key": "id", "key.format": "json"}
            schema += ", _change_type STRING"
        return reader.format("upsert-kafka").schema(schema).options(**options).load()

    return load


def _theirs(*, key: bool) -> Callable[[DataFrameReader | DataStreamReader, str, str], DataFrame]:
    def load(reader: DataFrameReader | DataStreamReader, servers: str, topic: str) -> DataFrame:
        options = {
            "subscribe": topic,
            "kafka.bootstrap.servers": servers,
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
        }
        raw = reader.format("kafka").options(**options).load()
        value = f.from_json(f.col("value").cast("string"), SCHEMA).alias("v")
        if not key:
            return raw.select(value).select("v.*")
        keys = f.from_json(f.col("key").cast("string"), "id BIGINT").alias("k")
        change = f.when(f.col("value").isNull(), "delete").otherwise("upsert").alias("_change_type")
        rest = [f"v.{column.split()[0]}" for column in SCHEMA.split(", ")[1:]]
        id_ = f.coalesce("v.id", "k.id").alias("id")
        return raw.select(keys, value, change).select(id_, *rest, "_change_type")

    return load


def _write_ours(rows: DataFrame, servers: str, topic: str) -> DataFrame:
    del servers, topic
    return rows


def _write_theirs(rows: DataFrame, servers: str, topic: str) -> DataFrame:
    del servers, topic
    columns = [f.col(name) for name in rows.columns]
    return rows.select(
        f.to_json(f.struct("id")).alias("key"), f.to_json(f.struct(*columns)).alias("value")
    )


def sink_options(ours: bool, servers: str, topic: str) -> tuple[str, dict[str, str]]:
    """Format and options of a sink."""
    if not ours:
        return "kafka", {"kafka.bootstrap.servers": servers, "topic": topic}
    return "upsert-kafka", {
        "properties.bootstrap.servers": servers,
        "topic": topic,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }


CASES = (
    Case("read batch: every message (append) / from_json(value)", True, False, _ours("append"), _theirs(key=False)),
    Case("read batch: changelog / from_json(key), from_json(value)", True, False, _ours("changelog"), _theirs(key=True)),
    Case("read batch: changelog / from_json(value) only", True, False, _ours("changelog"), _theirs(key=False)),
    Case("read stream: every message (append) / from_json(value)", True, True, _ours("append"), _theirs(key=False)),
    Case("read stream: changelog / from_json(value) only", True, True, _ours("changelog"), _theirs(key=False)),
    Case("write batch / to_json + kafka sink", False, False, _write_ours, _write_theirs),
    Case("write stream / to_json + kafka sink", False, True, _write_ours, _write_theirs),
)  # fmt: skip


JARS = (
    "org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar",
    # 4.2.0 of this one was never published; the connector needs it for delegation tokens only.
    "org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "org/apache/kafka/kafka-clients/3.9.2/kafka-clients-3.9.2.jar",
    "org/apache/commons/commons-pool2/2.13.1/commons-pool2-2.13.1.jar",
    "org/scala-lang/modules/scala-parallel-collections_2.13/1.2.0/scala-parallel-collections_2.13-1.2.0.jar",
)
"""Spark's Kafka connector and what it needs beside Spark's own jars, on Maven Central."""


def session() -> SparkSession:
    """A session on two cores with Spark's Kafka connector."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("upsert-kafka benchmark")
        .config("spark.jars", ",".join(f"https://repo1.maven.org/maven2/{jar}" for jar in JARS))
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
