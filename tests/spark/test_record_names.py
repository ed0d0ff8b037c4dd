"""`scan.record-names` in Spark: a topic of several record types is read as if it had only those of one type."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker
from tests.kafka.test_record_names import ORDERS, customer, given, order, registry
from tests.spark.batches import load
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches
from tests.unit.registry.fake_registry import FakeRegistry

__all__ = ["registry"]


def test_a_table_of_one_type(spark: SparkSession, broker: Broker, registry: FakeRegistry) -> None:
    """Its columns come from the subject of the record; an order that a customer of the same key follows is shown."""
    topic = broker.topic(2)
    registry.version(
        f"{topic}-shop.Order", "latest", registry.answers["/schemas/ids/3"][0][1]["schema"]
    )
    both = order(3, "c")[0], customer("c", 9)[1]
    broker.produce(
        topic, customer("a", 1), order(1, "a"), order(2, "b"), customer("a", None), order(3, "c"), both, order(2, None),
        partition=0,
    )  # fmt: skip
    it = given(broker, topic, registry.url, **ORDERS, **{"read.mode": "snapshot"})

    found = spark.read.format("upsert-kafka").options(**it).load()

    assert found.columns == ["id", "name"]
    assert rows(found) == [(1, "a"), (3, "c")]
    assert rows(load(spark, "id BIGINT, name STRING", {**it, "minPartitions": 3})) == [
        (1, "a"),
        (3, "c"),
    ]


@pytest.mark.long("two runs of two queries")
def test_a_stream_of_one_type(
    spark: SparkSession,
    broker: Broker,
    registry: FakeRegistry,
    tmp_path: Path,
) -> None:
    """Its offsets go on past the others; the table with which it begins has none of them either."""
    topic = broker.topic()
    broker.produce(
        topic, customer("a", 1), order(1, "a"), order(2, "b"), customer("b", 2), order(2, None)
    )
    changes, first = Batches(tmp_path / "changes"), Batches(tmp_path / "table")

    def stream(**more: str):
        it = given(broker, topic, registry.url, **ORDERS, **more)
        schema = "id BIGINT, name STRING, _change_type STRING"
        return spark.readStream.format("upsert-kafka").schema(schema).options(**it).load()

    for _ in range(2):
        run_to_end(changes.start(stream()))
        run_to_end(first.start(stream(**{"scan.startup.mode": "full"})))
        broker.produce(topic, customer("c", 1), order(4, "e"), customer("a", None))

    assert [[row[:2] for row in each] for each in changes.rows.values()] == [
        [(1, "a"), (2, "b"), (2, None)], [(4, "e")],
    ]  # fmt: skip
    assert [sorted(row[:3] for row in each) for each in first.rows.values()] == [
        [(1, "a", "upsert")], [(4, "e", "upsert")],
    ]  # fmt: skip
