"""Streaming reads on a real broker: which messages become which rows, and in which batches."""

from __future__ import annotations

import json
import time
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka import UpsertKafkaDataSource
from tests.conftest import Broker, options
from tests.spark.conftest import eventually, run_to_end
from tests.spark.streams import SCHEMA, Batches, message, named, needs_limits, read, running

CHANGES = "id BIGINT, name STRING, _change_type STRING, _partition INT, _offset BIGINT"


@pytest.mark.connect
def test_changes_deletes_and_plain_messages(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A changelog shows every change in offset order, or no deletes; an append source shows values."""
    topic = broker.topic(2)
    broker.produce(
        topic, message(1, "a"), message(2, "b"), message(1, "c"), message(2, None), partition=1
    )
    plain = broker.topic()
    broker.produce(plain, (None, '{"id":7,"name":"p"}'), ("what?", '{"id":7,"name":"q"}'))
    emitted = read(spark, broker, topic, CHANGES)
    dropped = read(spark, broker, topic, CHANGES, **{"scan.deletes": "drop"})
    append = read(
        spark, broker, plain, "id BIGINT, name STRING, _partition INT, _offset BIGINT",
        primary_key=None, **{"key.format": None, "read.mode": "append"},
    )  # fmt: skip
    append = append.select("id", "name", f.lit("none"), "_partition", "_offset")
    sink = Batches(tmp_path)
    run_to_end(sink.start(emitted.withColumn("_topic", f.lit("emitted"))
                          .unionAll(dropped.withColumn("_topic", f.lit("dropped")))
                          .unionAll(append.withColumn("_topic", f.lit("append")))))  # fmt: skip
    found = {name: [row[:-2] for row in sink.rows[0] if row[-2] == name]
             for name in ("emitted", "dropped", "append")}  # fmt: skip

    upserts = [(1, "a", "upsert", 1, 0), (2, "b", "upsert", 1, 1), (1, "c", "upsert", 1, 2)]
    assert found == {
        "emitted": [*upserts, (2, None, "delete", 1, 3)],
        "dropped": upserts,
        "append": [(7, "p", "none", 0, 0), (7, "q", "none", 0, 1)],
    }


@pytest.mark.long("a query of several sources; tests/unit/connector holds what they plan")
def test_one_spark_partition_for_each_kafka_partition_with_data(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Empty ranges get none, minPartitions cuts them, scan.parallelism puts several into one.

    A self-union has each range twice.
    """
    topic = broker.topic(5)
    for partition in (1, 3, 4):
        broker.produce(topic, *(message(n) for n in range(6)), partition=partition)
    whole = read(spark, broker, topic, CHANGES)
    cut = read(spark, broker, topic, CHANGES, minPartitions=6)
    both = whole.unionAll(whole).withColumn("kind", f.lit("whole"))
    few = read(spark, broker, topic, CHANGES, **{"scan.parallelism": "2"})
    frame = both.unionAll(cut.withColumn("kind", f.lit("cut")))
    frame = frame.unionAll(few.withColumn("kind", f.lit("few")))
    sink = Batches(tmp_path)
    with running(sink.start(frame, processingTime="0 seconds")):
        eventually(lambda: 0 in sink.rows, "the first batch")
        broker.produce(topic, message(9), partition=0)
        # Each of the four reads asks for the latest offset by itself, perhaps before the message and after.
        eventually(lambda: len(sink.all()) >= 72 + 4, "the message in each read")

    tasks = {(row[-2], row[3], row[-1]) for row in sink.rows[0]}
    of_whole = sorted(partition for kind, partition, _ in tasks if kind == "whole")
    assert of_whole == [1, 1, 3, 3, 4, 4]
    assert len({task for kind, _, task in tasks if kind == "cut"}) == 6
    assert len({task for kind, _, task in tasks if kind == "few"}) == 2
    assert {row[-1] for row in sink.rows[0]} == set(range(14)), "no empty task"
    assert len(sink.rows[0]) == 72
    later = [row for batch, rows in sink.rows.items() if batch > 0 for row in rows]
    assert sorted((row[0], row[3], row[-2]) for row in later) == [
        (9, 0, "cut"),
        (9, 0, "few"),
        (9, 0, "whole"),
        (9, 0, "whole"),
    ]


def six_messages(broker: Broker) -> tuple[str, int]:
    """A topic of six messages a millisecond apart, four of which its group has read, and the time of the first (ms since the epoch)."""
    topic = broker.topic()
    now = int(time.time() * 1000)
    producer = broker.producer()
    for n in range(6):
        key, value = message(n)
        producer.produce(topic, key=key, value=value, timestamp=now + n)
    assert producer.flush(60) == 0
    group = Consumer({"bootstrap.servers": broker.servers, "group.id": f"group-of-{topic}"})
    group.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    group.close()
    return topic, now


@pytest.mark.long("a query of several sources; tests/unit/connector holds what they plan")
def test_where_a_new_query_starts(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """In each startup mode at the offset it names; what comes later is read by all."""
    topic, now = six_messages(broker)
    modes = {
        "earliest-offset": {},
        "latest-offset": {},
        "timestamp": {"scan.startup.timestamp-millis": now + 3},
        "specific-offsets": {"scan.startup.specific-offsets": "partition:0,offset:2"},
        "group-offsets": {"properties.group.id": f"group-of-{topic}"},
    }
    frames = [
        named(read(spark, broker, topic, **{"scan.startup.mode": mode}, **more), mode)
        for mode, more in modes.items()
    ]
    frame = reduce(lambda all_, each: all_.unionAll(each), frames)
    sink = Batches(tmp_path)
    with running(sink.start(frame, processingTime="0 seconds")):
        eventually(lambda: 0 in sink.rows, "the first batch")
        broker.produce(topic, message(6))
        eventually(lambda: len(sink.all()) == 20, "a new message, for each mode")

    first = {mode: sorted(row[1] for row in sink.rows[0] if row[0] == mode) for mode in modes}
    assert first == {
        "earliest-offset": [0, 1, 2, 3, 4, 5],
        "latest-offset": [],
        "timestamp": [3, 4, 5],
        "specific-offsets": [2, 3, 4, 5],
        "group-offsets": [4, 5],
    }
    assert sorted((mode, 6) for mode in modes) == [row for row in sink.all() if row[1] == 6]


@pytest.mark.long("a query of several sources; tests/unit/connector holds what they plan")
def test_where_a_bounded_stream_ends(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """In each bounded mode before the offset it names."""
    topic, now = six_messages(broker)
    modes = {
        "latest-offset": {},
        "timestamp": {"scan.bounded.timestamp-millis": now + 3},
        "specific-offsets": {"scan.bounded.specific-offsets": "partition:0,offset:2"},
        "group-offsets": {"properties.group.id": f"group-of-{topic}"},
    }
    frames = [
        named(read(spark, broker, topic, **{"scan.bounded.mode": mode}, **more), mode)
        for mode, more in modes.items()
    ]
    frame = reduce(lambda all_, each: all_.unionAll(each), frames)
    sink = Batches(tmp_path)
    run_to_end(sink.start(frame))

    assert {mode: max(row[1] for row in sink.rows[0] if row[0] == mode) for mode in modes} == {
        "latest-offset": 5,
        "timestamp": 2,
        "specific-offsets": 1,
        "group-offsets": 3,
    }


@pytest.mark.classic("its sink writes in the test's own process")
@needs_limits
def test_available_now_within_limits(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Several batches of the stated size, shared by backlog, up to an end that is fixed once."""
    topic = broker.topic(2)
    broker.produce(topic, *(message(n) for n in range(18)), partition=0)
    broker.produce(topic, message(18), partition=1)

    class Producing(Batches):
        def __call__(self, batch: DataFrame, batch_id: int) -> None:
            broker.produce(topic, message(100 + batch_id), partition=0)
            super().__call__(batch, batch_id)

    sink = Producing(tmp_path)
    query = sink.start(read(spark, broker, topic, maxOffsetsPerTrigger=10))
    run_to_end(query)

    assert {batch: len(found) for batch, found in sink.rows.items()} == {0: 10, 1: 9}
    assert list(range(19)) == sorted(row[0] for row in sink.all())
    assert [each.numInputRows for each in query.recentProgress if each.numInputRows] == [10, 9]


@pytest.mark.long("a query of several sources; tests/unit/connector holds what they plan")
@needs_limits
def test_trigger_once_and_min_offsets(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """One batch with all there is, whatever the limits; else minOffsetsPerTrigger is waited for."""
    topic = broker.topic()
    broker.produce(topic, *(message(n) for n in range(5)))
    limited = read(spark, broker, topic, maxOffsetsPerTrigger=3, minOffsetsPerTrigger=2)
    sink = Batches(tmp_path)
    run_to_end(sink.start(limited, once=True))
    assert {batch: len(found) for batch, found in sink.rows.items()} == {0: 5}
    waiting = read(spark, broker, topic, minOffsetsPerTrigger=4)
    # An idle query too says what it has seen of the topic, and not only every ten seconds.
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "100ms")
    with running(sink.start(waiting, processingTime="100 milliseconds")) as query:

        def seen() -> dict[str, int]:
            progress = query.lastProgress
            (source,) = json.loads(progress.json)["sources"] if progress else [{}]
            return positions(source["latestOffset"], topic) if source else {}

        broker.produce(topic, message(5))
        eventually(lambda: len(sink.all()) == 6, "a query that just started waits for nothing")
        broker.produce(topic, *(message(n) for n in range(6, 9)))
        eventually(lambda: seen() == {"0": 9}, "the query has seen three more messages")
        assert len(sink.all()) == 6
        broker.produce(topic, message(9))
        eventually(lambda: len(sink.all()) == 10, "four more messages")
    spark.conf.unset("spark.sql.streaming.noDataProgressEventInterval")

    assert {batch: len(found) for batch, found in sink.rows.items()} == {0: 5, 1: 1, 2: 4}


@pytest.mark.long("a query of several sources; tests/unit/connector holds what they plan")
def test_new_partitions_and_topics_of_a_running_query(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Both are found at the discovery interval and read from their earliest offset."""
    topic = broker.topic(1)
    pattern = broker.topic(1)
    soon = {"scan.topic-partition-discovery.interval": "1 s", "scan.startup.mode": "latest-offset"}
    never = {**soon, "scan.topic-partition-discovery.interval": "0"}
    matching = {**options(broker, topic, **soon), "topic-pattern": f"{pattern}.*"}
    del matching["topic"]
    reader = spark.readStream.format("upsert-kafka").schema(SCHEMA).options(**matching)
    frame = (
        named(read(spark, broker, topic, **soon), "partition")
        .unionAll(named(read(spark, broker, topic, **never), "never"))
        .unionAll(named(reader.load(), "topic"))
    )
    sink = Batches(tmp_path)
    with running(sink.start(frame, processingTime="0 seconds")):
        eventually(lambda: 0 in sink.rows, "the first batch")
        broker.grow(topic, 2)
        broker.produce(topic, message(1), message(2), partition=1)
        broker.create(f"{pattern}-new")
        broker.produce(f"{pattern}-new", message(3))
        eventually(lambda: len(sink.all()) == 3, "what is new")
        broker.produce(topic, message(4), partition=0)
        eventually(lambda: len(sink.all()) == 5, "the old partition")

    assert sink.all() == [
        ("never", 4), ("partition", 1), ("partition", 2), ("partition", 4), ("topic", 3),
    ]  # fmt: skip


@pytest.mark.long("a query of several sources; tests/unit/connector holds what they plan")
def test_transactions(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Aborted messages are not read, an open transaction blocks no batch, markers hang no read."""
    topic = broker.topic()

    def begun(name: str, *messages: tuple[str, str | None]) -> Producer:
        # The broker ends a transaction after a minute, unless it is told to wait for longer.
        settings = {"transactional.id": f"{topic}-{name}", "transaction.timeout.ms": 900_000}
        producer = Producer({"bootstrap.servers": broker.servers, **settings})
        producer.init_transactions(60)
        producer.begin_transaction()
        for key, value in messages:
            producer.produce(topic, key=key, value=value)
        producer.flush(60)
        return producer

    begun("a", message(1)).commit_transaction(60)
    begun("b", message(2)).abort_transaction(60)
    begun("c", message(3)).commit_transaction(60)
    begun("d", message(4)).abort_transaction(60)
    broker.wait_for_transactions(topic)
    still_open = begun("e", message(5))
    broker.produce(topic, message(6))
    uncommitted = {"properties.isolation.level": "read_uncommitted"}
    frame = named(read(spark, broker, topic), "committed").unionAll(
        named(read(spark, broker, topic, **uncommitted), "all")
    )
    sink = Batches(tmp_path)
    with running(sink.start(frame, processingTime="0 seconds")):
        eventually(lambda: 0 in sink.rows, "the first batch")
        still_open.commit_transaction(60)
        eventually(lambda: len(sink.all()) == 10, "what the open transaction held back")

    everything = [("all", n) for n in range(1, 7)]
    assert [*everything, ("committed", 1), ("committed", 3)] == sorted(
        row[:2] for row in sink.rows[0]
    )
    assert sink.all() == [*everything, *(("committed", n) for n in (1, 3, 5, 6))]


@pytest.mark.long("a query of several sources, or two runs of one")
def test_messages_that_cannot_be_decoded(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """They fail the query, are skipped, go to the dead-letter topic, or become rows with _error."""
    topic, dead = broker.topic(), broker.topic()
    broker.produce(topic, message(1), ('{"id":2}', "oops"), (None, '{"id":3}'), message(4))
    with_error = (
        "id BIGINT, name STRING, _change_type STRING, _offset BIGINT, _error STRUCT<stage: STRING, "
        "message: STRING, key: BINARY, value: BINARY>"
    )

    def handled(mode: str, **more: object) -> DataFrame:
        frame = read(spark, broker, topic, with_error, **{"error-handling.mode": mode, **more})
        return frame.select(f.lit(mode), "id", "_offset", "_error.stage")

    frame = (
        handled("ignore")
        .unionAll(handled("log", **{"error-handling.log.target": dead}))
        .unionAll(handled("column"))
    )
    sink = Batches(tmp_path / "going-on")
    run_to_end(sink.start(frame))
    failing = Batches(tmp_path / "failing")
    with pytest.raises(StreamingQueryException, match="DecodeError") as raised:
        run_to_end(failing.start(handled("fail")))

    good = [(1, 0, None), (4, 3, None)]
    assert {
        mode: sorted((row[1:4] for row in sink.rows[0] if row[0] == mode), key=lambda row: row[1])
        for mode in ("ignore", "log", "column")
    } == {
        "ignore": good,
        "log": good,
        "column": [good[0], (None, 1, "value"), (None, 2, "null-key"), good[1]],
    }
    assert broker.pairs(dead) == [(b'{"id":2}', b"oops"), (None, b'{"id":3}')]
    assert f"topic '{topic}', partition 0, offset 1" in str(raised.value)


def positions(offset: str | dict[str, Any], topic: str) -> dict[str, int]:
    """The positions of a topic in an offset of a query's progress."""
    given = json.loads(offset) if isinstance(offset, str) else offset
    return given["topics"][topic]["positions"]


def test_progress_shows_rows_and_lag(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Progress has the number of rows, where the query is, and what the broker has."""
    topic = broker.topic(2)
    broker.produce(topic, *(message(n) for n in range(7)), partition=1)
    sink = Batches(tmp_path)

    def batches(query: StreamingQuery) -> list[StreamingQueryProgress]:
        return [each for each in query.recentProgress if each.numInputRows]

    with running(
        sink.start(read(spark, broker, topic), processingTime="200 milliseconds")
    ) as query:
        eventually(lambda: len(sink.all()) == 7, "the first messages")
        broker.produce(
            topic, message(7), partition=0
        )  # one alone: several may be in several batches
        eventually(lambda: len(batches(query)) == 2, "the progress of both batches")
        first, second = batches(query)

    assert [first.numInputRows, second.numInputRows] == [7, 1]
    source = json.loads(second.json)["sources"][0]
    assert positions(source["startOffset"], topic) == {"0": 0, "1": 7}
    assert positions(source["endOffset"], topic) == {"0": 1, "1": 7}
    assert positions(source["latestOffset"], topic) == {"0": 1, "1": 7}


def committed_offset(broker: Broker, group: str) -> int:
    """The largest offset that a consumer group has committed; -1 = none."""
    wanted = ConsumerGroupTopicPartitions(group)
    found = broker.admin.list_consumer_group_offsets([wanted])[group].result()
    return max((each.offset for each in found.topic_partitions), default=-1)


@pytest.mark.long("a query of several sources, or two runs of one")
def test_a_group_shows_how_far_finished_batches_are(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """One batch behind; the checkpoint alone decides where the query resumes."""
    topic, group = broker.topic(), f"g-{time.time_ns()}"
    frame = read(spark, broker, topic, **{"properties.group.id": group})
    sink = Batches(tmp_path)

    for n in range(2):
        broker.produce(topic, message(n))
        run_to_end(sink.start(frame))
    eventually(lambda: committed_offset(broker, group) == 1, "the first batch's offset")

    assert {batch: len(found) for batch, found in sink.rows.items()} == {0: 1, 1: 1}


def test_a_failing_group_commit_is_one_warning(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Here a living consumer group holds the name; the query goes on."""
    topic, group = broker.topic(), f"g-{time.time_ns()}"
    member = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    member.subscribe([topic])
    eventually(lambda: member.poll(0.5) is None and bool(member.assignment()), "a living group")
    given = options(broker, topic, **{"properties.group.id": group})
    source = UpsertKafkaDataSource(given)
    schema = StructType([StructField("id", LongType()), StructField("_change_type", StringType())])
    reader = source.streamReader(schema)
    end = {"version": 1, "topics": {topic: {"id": "", "positions": {"0": 0}}}}

    def warnings() -> list[str]:
        ours = (each for each in caplog.records if each.name == "pyspark_upsert_kafka")
        return [each.getMessage() for each in ours]

    def warned() -> bool:
        reader.commit(end)
        member.poll(0)
        return bool(warnings())

    eventually(warned, "a warning")
    for _ in range(20):
        reader.commit(end)
    member.close()

    def got_through() -> bool:
        reader.commit(end)
        return committed_offset(broker, group) == 0

    eventually(got_through, "a commit after the 20, which were answered before it")
    assert len(warnings()) == 1
    assert group in caplog.text
