"""A query of version 0.1 goes on with this version.

The files in ``checkpoints_0_1`` were written by version 0.1.0 on PySpark 4.3; the name and the id of its topic are replaced,
since each broker gives other ids. It used librdkafka. ``changes`` has two finished batches and one that its sink has refused; ``bounded`` is a
bounded stream whose first batch was refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker
from tests.spark.conftest import run_to_end
from tests.spark.streams import Batches, message, read
from tests.spark.test_recovery_checkpoint import topic_id

WRITTEN = Path(__file__).with_name("checkpoints_0_1")

CLIENTS = {
    "librdkafka": {},
    # kafka-python-ng cannot tell the messages of aborted transactions from others.
    "kafka-python": {
        "kafka.client": "kafka-python",
        "properties.isolation.level": "read_uncommitted",
    },
}


def checkpoint(name: str, topic: str, id_: str, folder: Path) -> Path:
    """A copy of a checkpoint, of a topic of this broker."""
    copy = folder / name
    for file in (WRITTEN / name).rglob("*"):
        if file.is_file():
            target = copy / file.relative_to(WRITTEN / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text(encoding="utf-8").replace("@TOPIC@", topic)
            target.write_text(text.replace("@ID@", id_), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    "client",
    [
        "librdkafka",
        pytest.param("kafka-python", marks=pytest.mark.long("the same by the other client")),
    ],
)
def test_a_query_goes_on_where_version_0_1_stopped(
    spark: SparkSession, broker: Broker, tmp_path: Path, client: str
) -> None:
    """The unfinished batch is done again with the rows that it had, and the next one has what came after them."""
    topic = broker.topic(2)
    broker.produce(topic, *map(message, (0, 1, 2, 3, 4, 5)), partition=0)
    broker.produce(topic, *map(message, (10, 11, 12, 13)), partition=1)
    sink = Batches(checkpoint("changes", topic, topic_id(broker, topic), tmp_path))
    for _ in range(2):  # PySpark 4.0 ends after the batch that it does again
        run_to_end(sink.start(read(spark, broker, topic, **CLIENTS[client])))

    assert {n: sorted(row[0] for row in rows) for n, rows in sink.rows.items()} == {
        2: [4],
        3: [5, 13],
    }


@pytest.mark.long("as the first test, of another checkpoint")
def test_a_bounded_query_of_version_0_1_ends_where_it_was_to_end(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Its first batch, which was not finished, has the rows that it had; what was written later is not read."""
    topic = broker.topic(2)
    broker.produce(topic, *map(message, (0, 1, 2, 3)), partition=0)
    broker.produce(topic, *map(message, (10, 11, 12)), partition=1)
    sink = Batches(checkpoint("bounded", topic, topic_id(broker, topic), tmp_path))
    bounded = {"scan.bounded.mode": "latest-offset"}
    for _ in range(2):
        run_to_end(sink.start(read(spark, broker, topic, **bounded)))

    assert [row[0] for row in sink.all()] == [0, 1, 10, 11, 2]
    assert sorted(sink.rows) == [0]


@pytest.mark.long("as the first test, of another checkpoint")
def test_another_topic_of_that_name_is_not_taken_for_it(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Version 0.1 has kept the id of the topic: one that was created again is lost data, as with a checkpoint of this version."""
    topic = broker.topic(2)
    broker.produce(topic, *map(message, range(6)), partition=0)
    broker.produce(topic, *map(message, range(10, 14)), partition=1)
    sink = Batches(checkpoint("changes", topic, "AAAAAAAAAAAAAAAAAAAAAA", tmp_path))
    with pytest.raises(Exception, match=r"DataLossError: .*created again"):
        run_to_end(sink.start(read(spark, broker, topic)))
