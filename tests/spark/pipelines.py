"""A program that tests start and kill: ``python -m tests.spark.pipelines ...``.

It reads a topic in small batches, slowly enough to be killed in one.
"""

from __future__ import annotations

import os
import sys
import time

from tests.table_options import table_options

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import normalize_changelog, upsert_sink
from tests.spark.streams import KNOWS_LIMITS

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SLOWLY = "concat('slept', reflect('java.lang.Thread', 'sleep', 1L)) <> ''"
"""A condition that is true, after a millisecond."""


def table(servers: str, topic: str) -> dict[str, str]:
    """Options of a JSON table with the key ``id``."""
    return table_options(topic=topic, properties__bootstrap__servers=servers)


def start(
    spark: SparkSession,
    servers: str,
    source: str,
    copied: str,
    counted: str,
    exact: str,
    lengths: str,
    checkpoints: str,
) -> list[StreamingQuery]:
    """Copies the changes of a table, counts those of each key, copies them exactly once, and counts its rows, up to the end."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    limits = {"maxOffsetsPerTrigger": "700"} if KNOWS_LIMITS else {}
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, name STRING, _change_type STRING, _partition INT, _offset BIGINT")
        .options(**table(servers, source), **limits)
        .load()
        .where(SLOWLY)
    )
    counts = changes.groupBy("id").agg(f.count("*").alias("changes"))
    sink = upsert_sink(table(servers, counted))
    exactly_once = upsert_sink(
        table(servers, exact),
        **{
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": "exact",
            "sink.parallelism": 2,
            "sequence-by": "_offset",
        },
    )
    sign = f.when(f.col("_change_type").isin("insert", "update_postimage"), 1).otherwise(-1)
    by_length = (
        normalize_changelog(changes, ["id"], 4)
        .groupBy(f.length("name").cast("bigint").alias("id"))
        .agg(f.sum(sign).alias("rows"))
        .withColumn("_change_type", f.when(f.col("rows") > 0, "upsert").otherwise("delete"))
    )
    writers = {
        "copy": changes.writeStream.format("upsert-kafka").options(**table(servers, copied)),
        "count": counts.writeStream.outputMode("update").foreachBatch(sink),
        "exact": changes.writeStream.foreachBatch(exactly_once),
        "length": by_length.writeStream.outputMode("update").foreachBatch(
            upsert_sink(table(servers, lengths))
        ),
    }
    queries: list[StreamingQuery] = []
    for name, writer in writers.items():
        remembering = writer.option("checkpointLocation", f"{checkpoints}/{name}")
        queries.append(remembering.trigger(availableNow=True).start())
        # As docs/errors.md says: two at once can break a new session.
        while queries[0].isActive and queries[0].status["message"].startswith("Initializing"):
            time.sleep(0.1)
    return queries


def main(*arguments: str) -> None:
    """Runs both to their end, in a session of their own."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    for query in start(spark, *arguments):
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
