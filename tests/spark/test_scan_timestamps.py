"""`scan.startup.timestamp` and `scan.bounded.timestamp`: where reads by time start and end."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches, message, read

CHANGES = "id BIGINT, _change_type STRING"

MINUTES_AGO = {1: 180, 2: 90, 3: 30, 4: 1}
"""How long ago each message was written."""


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic with a message of each of these times."""
    name = broker.topic()
    for id_, minutes in MINUTES_AGO.items():
        send(broker, name, id_, minutes)
    return name


def send(broker: Broker, topic: str, id_: int, minutes_ago: float = 0) -> None:
    """Sends a message with a timestamp in the past."""
    producer = broker.producer()
    key, value = message(id_)
    at_ms = int((time.time() - minutes_ago * 60) * 1000)
    producer.produce(topic, key=key, value=value, timestamp=at_ms)
    assert producer.flush(60) == 0


def iso(minutes_ago: float) -> str:
    """A time in a zone that is not UTC."""
    zone = timezone(timedelta(hours=-5))
    return (datetime.now(zone) - timedelta(minutes=minutes_ago)).isoformat()


@pytest.mark.parametrize(
    ("start", "end", "ids"),
    [
        ("-2 h", None, [2, 3, 4]),
        (None, "-1 h", [1, 2]),
        ("-2 h", "-10 min", [2, 3]),
        ("-30 s", None, []),
        pytest.param(120, 10, [2, 3], marks=pytest.mark.connect),
    ],
)
def test_a_batch(
    spark: SparkSession,
    broker: Broker,
    topic: str,
    start: str | int | None,
    end: str | int | None,
    ids: list,
) -> None:
    """From the first message of the time on, and before the first of the end; numbers are minutes ago, as a time with a zone."""
    start, end = (iso(each) if isinstance(each, int) else each for each in (start, end))
    given = {"scan.startup.timestamp": start, "scan.bounded.timestamp": end}
    changelog = options(broker, topic, **given, **{"read.mode": "changelog"})

    assert [row[0] for row in rows(load(spark, CHANGES, changelog))] == ids


def test_a_batch_has_its_end_from_its_plan(spark: SparkSession, broker: Broker) -> None:
    """A DataFrame that is used again shows the same rows; a fresh one has an end of its own."""
    topic = broker.topic()
    given = options(broker, topic, **{"scan.bounded.timestamp": "-2 s", "read.mode": "changelog"})
    send(broker, topic, 1, minutes_ago=2)
    first = load(spark, CHANGES, given)
    assert rows(first) == [(1, "upsert")]
    send(broker, topic, 2, minutes_ago=1)

    assert rows(first) == [(1, "upsert")]
    assert [row[0] for row in rows(load(spark, CHANGES, given))] == [1, 2]


def test_the_table_of_an_earlier_time(spark: SparkSession, broker: Broker) -> None:
    """A snapshot may end at a time."""
    topic = broker.topic()
    send(broker, topic, 1, minutes_ago=60)
    send(broker, topic, 2, minutes_ago=1)
    given = options(broker, topic, **{"scan.bounded.timestamp": "-30 min"})

    assert rows(load(spark, "id BIGINT", given)) == [(1,)]


@pytest.mark.connect
def test_a_stream_keeps_the_place_of_its_first_start(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """A restart goes on from the checkpoint, whatever the time is by then, and with another option too."""
    sink = Batches(tmp_path)
    for start, id_ in (("-2 h", 5), ("-1 s", 6), (iso(600), 7)):
        run_to_end(sink.start(read(spark, broker, topic, **{"scan.startup.timestamp": start})))
        send(broker, topic, id_, minutes_ago=100)

    assert [[row[0] for row in found] for found in sink.rows.values()] == [[2, 3, 4], [5], [6]]


@pytest.mark.long("two more runs of a query")
def test_a_bounded_stream_keeps_its_end(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """The end is where it was at the first start, also when the same text means a place behind what came since."""
    sink = Batches(tmp_path)
    given = {"scan.startup.timestamp": "-2 h", "scan.bounded.timestamp": "-2 s"}
    run_to_end(sink.start(read(spark, broker, topic, **given)))
    send(broker, topic, 5, minutes_ago=0.5)
    run_to_end(sink.start(read(spark, broker, topic, **given)))

    assert [row[0] for row in sink.all()] == [2, 3, 4]
