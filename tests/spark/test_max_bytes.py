"""`maxBytesPerTrigger`: micro-batches of about so many bytes, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker
from tests.spark.conftest import run_to_end
from tests.spark.streams import Batches, message, needs_limits, read

pytestmark = pytest.mark.long(
    "many batches; tests/unit/connector/planning/test_message_sizes.py holds the rule"
)

SIZE = len("".join(map(str, message(1000, "x" * 900))))
"""Bytes of a message."""


def send(broker: Broker, topic: str, count: int, partition: int) -> None:
    """Sends messages of one size."""
    broker.produce(
        topic, *(message(1000 + n, "x" * 900) for n in range(count)), partition=partition
    )


@needs_limits
def test_available_now_within_bytes(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Every message is read once, in batches of the stated size, over restarts with other limits."""
    topic = broker.topic(2)
    send(broker, topic, 400, 0)
    send(broker, topic, 100, 1)
    sink = Batches(tmp_path)
    run_to_end(sink.start(read(spark, broker, topic, maxBytesPerTrigger=100 * SIZE)))
    sizes = [len(found) for found in sink.rows.values()]
    assert sizes[:5] == [100] * 5
    assert sum(sizes) == 500

    send(broker, topic, 300, 0)
    both = read(spark, broker, topic, maxBytesPerTrigger="1 gb", maxOffsetsPerTrigger=120)
    run_to_end(sink.start(both))
    assert [len(found) for found in sink.rows.values()][len(sizes) :] == [120, 120, 60]

    send(broker, topic, 3, 0)
    send(broker, topic, 2, 1)
    run_to_end(sink.start(read(spark, broker, topic, maxBytesPerTrigger=1)))
    assert [len(found) for found in sink.rows.values()][-3:] == [2, 2, 1]
    places = [(row[0], row[1]) for row in sink.all()]
    assert len(places) == 805


@needs_limits
def test_trigger_once_has_no_limit(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """It reads all there is in one batch."""
    topic = broker.topic()
    send(broker, topic, 1200, 0)
    sink = Batches(tmp_path)
    run_to_end(sink.start(read(spark, broker, topic, maxBytesPerTrigger="1 kb"), once=True))

    assert [len(found) for found in sink.rows.values()] == [1200]
