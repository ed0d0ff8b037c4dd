"""A program that tests start and kill: ``python -m tests.spark.first_batch SERVERS TOPIC CHECKPOINT PIECES``.

It reads the table with which a stream begins, and never ends that batch.
"""

from __future__ import annotations

import os
import sys
import time

from tests.table_options import table_options

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id BIGINT, n BIGINT, _partition INT, _offset BIGINT, _change_type STRING"


def table_first(spark: SparkSession, servers: str, topic: str, pieces: str) -> DataFrame:
    """A stream that begins with the table."""
    given = table_options(
        topic=topic, properties__bootstrap__servers=servers, scan__startup__mode="full", minPartitions=pieces
    )  # fmt: skip
    return spark.readStream.format("upsert-kafka").schema(COLUMNS).options(**given).load()


def main(servers: str, topic: str, checkpoint: str, pieces: str) -> None:
    """Reads the first batch, in a session of its own."""

    def never_done(batch: DataFrame, batch_id: int) -> None:
        assert batch_id == 0
        batch.collect()
        time.sleep(3600)

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    writer = table_first(spark, servers, topic, pieces).writeStream.foreachBatch(never_done)
    query = writer.option("checkpointLocation", checkpoint).start()
    sys.stdout.write("started\n")
    sys.stdout.flush()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
