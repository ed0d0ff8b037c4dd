"""How many changes `merge_sink` merges per second, into tables of several sizes: ``make bench-lakehouse``.

Runs in an environment with Iceberg or Delta Lake. A batch changes random keys of the table: nine of ten changes are upserts,
of which a tenth are of new keys, and one is a delete. No Kafka: only the merge is measured, and the batch is read once before.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyspark_upsert_kafka import merge_sink
from tests.lakehouse.engines import Lake, engine_here


def table_of(lake: Lake, rows: int) -> str:
    """A table of that many rows of about 100 bytes, as one first batch makes it."""
    table = lake.table()
    ids = lake.session.range(rows)
    sink = merge_sink(table, primary_key="id")
    sink(changes(ids), 0)
    return table


def changes(ids: DataFrame) -> DataFrame:
    """Changes of these keys, in order."""
    return ids.select(
        "id",
        f.rand().alias("amount"),
        f.concat(f.lit("a text of about fifty characters for each row, "), "id").alias("text"),
        (f.col("id") % 1000).cast("int").alias("region"),
        f.lit(0).alias("_partition"),
        f.monotonically_increasing_id().alias("_offset"),
        f.when(f.col("id") % 10 == 0, "delete").otherwise("upsert").alias("_change_type"),
    )


def seconds(lake: Lake, table: str, rows: int, batch: int, number: int) -> float:
    """How long it takes to merge a batch."""
    keys = lake.session.range(batch).select(
        (f.rand(number) * rows * 1.1).cast("bigint").alias("id")
    )
    ready = changes(keys).cache()
    ready.count()
    started = time.perf_counter()
    merge_sink(table, primary_key="id")(ready, number)
    took = time.perf_counter() - started
    ready.unpersist()
    return took


def main() -> None:
    """Prints a line for each size of the table and of the batch."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    arguments.add_argument("--batches", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--times", type=int, default=5)
    given = arguments.parse_args()
    engine = engine_here()
    assert engine is not None, "neither Iceberg nor Delta Lake is made for this PySpark"
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(engine, engine.session(Path(folder)), Path(folder))
        print(
            "| engine | rows in the table | changes in the batch | seconds | changes per second |"
        )
        print("|---|---|---|---|---|")
        for rows in given.rows:
            for batch in given.batches:
                table = table_of(lake, rows)
                seconds(lake, table, rows, batch, 0)  # warm
                took = statistics.median(
                    seconds(lake, table, rows, batch, n) for n in range(1, given.times + 1)
                )
                print(
                    f"| {engine.name} | {rows:,} | {batch:,} | {took:.2f} | {batch / took:,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
