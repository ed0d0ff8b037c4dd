"""``python -m pyspark_upsert_kafka demo``.

`web_site` makes up what happens, `page_views` counts it, `users` copies a table, `chart` draws, and
`story` tells it all in order.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark_upsert_kafka.cli.say import say
from pyspark_upsert_kafka.cli.spark import local_spark
from pyspark_upsert_kafka.demo.story import tell
from pyspark_upsert_kafka.demo.topics import Topics
from pyspark_upsert_kafka.kafka.local import LocalKafka


def run_demo(messages: int, folder: Path) -> None:
    """Starts Kafka and Spark and runs the demo.

    Args:
        messages: How many page views, about.
        folder: Where the picture and Spark's log go.

    Raises:
        UpsertKafkaError: A table is not what the plain recomputation says.
    """
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "spark.log"
    with _topics() as topics:
        say(f"Starting Spark; its log goes to {log}")
        with local_spark(log) as spark:
            tell(spark, topics, messages, folder / "page_views_per_region.svg")
    say(f"Done in {time.monotonic() - began:.0f} seconds.")


@contextmanager
def _topics() -> Iterator[Topics]:
    """Topics on the cluster that runs already, or on a broker of our own."""
    running = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if running:
        topics = Topics(running, f"-{uuid.uuid4().hex[:6]}")
        say(f"Using the Kafka at {running}; the topics there end in {topics.suffix!r} and remain.")
        yield topics
        return
    say("Starting Apache Kafka; the first time it is downloaded, 44 MB")
    with LocalKafka(config={"num.partitions": "2", "log.cleanup.policy": "compact"}) as kafka:
        yield Topics(kafka.bootstrap_servers)
