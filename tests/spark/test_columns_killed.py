"""A driver that is killed at each step of a change of columns, with a topic as the target."""

from __future__ import annotations

from pathlib import Path
from urllib.error import HTTPError

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.local_registry import Registry
from tests.spark.columns_program import Job
from tests.spark.conftest import rows
from tests.spark.killed_columns import PLACES, Story

pytestmark = [
    pytest.mark.long("kills a program at each step"),
    pytest.mark.classic("the program has a session of its own"),
    pytest.mark.timeout(1800),
]

EXACTLY_ONCE = {"sink.delivery-guarantee": "exactly-once", "sink.parallelism": "2"}


@pytest.mark.parametrize("guarantee", [{}, EXACTLY_ONCE], ids=["upserts", "exactly once"])
def test_a_topic(
    spark: SparkSession,
    broker: Broker,
    registry: Registry,
    tmp_path: Path,
    guarantee: dict[str, str],
) -> None:
    """Each row has its columns, under exactly once each message is there once; one more column comes while no query runs."""
    source, target = broker.topic(3), broker.topic(2)
    formats = {"key.format": "json", "value.format": "avro-confluent"}
    formats["value.avro-confluent.url"] = registry.url
    there = options(broker, target, **formats)
    sink = {**there, **guarantee}
    if guarantee:
        sink["sink.transactional-id-prefix"] = f"killed-{target}"
    reading = {**options(broker, source, **formats), "scan.schema-changes": "restart"}

    def changed(column: str) -> bool:
        try:
            newest = registry.ask("GET", f"/subjects/{target}-value/versions/latest")
        except HTTPError:
            return False
        return f'"{column}"' in newest["schema"]

    story = Story(spark, Job(str(tmp_path), reading, sink), changed)
    story.write()
    for place in PLACES:
        story.killed_at(place)
    story.widen()
    story.to_end()

    found = spark.read.format("upsert-kafka").options(**there)
    broker.wait_for_transactions(target)
    if guarantee:
        messages = found.option("read.mode", "changelog").load().drop("_change_type")
        assert rows(messages) == sorted(story.rows(), key=repr)
    assert rows(found.option("read.mode", "snapshot").load()) == story.table()
