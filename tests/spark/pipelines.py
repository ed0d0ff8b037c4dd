"""A program that tests start and kill: ``python -m tests.spark.pipelines ...``.

It reads a topic in small batches, slowly enough to be killed in one.
"""

from __future__ import annotations

import os
import sys

from tests.table_options import table_options

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import upsert_sink
from tests.spark.streams import KNOWS_LIMITS

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
    checkpoints: str,
) -> list[StreamingQuery]:
    """Copies the changes of a table, counts those of each key, and copies them exactly once, up to the end."""
    limits = {"maxOffsetsPerTrigger": "700"} if KNOWS_LIMITS else {}
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, name STRING, _change_type STRING, _offset BIGINT")
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
    writers = {
        "copy": changes.writeStream.format("upsert-kafka").options(**table(servers, copied)),
        "count": counts.writeStream.outputMode("update").foreachBatch(sink),
        "exact": changes.writeStream.foreachBatch(exactly_once),
    }
    return [
        writer.option("checkpointLocation", f"{checkpoints}/{name}")
        .trigger(availableNow=True)
        .start()
        for name, writer in writers.items()
    ]


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
