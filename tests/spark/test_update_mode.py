"""`upsert_sink`: output mode update, tasks by key, and the order of a key's changes."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import OptionError, SchemaError, upsert_sink
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.spark_task import TaskIdentity, current_task
from pyspark_upsert_kafka.connector.writing.row_order import (
    arranged,
    is_deterministic,
    partition_count,
)
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.options.write import write_options
from tests.conftest import Broker, options
from tests.spark.batches import load, refused
from tests.spark.conftest import rows, run_to_end, wait_for_events
from tests.spark.test_sink_stream import put, stream
from tests.table_options import table_options

SECRET = "pl4nted-s3cret"


def changes(spark: SparkSession, *data: tuple[object, ...], parts: int = 4) -> DataFrame:
    """Rows (id, seq, name, kind) in several partitions, in no order."""
    frame = spark.createDataFrame(data, "id BIGINT, seq BIGINT, name STRING, _change_type STRING")
    return frame.repartition(parts, "name")


def last_values(broker: Broker, topic: str) -> dict[int, str | None]:
    """For each id the name in its last message; None = a tombstone."""
    return {
        json.loads(key or b"")["id"]: None if value is None else json.loads(value)["name"]
        for key, value in broker.pairs(topic)
    }


def tasks_of_last_stage(spark: SparkSession, group: str) -> int:
    """How many tasks the writing stage of a job group had."""
    wait_for_events(spark)
    tracker = spark.sparkContext.statusTracker()
    job = tracker.getJobInfo(max(tracker.getJobIdsForGroup(group)))
    assert job is not None
    stage = tracker.getStageInfo(max(job.stageIds))
    assert stage is not None
    return int(stage.numTasks)


@pytest.mark.connect
def test_an_aggregation_in_update_mode(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Each batch writes the rows that changed, and the topic holds the right table."""
    topic, files = broker.topic(3), tmp_path / "in"
    put(files, 0, *[(n % 5,) for n in range(100)])
    put(files, 1, (0,), (7,))
    put(files, 2, (7,), (7,), (1,))
    counts = stream(spark, files).groupBy("id").count()
    sink = upsert_sink(options(broker, topic), **{"sink.parallelism": 2})
    writer = counts.writeStream.outputMode("update").foreachBatch(sink).trigger(availableNow=True)
    run_to_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
    table = load(spark, "id BIGINT, count BIGINT", options(broker, topic))
    assert rows(table) == [(0, 21), (1, 21), (2, 20), (3, 20), (4, 20), (7, 3)]
    assert len(broker.messages(topic)) == 5 + 2 + 2


@pytest.mark.connect
def test_options_may_be_written_in_any_case(spark: SparkSession, broker: Broker) -> None:
    """Tasks are told how names were written, which Spark passes on in lower case; what they mean is the same."""
    topic = broker.topic(1)
    frame = spark.sql("SELECT 1L AS id, TIMESTAMP_MILLIS(5000) AS At")
    more = {"Metadata.At": "timestamp", "failOnDataLoss": "true"}
    upsert_sink(options(broker, topic), **more)(frame, 0)
    assert [message.timestamp for message in broker.messages(topic)] == [5000]


