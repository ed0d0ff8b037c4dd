"""A DataFrame of a table that is changed meanwhile: used again after compaction, and twice in one query."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, broker_at, options
from tests.spark.batches import load
from tests.spark.conftest import eventually

pytestmark = pytest.mark.long("waits for compaction, on a broker of its own")

COLUMNS = "id BIGINT, n BIGINT"


def row(key: int, number: int) -> tuple[str, str]:
    """Key and value of a row."""
    return f'{{"id":{key}}}', f'{{"id":{key},"n":{number}}}'


@pytest.mark.classic("over Connect each action plans anew")
@pytest.mark.parametrize("more", [{}, {"minPartitions": 5}])
def test_a_table_that_is_used_again_after_compaction_lacks_no_key(
    spark: SparkSession, own_kafka: Any, more: dict[str, object]
) -> None:
    """All that its first use has read was overwritten, and is gone."""
    broker = broker_at(own_kafka(config={"log.cleaner.backoff.ms": "100"}).bootstrap_servers)
    topic = broker.topic(
        2, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.001"
    )
    broker.produce(topic, *(row(key, key) for key in range(500)))
    table = load(spark, COLUMNS, options(broker, topic, **more))
    assert table.count() == 500
    ends = {found.partition: found.offset + 1 for found in broker.messages(topic)}
    broker.produce(topic, *(row(key, key + 1000) for key in range(500)))
    time.sleep(
        0.2
    )  # the next message is in a segment of its own, and lets the cleaner at the others
    for partition in ends:
        broker.produce(topic, row(0, 1000), partition=partition)

    def compacted() -> bool:
        return all(found.offset >= ends[found.partition] for found in broker.messages(topic))

    eventually(compacted, "compaction")

    found = {each["id"]: each["n"] for each in table.collect()}
    assert found == {key: key + 1000 for key in range(500)}


@pytest.fixture
def changing(broker: Broker) -> Iterator[str]:
    """A topic whose every row is changed without a pause."""
    topic, stopped = broker.topic(cleanup_policy="compact"), threading.Event()

    def change() -> None:
        number = 0
        while not stopped.is_set():
            broker.produce(topic, *(row(key, number + key) for key in range(20)))
            number += 20

    thread = threading.Thread(target=change)
    thread.start()
    eventually(lambda: len(broker.messages(topic)) > 20, "rows")
    yield topic
    stopped.set()
    thread.join()


@pytest.mark.classic("over Connect each action plans anew")
@pytest.mark.parametrize("way", ["count", "cache"])
def test_a_table_that_was_used_before_is_one_table_in_a_query_that_uses_it_twice(
    spark: SparkSession, broker: Broker, changing: str, way: str
) -> None:
    """A join with itself and EXCEPT see one end, of a DataFrame and of a view, as the page on reading says."""
    table = load(spark, COLUMNS, options(broker, changing))
    getattr(table, way)()
    table.createOrReplaceTempView("changing")
    joined = table.alias("a").join(table.alias("b"), "id")

    assert joined.where("a.n <> b.n").count() == 0
    assert table.exceptAll(table).count() == 0
    assert (
        spark.sql(
            "SELECT * FROM changing a JOIN changing b ON a.id = b.id WHERE a.n <> b.n"
        ).count()
        == 0
    )
    assert joined.count() == 20
    table.unpersist()
