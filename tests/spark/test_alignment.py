"""`scan.watermark.alignment.max-drift`: a backfill in which one partition lags by hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from tests.conftest import Broker
from tests.spark.conftest import run_to_end
from tests.spark.streams import needs_limits, read

pytestmark = pytest.mark.long(
    "two queries over a backlog of hours; tests/unit holds what they plan"
)

NOON_MS = 1_767_268_800_000
HOUR_MS = 3_600_000

APPEND = {
    "read__mode": "append",
    "primary_key": None,
    "key__format": None,
    "maxOffsetsPerTrigger": 30,
}


def backfill(broker: Broker, **config: str) -> str:
    """A topic with a partition of this noon, one of the hours since six, and one that is idle."""
    topic, producer = broker.topic(3, retention_ms="-1", **config), broker.producer()
    times = {
        0: [NOON_MS + n for n in range(60)],
        1: [NOON_MS - n // 20 * HOUR_MS for n in range(139, 19, -1)],
    }
    for partition, of_partition in times.items():
        for n, time in enumerate(of_partition):
            producer.produce(topic, value=f'{{"id":{n}}}', partition=partition, timestamp=time)
    assert producer.flush(60) == 0
    return topic


def counted(
    spark: SparkSession, broker: Broker, topic: str, folder: Path, **more: object
) -> StreamingQuery:
    """Counts the messages of each hour with a watermark of a minute, up to the end of the topic."""
    events = read(spark, broker, topic, "id BIGINT, _timestamp TIMESTAMP", **APPEND, **more)
    hours = events.withWatermark("_timestamp", "1 minute").groupBy(f.window("_timestamp", "1 hour"))
    writer = hours.count().writeStream.outputMode("update").format("noop")
    query = (
        writer.option("checkpointLocation", str(folder / topic)).trigger(availableNow=True).start()
    )
    run_to_end(query)
    return query


def dropped(query: StreamingQuery) -> int:
    """How many rows were too late for Spark's watermark."""
    return sum(
        each["stateOperators"][0]["numRowsDroppedByWatermark"] for each in query.recentProgress
    )


def rows_read(query: StreamingQuery) -> int:
    """How many rows were read."""
    return sum(each.numInputRows for each in query.recentProgress)


@needs_limits
def test_a_partition_that_lags_by_hours_loses_nothing(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """With a drift of the watermark's delay; without it Spark drops most of what the partition holds."""
    topic = backfill(broker)
    drift = {"scan.watermark.alignment.max-drift": "1 min"}

    alone = counted(spark, broker, topic, tmp_path / "alone")
    aligned = counted(spark, broker, topic, tmp_path / "aligned", **drift)

    assert rows_read(alone) == rows_read(aligned) == 180
    assert dropped(alone) > 0
    assert dropped(aligned) == 0
    assert all(each.numInputRows <= 32 for each in aligned.recentProgress)


@needs_limits
def test_times_of_the_broker_are_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """They say nothing of the events."""
    topic = backfill(broker, message_timestamp_type="LogAppendTime")

    with pytest.raises(Exception, match=f"OptionError: .*{topic}.*LogAppendTime"):
        counted(spark, broker, topic, tmp_path, **{"scan.watermark.alignment.max-drift": "1 min"})
