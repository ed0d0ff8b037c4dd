"""What tests need of Delta Lake, and a program that they kill: ``python -m tests.spark.lakehouse SERVERS TOPIC FOLDER``.

It loads a table as docs/lakehouse.md does and merges changes into it. After the second micro-batch has reached the
table it waits to be killed, before Spark notes that the batch is done.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

import pyspark
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from tests.spark.pages import LAKEHOUSE, World, snippets

LOCK = Path(__file__).with_name("delta-lake.lock")
FITS = pyspark.__version__.startswith("4.2.")


def delta_session() -> SparkSession:
    """A local session with Delta Lake; its last setting spares small tables fifty tasks."""
    jars = sorted(map(str, broker_jars(LOCK).glob("*.jar")))
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def after_the_first_load(servers: str, topic: str, folder: Path) -> dict[str, Any]:
    """The page's names (``change``, ``merge``, ``run``, ...) when its table is loaded; a batch has about 100 messages."""
    world = World(servers, folder, {"users": topic})
    names: dict[str, Any] = {"__name__": "__main__"}
    setup, load, merge, *_ = snippets(LAKEHOUSE.read_text(encoding="utf-8"))
    start = '.option("scan.startup.mode"'
    limited = load.code.replace(start, f'.option("maxOffsetsPerTrigger", 100){start}')
    assert limited != load.code
    for snippet in (setup, replace(load, code=limited), merge):
        world.run(snippet, LAKEHOUSE, names)
    return names


def main(servers: str, topic: str, folder: str) -> None:
    """Merges, and waits in the middle."""
    delta_session()
    page = after_the_first_load(servers, topic, Path(folder))
    merge = page["merge"]

    def merge_and_wait(batch: DataFrame, batch_id: int) -> None:
        merge(batch, batch_id)
        if batch_id == 1:
            time.sleep(3600)

    page["merge"] = merge_and_wait
    changes = ((n % 50, f"r{n}", "delete" if n % 7 == 0 else "upsert") for n in range(350))
    page["change"](*changes)
    page["run"]()


if __name__ == "__main__":
    main(*sys.argv[1:])
