"""Exactly once through Spark: batches that run again, other numbers of tasks, several sinks, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import OptionError, upsert_sink, why_it_ended
from pyspark_upsert_kafka.connector.writing.update_mode import UpsertSink
from tests.conftest import Broker, options
from tests.spark.batches import refused
from tests.spark.conftest import eventually, run_to_end, wait_for_events
from tests.spark.test_sink_stream import put, stream

pytestmark = pytest.mark.classic("exactly once is refused over Spark Connect")

Function = Callable[[DataFrame, int], object]


def sink(broker: Broker, topic: str, tasks: int = 3, **more: Any) -> UpsertSink:
    """A sink that writes exactly once."""
    given = {
        "sink.parallelism": tasks,
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": "sink",
    }
    return upsert_sink(options(broker, topic), **{**given, **more})


class Batches:
    """A query over files, each a batch of ten rows, which runs up to the last file and ends.

    Args:
        spark: The session.
        folder: Where its files and its checkpoint are.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.files, self.checkpoint = spark, folder / "in", folder / "checkpoint"
        self.count = 0

    def add(self) -> None:
        """One more batch."""
        put(self.files, self.count, *[(n, f"{self.count}", "+I") for n in range(10)])
        self.count += 1

    def run(self, write: Function) -> None:
        """Writes what is there by this function of foreachBatch."""
        writer = stream(self.spark, self.files).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        run_to_end(writer.trigger(availableNow=True).start())

    def forget_last(self) -> None:
        """As if the driver had died before it could say that the last batch is done."""
        number = self.count - 1
        (self.checkpoint / "commits" / f"{number}").unlink()
        (self.checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)

    def written(self, copies: int = 1) -> list[tuple[str, str]]:
        """What is to be in the topic: key and value of each row, sorted."""
        rows = [(n, batch) for n in range(10) for batch in range(self.count)] * copies
        return sorted((f'{{"id":{n}}}', f'{{"id":{n},"name":"{batch}"}}') for n, batch in rows)

    def wait_for_tasks(self) -> None:
        """Waits for the tasks of a job that has failed: Spark ends it without them."""
        wait_for_events(self.spark)
        tracker = self.spark.sparkContext._jsc.sc().statusTracker()
        eventually(
            lambda: not any(each.numRunningTasks() for each in tracker.getExecutorInfos()),
            "no task runs",
        )


@pytest.fixture
def batches(spark: SparkSession, tmp_path: Path) -> Batches:
    """A query with two batches."""
    found = Batches(spark, tmp_path)
    found.add()
    found.add()
    return found


def messages(broker: Broker, topic: str) -> list[tuple[str, str]]:
    """Key and value of each committed message, sorted."""
    pairs = broker.pairs(topic)
    return sorted(((key or b"").decode(), (value or b"").decode()) for key, value in pairs)


def test_a_batch_that_runs_again_writes_nothing_twice(broker: Broker, batches: Batches) -> None:
    """After the driver died between the last task and the commit log; another number of tasks is refused."""
    topic = broker.topic(2)
    batches.run(sink(broker, topic))
    batches.forget_last()
    text = refused(lambda: batches.run(sink(broker, topic, tasks=2)))
    batches.run(sink(broker, topic))
    batches.add()
    batches.run(sink(broker, topic, tasks=2))  # a new batch may have fewer

    assert "'sink.parallelism' = '3'" in text
    assert "with '2'" in text
    assert messages(broker, topic) == batches.written()


def test_a_checkpoint_set_back_by_one_batch_is_refused(
    broker: Broker, batches: Batches, tmp_path: Path
) -> None:
    """Spark plans the batch anew, with other rows: its number alone would have them skipped."""
    topic, before, second = broker.topic(2), tmp_path / "before", batches.files / "001.json"
    second.rename(tmp_path / "later")
    batches.run(sink(broker, topic))
    copytree(batches.checkpoint, before)
    (tmp_path / "later").rename(second)
    batches.run(sink(broker, topic))
    rmtree(batches.checkpoint)
    before.rename(batches.checkpoint)
    second.unlink()
    put(batches.files, 2, (1, "third", "+I"))

    with pytest.raises(StreamingQueryException) as raised:
        batches.run(sink(broker, topic))
    end = why_it_ended(raised.value)
    assert (end.error, end.restart) == ("CheckpointError", False)
    assert end.text.startswith("Batch 1 of query")
    assert messages(broker, topic) == batches.written()


