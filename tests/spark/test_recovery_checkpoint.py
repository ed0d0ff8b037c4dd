"""Restarts from a checkpoint: nothing is lost, nothing is read twice, nothing secret is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import why_it_ended
from tests.conftest import Broker, options
from tests.spark.conftest import eventually, run_to_end
from tests.spark.streams import Batches, message, named, read, running

FIRST = '{"version": 1, "topics": {"%s": {"id": "%s", "positions": {"0": 3}, "begins": {"0": 0}}}}'
SECOND = '{"version": 1, "topics": {"%s": {"id": "%s", "positions": {"0": 5}}}}'
"""Offsets as version 0.1.0 writes them: every later version must read them."""


def topic_id(broker: Broker, topic: str) -> str:
    """The id that the broker gave a topic."""
    (found,) = broker.admin.describe_topics(TopicCollection([topic])).values()
    return str(found.result().topic_id)


def created(broker: Broker, topic: str) -> bool:
    """Creates a topic; False = one of that name is still being deleted."""
    try:
        broker.create(topic)
    except KafkaException:
        return False
    return True


def is_another(broker: Broker, topic: str, before: str) -> bool:
    """Whether the broker has another topic of that name than the one that had this id."""
    try:
        return topic_id(broker, topic) != before
    except KafkaException:
        return False


def test_a_first_batch_that_failed_is_done_again_as_it_was(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Wherever the query starts: what came after it was planned comes after it, and is not lost."""
    topic = broker.topic()
    broker.produce(topic, message(0), message(1))
    latest = {"scan.startup.mode": "latest-offset"}
    frame = named(read(spark, broker, topic), "earliest").unionAll(
        named(read(spark, broker, topic, **latest), "latest")
    )
    sink = Batches(tmp_path, fails={0})
    with pytest.raises(StreamingQueryException, match="as it was told to"):
        run_to_end(sink.start(frame))
    broker.produce(topic, message(2), message(3))
    while 1 not in sink.rows:  # PySpark 4.0 ends after the batch that it does again
        run_to_end(sink.start(frame))

    assert sorted(row[:2] for row in sink.rows[0]) == [("earliest", 0), ("earliest", 1)]
    assert sorted(row[:2] for row in sink.rows[1]) == [
        ("earliest", 2),
        ("earliest", 3),
        ("latest", 2),
        ("latest", 3),
    ]


def test_a_checkpoint_of_this_version_is_read_for_ever(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Its text is pinned here; a query resumes from the text, not from what this version remembers."""
    topic = broker.topic()
    broker.produce(topic, *(message(n) for n in range(3)))
    sink = Batches(tmp_path)
    for n in (3, 4):
        run_to_end(sink.start(read(spark, broker, topic)))
        if n == 3:
            broker.produce(topic, message(3), message(4))
    ids = (topic, topic_id(broker, topic))
    texts = [(tmp_path / "offsets" / batch).read_text().splitlines()[-1] for batch in ("0", "1")]

    assert [FIRST % ids, SECOND % ids] == texts
    last = tmp_path / "offsets" / "1"
    last.write_text(last.read_text().replace('"0": 5', '"0": 4'))
    (tmp_path / "offsets" / ".1.crc").unlink()
    run_to_end(sink.start(read(spark, broker, topic)))
    assert [row[0] for row in sink.rows[2]] == [4]


def test_no_secret_reaches_the_checkpoint(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of the source nor of the sink, given as text or by reference."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, message(1))
    secrets = {"properties.sasl.password": "planted-1", "properties.ssl.key.password": "planted-2"}
    frame = read(spark, broker, source, **secrets)
    writer = frame.writeStream.format("upsert-kafka").options(**options(broker, target, **secrets))
    checkpoint = {"checkpointLocation": str(tmp_path)}
    query = writer.options(**checkpoint).trigger(availableNow=True).start()
    run_to_end(query)

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert not [path for path in files if b"planted" in path.read_bytes()]
    assert "planted" not in str([each.json for each in query.recentProgress])
    assert len(broker.messages(target)) == 1


@pytest.mark.long("several queries; waits until a topic is gone")
def test_lost_data_fails_a_restarted_query(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A re-created topic is known by its id, however many messages it has; deleted records too.

    With failOnDataLoss = false the same query goes on from what is there: the topic has fewer partitions now.
    """
    again, short = broker.topic(2), broker.topic()
    for topic in (again, short):
        broker.produce(topic, *(message(n) for n in range(3)), partition=0)

    def frame(**more: object) -> object:
        return named(read(spark, broker, again, **more), "again").unionAll(
            named(read(spark, broker, short, **more), "short")
        )

    sink = Batches(tmp_path)
    run_to_end(sink.start(frame()))
    broker.produce(short, *(message(n) for n in range(3, 8)))
    until = TopicPartition(short, 0, 6)
    broker.admin.delete_records([until])[until].result()
    with pytest.raises(StreamingQueryException, match="DataLossError: ") as deleted:
        run_to_end(sink.start(frame()))
    before = topic_id(broker, again)
    broker.delete(again)
    eventually(lambda: created(broker, again), "the topic is there again")
    eventually(lambda: is_another(broker, again, before), "the broker has the new one")
    broker.produce(again, *(message(n) for n in range(10, 13)))
    with pytest.raises(StreamingQueryException, match="DataLossError: ") as recreated:
        run_to_end(sink.start(frame()))
    run_to_end(sink.start(frame(failOnDataLoss="false")))

    for lost in (deleted, recreated):
        end = why_it_ended(lost.value)
        assert (end.error, end.restart) == ("DataLossError", False)
    where = f"topic '{short}', partition 0, wanted offset 3, earliest available offset 6"
    assert where in str(deleted.value)
    assert f"topic '{again}', partition 0, wanted offset 3" in str(recreated.value)
    assert "created again" in str(recreated.value)
    assert sorted(row[:2] for row in sink.rows[1]) == [
        ("again", 10), ("again", 11), ("again", 12), ("short", 6), ("short", 7),
    ]  # fmt: skip


@pytest.mark.long("several queries; waits until a topic is gone")
def test_a_topic_deleted_while_it_is_read(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """It fails the query with its name; with failOnDataLoss = false the other topics are read on.

    Created again later, it is read from its earliest offset, and nothing is read twice.
    """
    gone, stays = broker.topic(), broker.topic()
    failing, going_on = Batches(tmp_path / "failing"), Batches(tmp_path / "going-on")
    discovery = {"scan.topic-partition-discovery.interval": "1 s"}
    both = read(spark, broker, [gone, stays], failOnDataLoss="false", **discovery)
    with (
        running(failing.start(read(spark, broker, gone), processingTime="0 seconds")) as strict,
        running(going_on.start(both, processingTime="0 seconds")),
    ):
        broker.produce(gone, message(1))
        eventually(lambda: len(failing.all()) == len(going_on.all()) == 1, "the first message")
        broker.delete(gone)
        with pytest.raises(StreamingQueryException) as raised:
            run_to_end(strict)
        broker.produce(stays, message(2))
        eventually(lambda: len(going_on.all()) == 2, "a message of the other topic")
        eventually(lambda: created(broker, gone), "the topic is there again")
        broker.produce(gone, message(3))
        eventually(lambda: len(going_on.all()) == 3, "the message of the new topic")

    end = why_it_ended(raised.value)
    assert [row[0] for row in going_on.all()] == [1, 2, 3]
    assert (end.error, end.restart) == ("DataLossError", False)
    assert f"Some data may have been lost: topic '{gone}'" in end.text
    assert "the topic was deleted" in end.text