@pytest.mark.long("another query of the same kind")
def test_sinks_may_be_called_from_threads(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A thread of the user's own knows no session of Spark."""
    topics, files = [broker.topic(), broker.topic()], tmp_path / "in"
    put(files, 0, *[(n, "x", "+I") for n in range(5)])
    sinks = [upsert_sink(options(broker, topic)) for topic in topics]

    def write(frame: DataFrame, batch: int) -> None:
        with ThreadPoolExecutor() as threads:
            assert [*threads.map(lambda sink: sink(frame, batch), sinks)] == [None, None]

    writer = stream(spark, files).writeStream.foreachBatch(write).trigger(availableNow=True)
    run_to_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
    assert [len(broker.messages(topic)) for topic in topics] == [5, 5]


@pytest.mark.classic("asks tasks of an RDD")
def test_a_task_knows_its_query_batch_and_number(spark: SparkSession, tmp_path: Path) -> None:
    """Whoever runs again after a crash has the same identity: Spark gives it to the tasks of a batch."""
    files, seen = tmp_path / "in", []

    def identity(_: Iterator[object]) -> Iterator[TaskIdentity]:
        yield current_task()

    def collect(frame: DataFrame, _: int) -> None:
        seen.extend(frame.repartition(2).rdd.mapPartitions(identity).collect())

    for batch in range(2):
        put(files, batch, *[(n,) for n in range(10)])
    writer = stream(spark, files).writeStream.foreachBatch(collect).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    run_to_end(query)
    expected = [TaskIdentity(query.id, batch, task) for batch in range(2) for task in range(2)]
    assert sorted(seen, key=str) == sorted(expected, key=str)


def test_options_are_checked_at_once() -> None:
    """A wrong option is an ``OptionError`` of the user's own process, before any query starts."""
    good = table_options()
    upsert_sink(good)
    upsert_sink(**good)
    upsert_sink(good, **{"sink.parallelism": 3, "sequence-by": "seq", "failOnDataLoss": True})
    wrong = [
        {"topik": "t"}, {"primary-key": ""}, {"sink.parallelism": 0}, {"sink.parallelism": "two"},
        {"sink.buffer-flush.max-rows": 5}, {"value.format": "jsonn"}, {"topic": None},
        {"properties.partitioner": "random"}, {"topic-pattern": "t.*"},
    ]  # fmt: skip
    for given in wrong:
        with pytest.raises(OptionError):
            upsert_sink({**good, **given})
        with pytest.raises(OptionError):
            upsert_sink(good, **given)
    for nothing in (None, {}):
        with pytest.raises(OptionError):
            upsert_sink(nothing)
    for missing in good:
        with pytest.raises(OptionError, match=missing.partition(".")[0]):
            upsert_sink({name: value for name, value in good.items() if name != missing})


def test_it_can_be_pickled_and_shows_no_secret() -> None:
    """Spark Connect sends the function to the server pickled; what it shows of itself is no secret."""
    sink = upsert_sink(
        {"Topic": "t", "properties.bootstrap.servers": "nowhere:1", "primary-key": "id"},
        **{"key.format": "json", "value.format": "json", "properties.sasl.password": SECRET},
    )
    assert pickle.loads(pickle.dumps(sink)) == sink
    assert cloudpickle.loads(cloudpickle.dumps(sink)).raw["topic"] == "t"
    assert SECRET not in f"{sink!r} {sink}"
    assert "'topic': 't'" in repr(sink)


def test_a_reference_is_for_the_process_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `upsert_sink` is called, as on a client of Spark Connect, nothing needs to be known of it."""
    for name in ("SERVERS", "TOPIC", "TASKS"):
        monkeypatch.delenv(name, raising=False)
    sink = upsert_sink(
        {
            "topic": "${env:TOPIC}",
            "properties.bootstrap.servers": "${env:SERVERS}",
            "primary-key": "id",
        },
        **{"key.format": "json", "value.format": "json", "sink.parallelism": "${env:TASKS}"},
    )
    assert "${env:SERVERS}" in repr(sink)
    with pytest.raises(OptionError, match="Did you mean 'topic'"):
        upsert_sink({**sink.raw, "topik": "t"})


class ConnectFrame:
    """As much of Spark Connect's DataFrame as is asked: it has no JVM."""

    def select(self, *columns: object) -> ConnectFrame:
        """Itself."""
        return self


@pytest.mark.parametrize(
    ("expression", "deterministic"),
    [("rand()", False), ("1 + UUID ()", False), ("version", True), ("grand(x)", True)],
)
def test_without_a_jvm_the_text_tells(expression: str, deterministic: bool) -> None:
    """Spark Connect shows no plan: partitions are not known, and random functions are known by name."""
    frame: Any = ConnectFrame()
    assert partition_count(frame) is None
    assert is_deterministic(frame, frame, expression) is deterministic


def test_what_a_sink_tells_once(
    spark: SparkSession, broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    """A literal secret when the sink is made; speculative execution when it writes; each once."""
    monkeypatch.setattr(errors, "_warned", set())
    given = options(broker, broker.topic(1))
    for _ in range(2):
        upsert_sink({**given, "properties.ssl.key.pem": SECRET})
    (told,) = [each.getMessage() for each in caplog.records]
    assert "'properties.ssl.key.pem'" in told
    assert SECRET not in told
    caplog.clear()
    sink = upsert_sink(given)
    frame = spark.range(1)
    asked = spark.conf.get
    monkeypatch.setattr(
        type(spark.conf),
        "get",
        lambda _, name, *default: "true" if name == "spark.speculation" else asked(name, *default),
    )
    for batch in range(2):
        sink(frame, batch)
    (told,) = [each.getMessage() for each in caplog.records if "specul" in each.getMessage()]
    assert given["topic"] in told


@pytest.mark.classic("counts tasks by Spark's status tracker")
def test_sink_parallelism_is_the_number_of_writing_tasks(
    spark: SparkSession, broker: Broker
) -> None:
    """``sink.parallelism`` tasks write, each all rows of its keys."""
    frame = spark.range(0, 1000, numPartitions=7).selectExpr("id % 100 AS id", "1 AS v")
    for parallelism, group in ((1, "one"), (5, "five")):
        topic = broker.topic(1)
        sink = upsert_sink(options(broker, topic), **{"sink.parallelism": parallelism})
        spark.sparkContext.setJobGroup(topic, group)
        sink(frame, 0)
        assert tasks_of_last_stage(spark, topic) == parallelism
        assert set(Counter(key for key, _ in broker.pairs(topic)).values()) == {10}
    topic = broker.topic(1)
    spark.sparkContext.setJobGroup(topic, "as it comes")
    upsert_sink(options(broker, topic))(frame, 0)
    assert tasks_of_last_stage(spark, topic) == 7, "without it rows are written where they are"


def test_the_last_in_sequence_stands(spark: SparkSession, broker: Broker) -> None:
    """``sequence-by`` orders the changes of a key, wherever they were; a delete may be the last."""
    data = [
        (1, 5, "last", "+I"), (1, 1, "first", "+I"), (1, 3, "middle", "+I"), (2, 2, None, "-D"),
        (2, 1, "gone", "+I"), (3, 1, None, "-D"), (3, 2, "back", "+I"), (4, None, "none", "+I"),
        (4, 0, "some", "+I"),
    ]  # fmt: skip
    expected = {1: "last", 2: None, 3: "back", 4: "some"}
    for more in ({"sequence-by": "seq"}, {"sequence-by": "SEQ", "sink.parallelism": 3}):
        topic = broker.topic(2)
        upsert_sink(options(broker, topic), **more)(changes(spark, *data), 0)
        assert last_values(broker, topic) == expected
    topic = broker.topic(1)
    backwards = {"sequence-by": "-seq * 2"}
    upsert_sink(options(broker, topic), **backwards)(changes(spark, *data[:5], parts=5), 0)
    assert last_values(broker, topic) == {1: "first", 2: "gone"}


def test_columns_that_a_sink_ignores_stay_in_the_jvm(spark: SparkSession) -> None:
    """They may order the changes; a column that an option makes an ordinary one is written."""
    frame = spark.createDataFrame(
        [(1, "a", 5, 0, 0)],
        "id BIGINT, _change_type STRING, _Offset BIGINT, _partition INT, seq INT",
    )
    given = table_options(**{"sequence-by": "_offset", "metadata._partition": "none"})
    arranged_rows, _ = arranged(frame, write_options(given, format_options, update_mode=True))
    assert arranged_rows.columns == ["id", "_change_type", "_partition", "seq"]


def test_update_pairs_of_one_sequence(spark: SparkSession, broker: Broker) -> None:
    """Of two changes with one sequence the preimage is the earlier, however kinds are spelt."""
    data = [
        (1, 1, "a", "+U"), (1, 1, "old", "-U"), (2, 7, "c", "Update_PostImage"),
        (2, 7, "b", "UPDATE_PREIMAGE"), (3, 4, "left", "-u"), (4, 4, "came", "+u"),
        (5, 1, "x", "+U"), (5, 1, "w", "-U"), (5, 2, "x", "-U"), (5, 2, "y", "+U"),
    ]  # fmt: skip
    topic = broker.topic(1)
    upsert_sink(options(broker, topic), **{"sequence-by": "seq"})(changes(spark, *data), 0)
    assert last_values(broker, topic) == {1: "a", 2: "c", 3: None, 4: "came", 5: "y"}
    assert [key for key, value in broker.pairs(topic) if value is None] == [b'{"id":3}']
    named = {"metadata.op": "change-type", "sequence-by": "seq", "sink.parallelism": 2}
    topic = broker.topic(1)
    renamed = changes(spark, *data).withColumnRenamed("_change_type", "Op")
    upsert_sink(options(broker, topic, **named))(renamed, 0)
    assert last_values(broker, topic) == {1: "a", 2: "c", 3: None, 4: "came", 5: "y"}


def test_ties_and_null_in_a_sequence(spark: SparkSession, broker: Broker) -> None:
    """NULL is the earliest; of equal sequences one stands, but never a preimage."""
    data = [
        (1, None, "null", "+I"), (1, -5, "some", "+I"), (2, None, "old", "-U"), (2, None, "new", "+U"),
        (3, 4, "one", "+U"), (3, 4, "other", "+U"), (3, 4, "old", "-U"),
    ]  # fmt: skip
    topic = broker.topic(1)
    upsert_sink(options(broker, topic), **{"sequence-by": "seq"})(changes(spark, *data), 0)
    last = last_values(broker, topic)
    assert (last[1], last[2]) == ("some", "new")
    assert last[3] in ("one", "other")


def updates(spark: SparkSession, keys: int, versions: int) -> DataFrame:
    """Update pairs of each version of each row, over four partitions in no order.

    In each version row ``n`` moves to the key ``n + keys`` times its version where n is odd, which leaves the
    key that it had; where n is even it keeps its key.
    """
    pairs = spark.range(keys * versions).selectExpr(
        f"id % {keys} AS n", f"id DIV {keys} + 1 AS seq"
    )
    key = f"IF(n % 2 = 1, n + {keys} * (seq - {{}}), n) AS id"
    before = pairs.selectExpr(key.format(1), "seq", "CAST(seq - 1 AS STRING) AS name", "'-U' AS op")
    after = pairs.selectExpr(key.format(0), "seq", "CAST(seq AS STRING) AS name", "'+U' AS op")
    both = before.union(after).withColumnRenamed("op", "_change_type")
    return both.repartition(4, "name", "_change_type")


def test_preimages_in_sequence_leave_the_right_table(spark: SparkSession, broker: Broker) -> None:
    """Update pairs of a key in any tasks, several in a batch, and updates that change the key."""
    keys, versions, topic = 60, 4, broker.topic(3)
    upsert_sink(options(broker, topic), **{"sequence-by": "seq"})(updates(spark, keys, versions), 0)
    expected: dict[int, str | None] = {n: str(versions) for n in range(0, keys, 2)}
    for n in range(1, keys, 2):
        expected |= {n + keys * version: None for version in range(versions)}
        expected[n + keys * versions] = str(versions)
    assert last_values(broker, topic) == expected
    assert sum(value is None for _, value in broker.pairs(topic)) == 30 * versions


@pytest.mark.classic("Connect does not tell how many partitions there are")
def test_preimages_in_several_tasks_need_a_sequence(spark: SparkSession, broker: Broker) -> None:
    """Without one the tombstone could come last: refused, unless all rows are in one partition."""
    data = [(1, 1, "new", "+U"), (1, 1, "old", "-U"), (2, 1, "a", "+I"), (3, 1, "b", "+I")]
    frame = changes(spark, *data)
    for more in ({}, {"sink.parallelism": 2}, {"sink.parallelism": 1}):
        topic = broker.topic(1)
        sink = upsert_sink(options(broker, topic), **more)
        text = refused(lambda sink=sink: sink(frame.where("true"), 0))
        assert "update_preimage (-U) rows" in text
        assert "'sequence-by'" in text
        assert (b'{"id":1}', None) not in broker.pairs(topic)
    sink(frame.where("_change_type <> '-U'"), 0)  # no preimage, no question
    assert last_values(broker, topic)[1] == "new"
    ordered = spark.createDataFrame([data[1], data[0]], frame.schema)
    for one in (ordered.coalesce(1), ordered.coalesce(1).where("id = 1").selectExpr("*", "1 AS x")):
        topic = broker.topic(1)
        upsert_sink(options(broker, topic))(one, 0)
        assert broker.pairs(topic)[0][1] is not None
        assert len(broker.pairs(topic)) == 1


@pytest.mark.classic("Connect does not tell how many partitions there are")
def test_partitions_are_counted_without_computing_anything(spark: SparkSession) -> None:
    """What a plan says; None where it is decided while the query runs."""
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    spark.sparkContext.setJobGroup("counting", "no job")
    small = spark.createDataFrame([(1, "a")] * 9, "id BIGINT, name STRING")
    aggregated = small.groupBy("id").count()
    assert partition_count(spark.range(9, numPartitions=3).selectExpr("id + 1 AS x")) == 3
    assert partition_count(small.where("id > 0")) == small.rdd.getNumPartitions()
    assert partition_count(small.coalesce(1).where("id > 0")) == 1
    assert partition_count(aggregated.coalesce(1)) == 1
    assert partition_count(aggregated.repartition(1)) == 1
    assert partition_count(aggregated) is None
    assert partition_count(small.union(small)) != 1
    wait_for_events(spark)
    assert list(jobs("counting")) == []


@pytest.mark.long("another query of the same kind")
@pytest.mark.classic("Connect does not tell how many partitions there are")
def test_in_a_stream_preimages_of_one_partition_are_taken(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """A micro-batch of one partition is in order; foreachBatch hands it over as it was read."""
    files, topic = tmp_path / "in", broker.topic(1)
    put(files, 0, (1, "old", "-U"), (1, "new", "+U"), (2, "gone", "-U"), (3, "gone", "-U"))
    writer = stream(spark, files).writeStream.foreachBatch(upsert_sink(options(broker, topic)))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_to_end(writer.trigger(availableNow=True).start())
    assert rows(load(spark, "id BIGINT, name STRING", options(broker, topic))) == [(1, "new")]
    assert len(broker.pairs(topic)) == 3


@pytest.mark.long("another query of the same kind")
def test_many_changes_in_sequence(spark: SparkSession, broker: Broker) -> None:
    """Many changes of many keys, shuffled over many partitions, end as their sequence says."""
    topic = broker.topic(3)
    frame = spark.range(0, 20_000, numPartitions=4).selectExpr(
        "id % 300 AS id",
        "(id * 7919) % 20011 AS seq",
        "CAST((id * 7919) % 20011 AS STRING) AS name",
    )
    expected = {row["id"]: str(row["m"]) for row in frame.groupBy("id").agg({"seq": "max"})
                .withColumnRenamed("max(seq)", "m").collect()}  # fmt: skip
    flush = {"sink.buffer-flush.max-rows": 1000, "sink.buffer-flush.interval": "1 h"}
    upsert_sink(options(broker, topic), **{"sequence-by": "seq"}, **flush)(frame, 0)
    assert last_values(broker, topic) == expected
    assert len(broker.pairs(topic)) == 300, "the buffer keeps the last change of each key"


def test_what_is_wrong_with_a_batch(spark: SparkSession, broker: Broker) -> None:
    """A missing key column and a sequence that cannot be are errors of ours, before any row is sent."""
    topic = broker.topic(1)
    given = options(broker, topic)
    frame = spark.sql("SELECT 1L AS id, 'a' AS name, map('a', 1) AS m")
    for more in ({}, {"sink.parallelism": 2}, {"sequence-by": "id"}):
        with pytest.raises(SchemaError, match="Could not find the field 'nowhere'"):
            upsert_sink({**given, "primary-key": "nowhere"}, **more)(frame, 0)
    for sequence in ("nowhere", "id +", "m", "no_such_function(id)"):
        with pytest.raises(OptionError, match="Invalid value for option 'sequence-by'"):
            upsert_sink(given, **{"sequence-by": sequence})(frame, 0)
    for sequence in ("rand()", "id + uuid()", "monotonically_increasing_id()"):
        with pytest.raises(OptionError, match=r"'sequence-by'.* is not deterministic"):
            upsert_sink(given, **{"sequence-by": sequence})(frame, 0)
    nulls = spark.sql("SELECT CAST(NULL AS BIGINT) AS id, 1 AS seq")
    text = refused(lambda: upsert_sink(given, **{"sequence-by": "seq"})(nulls, 0))
    assert "EncodeError: Column 'id' cannot be written" in text
    assert broker.pairs(topic) == []


@pytest.mark.long("tests/spark/test_sink_stream.py has such a query")
def test_a_failing_batch_is_replayed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A batch that fails leaves the query failed; started again it is replayed, and the table is right."""
    topic = f"{broker.topic(1)}-late"
    files = tmp_path / "in"
    put(files, 0, (1, "a", "+I"), (2, "b", "+I"))
    put(files, 1, (1, None, "-D"))

    def run() -> None:
        writer = stream(spark, files).writeStream.foreachBatch(upsert_sink(options(broker, topic)))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        run_to_end(writer.trigger(availableNow=True).start())

    assert f"BrokerError: Topic '{topic}' does not exist" in refused(run)
    broker.create(topic, 2)
    run()
    assert rows(load(spark, "id BIGINT, name STRING", options(broker, topic))) == [(2, "b")]
