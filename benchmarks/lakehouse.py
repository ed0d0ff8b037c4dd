"""How many changes `merge_sink` merges per second, into tables of several sizes: ``make bench-lakehouse``.

Runs in an environment with Iceberg or Delta Lake; tables of Iceberg have each format version, of which 3 has deletion vectors.
Files are those with rows or with what is deleted, which a batch has written. A batch changes random keys of the table: nine of ten changes are upserts,
of which a tenth are of new keys, and one is a delete. No Kafka: only the merge is measured, and the batch is read once before.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from itertools import product
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pyspark_upsert_kafka import merge_sink
from tests.lakehouse.engines import Lake, engine_here


def table_of(lake: Lake, rows: int, properties: dict[str, str]) -> str:
    """A table of that many rows of about 100 bytes, as one first batch makes it."""
    table = lake.table()
    ids = lake.session.range(rows)
    sink = merge_sink(table, primary_key="id", properties=properties)
    sink(changes(ids), 0)
    return table


def files(lake: Lake, table: str) -> set[Path]:
    """The files of a table that hold rows, or which of them are deleted."""
    return {
        file
        for file in lake.folder.rglob(f"{table.rsplit('.', maxsplit=1)[-1]}/**/*")
        if file.suffix in {".parquet", ".puffin", ".bin"} and not file.name.startswith(".")
    }


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


def merged(lake: Lake, table: str, rows: int, batch: int, number: int) -> tuple[float, int]:
    """How long it takes to merge a batch, in seconds, and how many files that writes."""
    keys = lake.session.range(batch).select(
        (f.rand(number) * rows * 1.1).cast("bigint").alias("id")
    )
    ready = changes(keys).cache()
    ready.count()
    before = files(lake, table)
    started = time.perf_counter()
    merge_sink(table, primary_key="id")(ready, number)
    took = time.perf_counter() - started
    ready.unpersist()
    return took, len(files(lake, table) - before)


def main() -> None:
    """Prints a line for each size of the table and of the batch."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    arguments.add_argument("--batches", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--times", type=int, default=5)
    arguments.add_argument("--formats", nargs="*", default=["2", "3"])
    given = arguments.parse_args()
    engine = engine_here()
    assert engine is not None, "neither Iceberg nor Delta Lake is made for this PySpark"
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(engine, engine.session(Path(folder)), Path(folder))
        print("| engine | rows in the table | changes | files | seconds | changes per second |")
        print("|---|---|---|---|---|---|")
        formats = given.formats if engine.name == "iceberg" else [""]
        for rows, format_, batch in product(given.rows, formats, given.batches):
            table = table_of(lake, rows, {"format-version": format_} if format_ else {})
            merged(lake, table, rows, batch, 0)  # warm
            took, written = zip(
                *(merged(lake, table, rows, batch, n) for n in range(1, given.times + 1)),
                strict=True,
            )
            seconds = statistics.median(took)
            print(
                f"| {engine.name} {format_} | {rows:,} | {batch:,} | {statistics.median(written):g} | {seconds:.2f} "
                f"| {batch / seconds:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
