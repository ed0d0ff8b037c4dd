"""Counts page views per region: from an append topic to an upsert topic."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as f

from pyspark_upsert_kafka.cli import parser
from pyspark_upsert_kafka.cli.demo.sample_data import PageView
from pyspark_upsert_kafka.cli.demo.topics import Topics
from pyspark_upsert_kafka.sink.update_mode import upsert_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

VIEWS = "page_views"
COUNTS = "pageviews_per_region"

_VIEW = "user_id BIGINT, page_id BIGINT, view_time TIMESTAMP_NTZ, user_region STRING"
_COUNT = "user_region STRING, pv BIGINT, uv BIGINT"


def write_views(spark: SparkSession, topics: Topics, views: Sequence[PageView]) -> None:
    """Writes views; the message key is their id, which the value does not repeat."""
    rows = spark.createDataFrame(
        pa.Table.from_pylist([view._asdict() for view in views]), f"view_id BIGINT, {_VIEW}"
    )
    options = {**topics.table(VIEWS, "view_id"), "value.fields-include": "EXCEPT_KEY"}
    rows.write.format("upsert-kafka").mode("append").options(**options).save()


def start_counting(spark: SparkSession, topics: Topics, checkpoint: str) -> StreamingQuery:
    """Starts the query: PV and exact UV per region.

    A streaming query cannot use COUNT(DISTINCT user_id); the size of a set is the same.
    """
    views = (
        spark.readStream.format("upsert-kafka")
        .schema(_VIEW)
        .options(**topics.append(VIEWS))
        .option("read.mode", "append")
        .load()
    )
    counts = views.groupBy("user_region").agg(
        f.count("*").alias("pv"),
        f.size(f.collect_set("user_id")).cast("bigint").alias("uv"),
    )
    return (
        counts.writeStream.outputMode("update")
        .foreachBatch(upsert_sink(topics.table(COUNTS, "user_region")))
        .option("checkpointLocation", checkpoint)
        .queryName("counts")
        .start()
    )


def read_counts(spark: SparkSession, topics: Topics) -> dict[str, tuple[int, int]]:
    """Region -> PV and UV, read from the topic."""
    options = topics.table(COUNTS, "user_region")
    table = spark.read.format("upsert-kafka").schema(_COUNT).options(**options).load()
    return {row.user_region: (row.pv, row.uv) for row in table.collect()}


def follow_command(topics: Topics) -> str:
    """The command that redraws the counts while they change."""
    return shlex.join(
        ["python", "-m", "pyspark_upsert_kafka", *_show_arguments(topics), "--follow"]
    )


def print_counts(topics: Topics) -> None:
    """Prints the counts, as the command ``show`` does."""
    given = parser(["show"]).parse_args(_show_arguments(topics))
    given.run(given)


def _show_arguments(topics: Topics) -> list[str]:
    where = ["--bootstrap-servers", topics.servers, "--topic", topics.named(COUNTS)]
    return ["show", *where, "--schema", _COUNT, "--primary-key", "user_region"]


def expected_counts(views: Iterable[PageView]) -> dict[str, tuple[int, int]]:
    """The same, computed from the views in plain Python."""
    pv: Counter[str] = Counter()
    users: dict[str, set[int]] = {}
    for view in views:
        pv[view.user_region] += 1
        users.setdefault(view.user_region, set()).add(view.user_id)
    return {region: (pv[region], len(users[region])) for region in pv}


def pv_history(spark: SparkSession, topics: Topics) -> dict[str, list[int]]:
    """Region -> its PV after each batch, from the changes that the topic holds."""
    options = {**topics.table(COUNTS, "user_region"), "read.mode": "changelog"}
    schema = f"{_COUNT}, _change_type STRING, _timestamp TIMESTAMP, _offset BIGINT"
    changes = spark.read.format("upsert-kafka").schema(schema).options(**options).load()
    in_time = changes.orderBy("_timestamp", "_offset").select("user_region", "pv").collect()
    return over_batches((row.user_region, row.pv) for row in in_time)


def over_batches(changes: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Lines of equal length: a batch changes a region once, so a region seen again starts the next batch.

    >>> over_batches([("Asia", 3), ("Europe", 1), ("Asia", 5), ("Asia", 9), ("Europe", 4)])
    {'Asia': [3, 5, 9], 'Europe': [1, 1, 4]}
    """
    batches: list[dict[str, int]] = [{}]
    for region, pv in changes:
        if region in batches[-1]:
            batches.append({})
        batches[-1][region] = pv
    lines: dict[str, list[int]] = {region: [] for region in sorted({r for b in batches for r in b})}
    for batch in batches:
        for region, line in lines.items():
            line.append(batch.get(region, line[-1] if line else 0))
    return lines
