"""A query that tests kill: ``python -m tests.lakehouse.program SERVERS TOPIC TABLE LAKE FOLDER PLACE FIRST_BATCH``.

It merges a topic, the table first, into a table. It waits to be killed before the MERGE of a batch (``before 1``), or after it,
before Spark notes that the batch is done (``after 1``). To be killed in the middle (``in 1``) it does not wait.
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


def start(
    session: SparkSession,
    servers: str,
    topic: str,
    table: str,
    folder: Path,
    place: str = "",
    first_batch: str = "changes",
) -> StreamingQuery:
    """Starts the query, which ends when it has read what is there.

    Args:
        session: Where it runs.
        servers: Addresses of the brokers.
        topic: The topic.
        table: The table.
        folder: For the checkpoint, and for what tells that the step is reached.
        place: Where a file of that name is made in the folder, and a batch waits: ``before <batch>`` or ``after <batch>``. At
            ``in <batch>`` it does not wait. Empty = nowhere.
        first_batch: As of `merge_sink`.
    """
    sink = merge_sink(table, primary_key="id", first_batch=first_batch)

    def merge(batch: DataFrame, number: int) -> None:
        reached(f"in {number}")
        reached(f"before {number}")
        sink(batch, number)
        reached(f"after {number}")

    def reached(here: str) -> None:
        if here == place:
            (folder / here).touch()
            time.sleep(0 if here.startswith("in") else 3600)

    options = {
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
        "scan.startup.mode": "full",
    }
    stream = session.readStream.format("upsert-kafka").schema(COLUMNS).options(**options).load()
    writer = stream.writeStream.foreachBatch(merge).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def main(
    servers: str, topic: str, table: str, lake: str, folder: str, place: str, first_batch: str
) -> None:
    """Merges, and waits at the place."""
    engine = engine_here()
    assert engine is not None
    session = engine.session(Path(lake))
    query = start(session, servers, topic, table, Path(folder), place, first_batch)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
