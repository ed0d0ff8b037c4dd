"""A query that tests kill: ``python -m tests.lakehouse.program SERVERS TOPIC TABLE LAKE FOLDER STEP``.

It merges a topic into a table. In its second micro-batch it waits to be killed: before the MERGE, or after it, before Spark notes
that the batch is done. To be killed in the middle it does not wait.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import merge_sink
from tests.lakehouse.engines import engine_here

COLUMNS = "id BIGINT, name STRING, _partition INT, _offset BIGINT, _change_type STRING"


def wait(folder: Path, step: str) -> None:
    """Says that the step is reached, and waits to be killed."""
    (folder / f"{step}.reached").touch()
    time.sleep(3600)


def start(
    session: SparkSession, servers: str, topic: str, table: str, folder: Path, step: str | None
) -> StreamingQuery:
    """Starts the query, which ends when it has read what is there.

    Args:
        session: Where it runs.
        servers: Addresses of the brokers.
        topic: The topic.
        table: The table.
        folder: For the checkpoint, and for what tells that the step is reached.
        step: Where the second batch waits: ``before`` or ``after``; with ``in`` it says that it begins. None = nowhere.
    """
    sink = merge_sink(table, primary_key="id")

    def merge(batch: DataFrame, number: int) -> None:
        second = number == 1
        if second and step == "in":
            (folder / "in.reached").touch()
        if second and step == "before":
            wait(folder, step)
        sink(batch, number)
        if second and step == "after":
            wait(folder, step)

    options = {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }
    stream = session.readStream.format("upsert-kafka").schema(COLUMNS).options(**options).load()
    writer = stream.writeStream.foreachBatch(merge).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def main(servers: str, topic: str, table: str, lake: str, folder: str, step: str) -> None:
    """Merges, and waits in the middle."""
    engine = engine_here()
    assert engine is not None
    query = start(engine.session(Path(lake)), servers, topic, table, Path(folder), step)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
