"""The demo, step by step."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyspark_upsert_kafka.cli.demo import page_views, users
from pyspark_upsert_kafka.cli.demo.chart import Chart
from pyspark_upsert_kafka.cli.demo.sample_data import REGIONS, Wave, generate_waves
from pyspark_upsert_kafka.cli.demo.topics import Topics
from pyspark_upsert_kafka.cli.spark import local_spark
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.core.errors import UpsertKafkaError, shown
from pyspark_upsert_kafka.kafka.local import LocalKafka
from pyspark_upsert_kafka.monitoring.listener import ProgressListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


Key = TypeVar("Key")
Row = TypeVar("Row")

_INTRODUCTION = """
People view pages: one JSON message each in topic {views}. A streaming query counts them per
region and upserts the counts into topic {counts}: the region is the message key, so
the newest message of a region is its row. Meanwhile users move, leave and come back in topic {users};
a second query copies each change to topic {copy}, deletes included.

Follow the table in another terminal:
  {follow}

The counts (PV = page views), read back from the topic while the queries run:
"""


def run_scenario(spark: SparkSession, topics: Topics, messages: int, chart_file: Path) -> None:
    """Runs both queries while data arrives, checks their results and shows them.

    Raises:
        UpsertKafkaError: A table is not what the plain recomputation says.
    """
    waves = list(generate_waves(messages))
    names = {"views": page_views.VIEWS, "counts": page_views.COUNTS}
    names |= {"users": users.USERS, "copy": users.COPY}
    named = {word: topics.named(name) for word, name in names.items()}
    echo(_INTRODUCTION.format(**named, follow=page_views.follow_command(topics)))
    _run_queries(spark, topics, waves)
    _check(spark, topics, waves)
    _show(topics, waves)
    _draw(spark, topics, chart_file)


def _run_queries(spark: SparkSession, topics: Topics, waves: list[Wave]) -> None:
    """Writes the data in waves and prints the current counts after each."""
    echo(f"{'arrived':>10} |" + "".join(f"{region:>15}" for region in REGIONS))
    arrived = 0
    with _queries(spark, topics, waves[0]) as queries:
        for wave in waves:
            if wave is not waves[0]:
                _write(spark, topics, wave)
            arrived += len(wave.views)
            _show_counts(spark, topics, f"{arrived:,}")
            _raise_failure(queries)
        _wait_for(queries)
        _show_counts(spark, topics, "all done")


@contextmanager
def _queries(spark: SparkSession, topics: Topics, first: Wave) -> Iterator[list[StreamingQuery]]:
    """Both queries, running; the first wave is written before, which creates the topics."""
    _write(spark, topics, first)
    listener = ProgressListener(print_to=sys.stdout)
    spark.streams.addListener(listener)
    with tempfile.TemporaryDirectory(prefix="demo-checkpoints-") as checkpoints:
        queries = [
            page_views.start_counting(spark, topics, f"{checkpoints}/counts"),
            users.start_copying(spark, topics, f"{checkpoints}/copy"),
        ]
        try:
            _wait_for(queries)
            yield queries
        finally:
            for query in queries:
                query.stop()
            spark.streams.removeListener(listener)


def _wait_for(queries: list[StreamingQuery]) -> None:
    """Returns when the queries have processed all data."""
    for query in queries:
        query.processAllAvailable()


def _raise_failure(queries: list[StreamingQuery]) -> None:
    """Raises the error of a query that has failed; the demo would wait for ever otherwise."""
    for query in queries:
        if not query.isActive:
            query.awaitTermination()


def _write(spark: SparkSession, topics: Topics, wave: Wave) -> None:
    users.write_changes(spark, topics, wave.changes)
    page_views.write_views(spark, topics, wave.views)


def _show_counts(spark: SparkSession, topics: Topics, arrived: str) -> None:
    counts = page_views.read_counts(spark, topics)
    pvs = (counts.get(region, (0, 0))[0] for region in REGIONS)
    echo(f"{arrived:>10} |" + "".join(f"{pv:>15,}" for pv in pvs))


def _check(spark: SparkSession, topics: Topics, waves: list[Wave]) -> None:
    views = [view for wave in waves for view in wave.views]
    changes = [change for wave in waves for change in wave.changes]
    echo("\nBoth tables, read back as batches and recomputed in plain Python:")
    counts, copy = topics.named(page_views.COUNTS), topics.named(users.COPY)
    compare(counts, page_views.read_counts(spark, topics), page_views.expected_counts(views))
    compare(copy, users.read_copy(spark, topics), users.expected_table(changes))


def compare(table: str, found: Mapping[Key, Row], expected: Mapping[Key, Row]) -> None:
    """Prints that both are equal.

    Raises:
        UpsertKafkaError: They are not.
    """
    for key in found.keys() | expected.keys():
        if found.get(key) != expected.get(key):
            raise UpsertKafkaError(
                f"Table {table!r} has {found.get(key)!r} for {key!r}, where the recomputation has "
                f"{expected.get(key)!r}. That is a bug: please report it."
            )
    echo(f"  {table}: {len(found):,} rows, all equal")


def _show(topics: Topics, waves: list[Wave]) -> None:
    echo(f"\nThe table in topic {topics.named(page_views.COUNTS)} (UV = different users):")
    page_views.print_counts(topics)
    user = users.user_with_most_changes(change for wave in waves for change in wave.changes)
    echo(f"User {user} in topic {topics.named(users.COPY)}, message by message:")
    for message in users.messages_of(topics, user):
        deleted = "   a tombstone: the row is deleted" if message.value is None else ""
        echo(
            f"  offset {message.offset:>5}  {shown(message.key)} → {shown(message.value)}{deleted}"
        )


def _draw(spark: SparkSession, topics: Topics, chart_file: Path) -> None:
    chart = Chart(
        "Page views (PV) per region",
        "batch of the streaming query",
        "PV",
        page_views.pv_history(spark, topics),
    )
    chart_file.write_text(chart.svg(), encoding="utf-8")
    echo(f"\nA picture of how they grew: {chart_file}")


def run_demo(messages: int, folder: Path) -> None:
    """Runs the demo on Kafka and Spark.

    Args:
        messages: How many page views, about.
        folder: For the chart and Spark's log.

    Raises:
        UpsertKafkaError: A table is not what the plain recomputation says.
    """
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "spark.log"
    with demo_topics() as topics:
        echo(f"Starting Spark; its log goes to {log}")
        with local_spark(log) as spark:
            run_scenario(spark, topics, messages, folder / "page_views_per_region.svg")
    echo(f"Done in {time.monotonic() - began:.0f} seconds.")


@contextmanager
def demo_topics() -> Iterator[Topics]:
    """Topics on the cluster of KAFKA_BOOTSTRAP_SERVERS, or on a broker started here."""
    running = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if running:
        topics = Topics(running, f"-{uuid.uuid4().hex[:6]}")
        echo(f"Using the Kafka at {running}; the topics there end in {topics.suffix!r} and remain.")
        yield topics
        return
    echo("Starting Apache Kafka; the first time it is downloaded, 44 MB")
    with LocalKafka(config={"num.partitions": "2", "log.cleanup.policy": "compact"}) as kafka:
        yield Topics(kafka.bootstrap_servers)