def test_a_task_that_fails_leaves_nothing_and_the_others_write_once(
    broker: Broker, batches: Batches
) -> None:
    """A row that cannot be encoded aborts its task; tasks that were done are not done again."""
    topic = broker.topic(2)
    broken = [True]

    def write(rows: DataFrame, batch: int) -> None:
        bad = "IF(id = 7, 'no kind of change', _change_type) AS _change_type"
        chosen = ["id", "name", bad] if broken[0] and batch == 1 else ["*"]
        sink(broker, topic)(rows.selectExpr(*chosen), batch)

    assert "'no kind of change' is not a kind of change" in refused(lambda: batches.run(write))
    before = messages(broker, topic)
    broken.clear()
    broken.append(False)
    batches.run(write)

    assert len(before) < len(batches.written())
    assert messages(broker, topic) == batches.written()


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_several_sinks_in_one_batch(broker: Broker, batches: Batches) -> None:
    """Two calls with one prefix, to two topics and to one, do not stand for one another."""
    one, other = broker.topic(1), broker.topic(2)
    fails = [True, False, False, False]

    def write(rows: DataFrame, batch: int) -> None:
        for topic in (one, other, other):
            sink(broker, topic, tasks=2)(rows, batch)
        if batch == 1 and fails.pop(0):
            raise RuntimeError("after all calls")

    refused(lambda: batches.run(write))
    batches.run(write)

    assert messages(broker, one) == batches.written()
    assert messages(broker, other) == batches.written(copies=2)


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_two_queries_with_one_prefix(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A new query's first batch is not taken for that of another query."""
    topic = broker.topic(1)
    for name in ("one", "other"):
        batches = Batches(spark, tmp_path / name)
        (tmp_path / name).mkdir()
        batches.add()
        batches.run(sink(broker, topic))

    assert messages(broker, topic) == batches.written(copies=2)


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_a_checkpoint_begun_anew_is_told_of(
    broker: Broker, batches: Batches, caplog: pytest.LogCaptureFixture
) -> None:
    """Receipts are those of a query: another checkpoint is another query, which writes all again."""
    topic = broker.topic(1)
    write = sink(broker, topic, **{"sink.transactional-id-prefix": f"sink-of-{topic}"})
    batches.run(write)
    assert "If this is the same query with a new checkpoint" not in caplog.text
    rmtree(batches.checkpoint)
    batches.run(write)

    assert f"has written to topic '{topic}' before" in caplog.text
    assert "If this is the same query with a new checkpoint" in caplog.text
    assert messages(broker, topic) == batches.written(copies=2)


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_what_is_refused_in_a_batch(broker: Broker, batches: Batches) -> None:
    """Another topic for a call, another number of the batch, a second call after one that failed."""
    topic, other = broker.topic(1), broker.topic(1)

    def after_an_error(rows: DataFrame, batch: int) -> None:
        with suppress(Exception):
            sink(broker, topic)(rows.selectExpr("id", "name", "'no change' AS _change_type"), batch)
        sink(broker, topic)(rows, batch)

    assert "Let its error end the batch" in refused(lambda: batches.run(after_an_error))
    assert messages(broker, topic) == []
    batches.run(sink(broker, topic))
    batches.forget_last()
    assert f"wrote to topic '{topic}' before" in refused(lambda: batches.run(sink(broker, other)))
    wrong_number: Function = lambda rows, _: sink(broker, topic)(rows, 0)  # noqa: E731
    assert "called with batch 0 while batch 1 runs" in refused(lambda: batches.run(wrong_number))

    assert messages(broker, topic) == batches.written()
    assert messages(broker, other) == []


def in_a_thread(rows: DataFrame, call: Callable[[], object]) -> None:
    """Calls in a thread that has inherited what Spark has set for this one, and raises what it raises."""
    target: Any = inheritable_thread_target(rows.sparkSession)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(target(call)).result()


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_a_call_from_a_thread_of_the_users_own_is_refused(broker: Broker, batches: Batches) -> None:
    """The first one too, before anything is written; called in turns, both are written once."""
    topic = broker.topic(2)
    sinks = [(sink(broker, topic), "id < 5"), (sink(broker, topic, **OTHER), "id >= 5")]

    def in_threads(rows: DataFrame, batch: int) -> None:
        for write, part in sinks:
            in_a_thread(rows, lambda write=write, part=part: write(rows.filter(part), batch))  # type: ignore[misc]

    def in_turns(rows: DataFrame, batch: int) -> None:
        for write, part in sinks:
            write(rows.filter(part), batch)

    text = refused(lambda: batches.run(in_threads))
    assert "from another thread than the one in which foreachBatch calls" in text
    assert messages(broker, topic) == []
    batches.run(in_turns)

    assert messages(broker, topic) == batches.written()


OTHER = {"value.json.encode.ignore-null-fields": "true"}
"""What makes a sink another one."""

ANOTHER_CASE = pytest.mark.long("four runs of a query, as in the first case")


@pytest.mark.parametrize(
    ("other", "again"),
    [
        ("options", "the other way round"),
        pytest.param("options", "without the first", marks=ANOTHER_CASE),
        pytest.param("columns", "the other way round", marks=ANOTHER_CASE),
        pytest.param("columns", "without the first", marks=ANOTHER_CASE),
    ],
)
def test_sinks_of_one_prefix_that_change_places_are_refused(
    broker: Broker, batches: Batches, other: str, again: str
) -> None:
    """One topic and one prefix: what tells them is what they are; nothing is written, dropped or doubled."""
    topic = broker.topic(2)
    fails = [True]
    columns = "id", "name", "_change_type"

    def first(rows: DataFrame, batch: int) -> None:
        sink(broker, topic)(rows.filter("id < 5").select(*columns), batch)

    def second(rows: DataFrame, batch: int) -> None:
        more = OTHER if other == "options" else {}
        bad = "IF(id = 7, 'no kind', _change_type) AS _change_type"
        named = columns[:2] if other == "options" else ("name", "id")
        rows = rows.filter("id >= 5").selectExpr(*named, bad if fails else "_change_type")
        sink(broker, topic, **more)(rows, batch)

    def both(rows: DataFrame, batch: int) -> None:
        first(rows, batch)
        second(rows, batch)

    def swapped(rows: DataFrame, batch: int) -> None:
        second(rows, batch)
        if again == "the other way round":
            first(rows, batch)

    refused(lambda: batches.run(both))
    fails.clear()
    batches.wait_for_tasks()  # a task beside the one that failed may still commit
    before = messages(broker, topic)
    text = refused(lambda: batches.run(swapped))
    after = messages(broker, topic)
    batches.run(both)

    assert "other options or other columns" in text
    assert before == after
    written = [json.loads(value) for _, value in messages(broker, topic)]
    assert sorted((row["name"], row["id"]) for row in written) == [
        (f"{batch}", n) for batch in range(2) for n in range(10)
    ]


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_calls_that_only_their_order_tells_apart_are_refused(
    broker: Broker, batches: Batches
) -> None:
    """The second is, and with a prefix of its own it is written."""
    topic = broker.topic(2)
    has_its_own: list[bool] = []

    def write(rows: DataFrame, batch: int) -> None:
        sink(broker, topic)(rows.filter("id < 5"), batch)
        prefix = {"sink.transactional-id-prefix": "its-own" if has_its_own else "sink"}
        sink(broker, topic, **prefix)(rows.filter("id >= 5"), batch)

    assert "Call 1 of upsert_sink" in refused(lambda: batches.run(write))
    assert len(messages(broker, topic)) == 5
    has_its_own.append(True)
    batches.run(write)

    assert messages(broker, topic) == batches.written()


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_keys_of_another_type_are_refused_in_a_batch_that_runs_again(
    broker: Broker, batches: Batches
) -> None:
    """A DDL holds INT and BIGINT as one type, but Spark distributes them otherwise."""
    topic = broker.topic(2)
    ddl = (
        "CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', "
        f"'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker.servers}', 'key.format' = 'json', "
        "'value.format' = 'json', 'sink.parallelism' = '3', 'sink.delivery-guarantee' = 'exactly-once', "
        "'sink.transactional-id-prefix' = 'sink')"
    )
    write = upsert_sink(ddl=ddl)
    bad = "IF(id = 7, 'no kind', _change_type) AS _change_type"

    def run(kind: str, change: str = "_change_type") -> None:
        def call(rows: DataFrame, batch: int) -> None:
            write(rows.selectExpr(f"CAST(id AS {kind}) AS id", "name", change), batch)

        batches.run(call)

    assert "'no kind' is not a kind of change" in refused(lambda: run("INT", bad))
    batches.wait_for_tasks()  # a task beside the one that failed may still commit
    before = messages(broker, topic)
    assert "was begun before as another one" in refused(lambda: run("BIGINT"))
    assert before == messages(broker, topic)
    run("INT")

    assert messages(broker, topic) == batches.written()


def test_what_is_refused_without_a_query(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of no streaming query, and speculative execution."""
    write = sink(broker, broker.topic(1))
    with pytest.raises(OptionError, match="this thread runs no streaming query"):
        write(spark.range(3), 0)
    asked = spark.conf.get
    monkeypatch.setattr(
        type(spark.conf),
        "get",
        lambda _, name, *default: "true" if name == "spark.speculation" else asked(name, *default),
    )
    with pytest.raises(OptionError, match=r"'spark\.speculation' is on"):
        write(spark.range(3), 0)


@pytest.mark.long(
    "several runs of a query; tests/unit/connector/writing/test_exactly_once.py holds the rule"
)
def test_order_within_a_key(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """With a sequence, a buffer and preimages each key's changes come as without transactions."""
    topic, files = broker.topic(2), tmp_path / "in"
    rows = [(n % 5, f"{n:04}", "+U") for n in range(500)]
    moved = [(n, "0000", "-U") for n in range(5)] + [(9, "0000", "-U")]
    put(files, 0, *reversed(rows), *moved)
    flush = {"sink.buffer-flush.max-rows": 3, "sink.buffer-flush.interval": "1 h"}
    write = sink(broker, topic, **{"sequence-by": "name"}, **flush)
    writer = stream(spark, files).writeStream.foreachBatch(write).trigger(availableNow=True)
    run_to_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())

    last = dict(messages(broker, topic))
    assert last == {
        '{"id":9}': "",
        **{f'{{"id":{n}}}': f'{{"id":{n},"name":"{495 + n:04}"}}' for n in range(5)},
    }
