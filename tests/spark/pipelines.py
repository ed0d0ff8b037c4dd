"""A program that tests start, kill and start again: ``python -m tests.spark.pipelines ...``.

It reads a topic in small batches, slowly enough to be killed in one.
"""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_upsert_kafka import upsert_sink
from tests.spark.streams import KNOWS_LIMITS

SLOWLY = "concat('slept', reflect('java.lang.Thread', 'sleep', 1L)) <> ''"
"""A condition that is true, after a millisecond."""


def table(servers: str, topic: str) -> dict[str, str]:
    """Options of a JSON table with the key ``id``."""
    return {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }


def main(servers: str, source: str, copied: str, counted: str, checkpoints: str) -> None:
    """Copies the changes of a table and counts those of each key, up to the end of the source."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    limits = {"maxOffsetsPerTrigger": "700"} if KNOWS_LIMITS else {}
    changes = (
        spark.readStream.format("upsert-kafka")
        .schema("id BIGINT, name STRING, _change_type STRING")
        .options(**table(servers, source), **limits)
        .load()
        .where(SLOWLY)
    )
    counts = changes.groupBy("id").agg(f.count("*").alias("changes"))
    sink = upsert_sink(table(servers, counted))
    writers = {
        "copy": changes.writeStream.format("upsert-kafka").options(**table(servers, copied)),
        "count": counts.writeStream.outputMode("update").foreachBatch(sink),
    }
    queries = [
        writer.option("checkpointLocation", f"{checkpoints}/{name}")
        .trigger(availableNow=True)
        .start()
        for name, writer in writers.items()
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
