"""Starts Kafka and Spark for the demo.

`sample_data` generates page views and changes of users, `page_views` counts the views, `users` copies a
table, `chart` draws, and `scenario` runs all of it step by step.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark_upsert_kafka.cli.demo.scenario import run_scenario
from pyspark_upsert_kafka.cli.demo.topics import Topics
from pyspark_upsert_kafka.cli.spark import local_spark
from pyspark_upsert_kafka.cli.terminal import echo
from pyspark_upsert_kafka.kafka.local import LocalKafka


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
