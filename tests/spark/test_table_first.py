"""Streams that begin with the table (``scan.startup.mode`` = ``full``): the first batch, the next ones, and kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka, OptionError, run_sql
from pyspark_upsert_kafka.core.positions.offsets import stream_offset
from pyspark_upsert_kafka.core.positions.progress import query_batch
from tests.conftest import Broker, broker_at, options
from tests.spark.batches import load
from tests.spark.conftest import CONNECT, eventually, run_to_end
from tests.spark.first_batch import COLUMNS, table_first
from tests.spark.streams import SCHEMA, Batches, message, named, needs_limits, read
from tools.histories.history import CLEANER, Counts, create_topic
from tools.histories.table_first import Batch, check_changes, check_first
from tools.histories.writer import Writer

ROOT = Path(__file__).parents[2]
FULL = {"scan.startup.mode": "full"}

MORE_OPTIONS = pytest.mark.long("the same with more options")


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, marks=pytest.mark.connect),
        pytest.param({"minPartitions": 5}, marks=MORE_OPTIONS),
        pytest.param({"scan.deletes": "drop"}, marks=MORE_OPTIONS),
    ],
)
def test_the_table_then_its_changes(
    spark: SparkSession, broker: Broker, tmp_path: Path, more: dict[str, object]
) -> None:
    """Each live key once, as an upsert; after that each change, deletes among them unless they are dropped."""
    topic = broker.topic(2)
    broker.produce(topic, *(message(id_, f"a{id_}") for id_ in range(4)), message(0, "b"))
    broker.produce(topic, message(1, None))
    sink = Batches(tmp_path)
    query = sink.start(read(spark, broker, topic, **FULL, **more))
    run_to_end(query)
    broker.produce(topic, message(0, "c"), message(0, "d"), message(2, None))
    first = query.recentProgress[0]
    run_to_end(sink.start(read(spark, broker, topic, **FULL, **more)))

    table = [(0, "b", "upsert"), (2, "a2", "upsert"), (3, "a3", "upsert")]
    changes = [(0, "c", "upsert"), (0, "d", "upsert")]
    if "scan.deletes" not in more:
        changes.append((2, None, "delete"))
    assert [sorted(row[:-1] for row in rows) for rows in sink.rows.values()] == [table, changes]
    assert first.numInputRows == 3
    if CONNECT is None:  # there, offsets are texts in a query's own progress
        (seen,) = query_batch(json.loads(first.json)).sources
        assert (seen.rows, seen.total_lag) == (3, 0)


@pytest.mark.long(
    "several runs of a query, or of a program; tests/unit/connector/planning/test_table_first.py holds the rule"
)
def test_a_first_batch_that_failed_is_done_again_as_it_was(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """With rows as of its end, by another number of tasks, and over several topics; what came since comes after it."""
    one, other = broker.topic(2), broker.topic()
    for topic in (one, other):
        broker.produce(topic, *(message(id_, "a") for id_ in range(6)), message(1, None))
    sink = Batches(tmp_path, fails={0})

    def start(pieces: int | None) -> None:
        more = {**FULL, "minPartitions": pieces}
        by_names = named(read(spark, broker, [one, other], **more), "names")
        given = {**options(broker, one, **more), "topic-pattern": f"{one}|{other}"}
        del given["topic"]
        by_pattern = spark.readStream.format("upsert-kafka").schema(SCHEMA).options(**given)
        run_to_end(sink.start(by_names.unionAll(named(by_pattern.load(), "pattern"))))

    with pytest.raises(StreamingQueryException, match="as it was told to"):
        start(3)
    for topic in (one, other):
        broker.produce(topic, message(0, "b"), message(2, None), message(7, "new"))
    for pieces in (None, 7):
        start(pieces)

    assert sorted(row[:2] for row in sink.rows[0]) == [
        (name, id_)
        for name in ("names", "pattern")
        for id_ in (0, 2, 3, 4, 5)
        for _ in (one, other)
    ]
    later = [row[:2] for number, rows in sink.rows.items() if number for row in rows]
    assert sorted(later) == [
        (name, id_) for name in ("names", "pattern") for id_ in (0, 2, 7) for _ in (one, other)
    ]


@pytest.mark.long(
    "several runs of a query, or of a program; tests/unit/connector/planning/test_table_first.py holds the rule"
)
@needs_limits
def test_limits_do_not_cut_the_table(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """They hold for the batches after it; one run with ``availableNow`` reads all."""
    topic = broker.topic()
    broker.produce(topic, *(message(id_) for id_ in range(20)))
    sink, limit = Batches(tmp_path), {**FULL, "maxOffsetsPerTrigger": 4, "minOffsetsPerTrigger": 2}
    run_to_end(sink.start(read(spark, broker, topic, **limit)))
    broker.produce(topic, *(message(id_) for id_ in range(10)))
    run_to_end(sink.start(read(spark, broker, topic, **limit)))

    assert [len(rows) for rows in sink.rows.values()] == [20, 4, 4, 2]


@pytest.mark.long(
    "several runs of a query, or of a program; tests/unit/connector/planning/test_table_first.py holds the rule"
)
def test_an_empty_topic_and_one_with_an_end(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The first batch is empty, or all that the query reads."""
    empty, ended = broker.topic(), broker.topic()
    broker.produce(ended, message(1, "a"), message(1, "b"))
    bounded = {**FULL, "scan.bounded.mode": "latest-offset"}

    def start() -> None:
        both = named(read(spark, broker, empty, **FULL), "empty").unionAll(
            named(read(spark, broker, ended, **bounded), "ended")
        )
        run_to_end(sink.start(both))

    sink = Batches(tmp_path)
    start()
    broker.produce(empty, message(2), message(2))
    broker.produce(ended, message(3))
    start()

    assert [[row[:2] for row in rows] for rows in sink.rows.values()] == [
        [("ended", 1)],
        [("empty", 2), ("empty", 2)],
    ]


def test_a_batch_refuses_it(spark: SparkSession, broker: Broker) -> None:
    """It shows the table anyway."""
    frame = load(spark, SCHEMA, options(broker, broker.topic(), **FULL))
    with pytest.raises(AnalysisException, match=r"'scan\.startup\.mode' = 'full' is for streams"):
        frame.count()


SCRIPT = """
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '{source}', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json', 'value.format' = 'json', 'scan.startup.mode' = 'full', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE copied (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '{target}', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json', 'value.format' = 'json');
{mode}
INSERT INTO copied SELECT * FROM users;
"""


@pytest.mark.long(
    "several runs of a query, or of a program; tests/unit/connector/planning/test_table_first.py holds the rule"
)
def test_a_script_copies_the_table(spark: SparkSession, broker: Broker) -> None:
    """The option stands in WITH; in batch mode the table refuses it."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, message(1, "a"), message(1, "b"), message(2, "a"), message(2, None))
    script = SCRIPT.format(source=source, target=target, servers=broker.servers, mode="{mode}")
    with pytest.raises(OptionError, match="'full' is for streams"):
        run_sql(spark, script.format(mode="SET 'execution.runtime-mode' = 'batch';"))
    run_sql(spark, script.format(mode=""), timeout=600)

    assert broker.pairs(target) == [(b'{"id":1}', b'{"id":1,"name":"b"}')]


def kill_in_the_first_batch(arguments: list[str], checkpoint: Path, after_s: float) -> None:
    """Starts a program, and kills it and its workers some time after its first batch was planned."""
    log = checkpoint.with_suffix(".log")
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.first_batch", *arguments],
            cwd=ROOT, start_new_session=True, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
    planned = checkpoint / "offsets" / "0"
    eventually(
        lambda: process.poll() is not None or (planned.exists() and b"started" in log.read_bytes()),
        "the first batch is planned",
    )
    assert process.poll() is None, log.read_text()[-5000:]
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long(
    "several runs of a query, or of a program; tests/unit/connector/planning/test_table_first.py holds the rule"
)
@pytest.mark.classic("starts a program of its own")
@pytest.mark.timeout(900)
def test_a_program_that_is_killed_in_its_first_batch_goes_on_with_that_table(
    spark: SparkSession, own_kafka: Callable[..., LocalKafka], tmp_path: Path
) -> None:
    """While the table is changed and compacted all the time, and with another number of tasks in each run.

    The first batch is the table as of the end that was planned first, but for keys whose newer change follows; the batches after
    it bring each change once, and lead to the table.
    """
    kafka, choice = own_kafka(config=CLEANER), random.Random(7)
    broker, topic = broker_at(kafka.bootstrap_servers), create_topic(kafka.bootstrap_servers, 2)
    checkpoint = tmp_path / "checkpoint"
    writer = Writer(broker.servers, topic, 3000, choice, transactional=True)
    writer.fill()
    writer.start()
    try:
        for pieces in ("1", "5", "3"):
            arguments = [broker.servers, topic, str(checkpoint), pieces]
            kill_in_the_first_batch(arguments, checkpoint, 5 * choice.random())
    finally:
        model = writer.stop()
    broker.wait_for_transactions(topic)
    sink = Batches(checkpoint)
    for _ in range(2):  # PySpark 4.0 ends after the batch that it does again
        run_to_end(sink.start(table_first(spark, broker.servers, topic, "4")))

    names = [column.split()[0] for column in COLUMNS.split(", ")]
    batches = []
    for number, rows in sink.rows.items():
        text = (checkpoint / "offsets" / str(number)).read_text().splitlines()[-1]
        offset = stream_offset(json.loads(text))
        assert offset is not None
        assert offset.is_table == (number == 0)
        ends = {place.partition: end for place, end in offset.positions.items()}
        found = [dict(zip(names, row, strict=False)) for row in rows]
        batches.append(Batch(ends, found))
    counts = Counts()
    check_first(model, batches[0], counts)
    check_changes(model, batches)
    assert counts.left_out > 0, "compaction took nothing that the first batch needed"
