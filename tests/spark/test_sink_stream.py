"""Writing a stream: append and complete, the keyed buffer, and what a failing batch leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import upsert_sink
from tests.conftest import Broker, options
from tests.spark.batches import load, refused
from tests.spark.conftest import rows, run_to_end

SCHEMA = "id BIGINT, name STRING, _change_type STRING"


def put(directory: Path, number: int, *given: Sequence[object]) -> None:
    """A file of rows: the micro-batch of that number."""
    names = [part.split()[0] for part in SCHEMA.split(", ")]
    lines = [json.dumps(dict(zip(names, row, strict=False))) for row in given]
    directory.mkdir(exist_ok=True)
    path = directory / f"{number:03}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads the oldest first


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    """The files of a directory, each a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(directory))


def start(
    frame: DataFrame,
    given: dict[str, str],
    checkpoint: Path,
    mode: str = "append",
    path: str | None = None,
) -> StreamingQuery:
    """Writes what is there and then ends."""
    writer = frame.writeStream.format("upsert-kafka").outputMode(mode).options(**given)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return writer.start(path)


def table(spark: SparkSession, broker: Broker, topic: str) -> list[tuple[object, ...]]:
    """The table in the topic."""
    return rows(load(spark, "id BIGINT, name STRING", options(broker, topic)))


@pytest.mark.connect
def test_append(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each micro-batch is written as it comes; the topic may be given to ``start``; no secret shows."""
    topic, files = broker.topic(2), tmp_path / "in"
    put(files, 0, (1, "a", "+I"), (2, "b", "+I"))
    put(files, 1, (1, "a", "-U"), (1, "a2", "+U"), (3, "c", "+I"))
    put(files, 2, (2, None, "delete"))
    given = options(broker, topic, **{"properties.sasl.password": "pl4nted-s3cret"})
    del given["topic"]
    query = start(stream(spark, files), given, tmp_path / "checkpoint", path=topic)
    run_to_end(query)
    query.explain(extended=True)
    assert "pl4nted-s3cret" not in capsys.readouterr().out
    assert [progress["batchId"] for progress in query.recentProgress if progress.numInputRows] == [
        0, 1, 2,
    ]  # fmt: skip
    assert table(spark, broker, topic) == [(1, "a2"), (3, "c")]
    found = broker.messages(topic)
    assert len(found) == 5, "the preimage is no message: its key's new row follows"
    assert [m.key for m in found if m.value is None] == [b'{"id":2}']


def test_complete(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """In output mode ``complete`` each batch upserts the whole table."""
    topic, files = broker.topic(2), tmp_path / "in"
    put(files, 0, (1,), (1,), (2,))
    put(files, 1, (1,), (3,))
    counts = (
        stream(spark, files).groupBy("id").count().selectExpr("id", "CAST(count AS STRING) AS name")
    )
    run_to_end(start(counts, options(broker, topic), tmp_path / "checkpoint", "complete"))
    assert table(spark, broker, topic) == [(1, "3"), (2, "1"), (3, "1")]
    assert len(broker.messages(topic)) == 2 + 3


@pytest.mark.long("another query")
def test_the_buffer_of_a_stream(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """With the flush options a batch writes each key once: its last change."""
    topic, files = broker.topic(1), tmp_path / "in"
    put(files, 0, *[(n % 4, f"n{n}", "+I") for n in range(400)], (0, None, "-D"))
    put(files, 1, *[(n % 2, f"m{n}", "+I") for n in range(100)])
    flush = {"sink.buffer-flush.max-rows": 100, "sink.buffer-flush.interval": "1 h"}
    run_to_end(
        start(stream(spark, files), options(broker, topic, **flush), tmp_path / "checkpoint")
    )
    found = broker.pairs(topic)
    assert len(found) == 4 + 2
    assert dict(found[:4])[b'{"id":0}'] is None
    assert table(spark, broker, topic) == [(0, "m98"), (1, "m99"), (2, "n398"), (3, "n399")]


def test_options_are_checked_in_the_first_batch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Spark shows a sink its options in the first batch: they are checked before any row is sent.

    What else is refused is in tests/unit/connector/test_datasource.py.
    """
    topic, files = broker.topic(1), tmp_path / "in"
    put(files, 0, (1, "a", "+I"))
    wrong = options(broker, topic, **{"sequence-by": "name"})
    text = refused(lambda: run_to_end(start(stream(spark, files), wrong, tmp_path / "checkpoint")))
    assert "OptionError: Option 'sequence-by' works with upsert_sink only" in text
    assert "foreachBatch(upsert_sink(" in text
    assert broker.pairs(topic) == []


def test_update_mode_is_spark_s_to_refuse(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Spark gives Python sinks no output mode ``update``; `upsert_sink` is the way."""
    put(tmp_path / "in", 0, (1, "a", "+I"))
    counts = stream(spark, tmp_path / "in").groupBy("id").count()
    given = options(broker, broker.topic(1))
    text = refused(lambda: run_to_end(start(counts, given, tmp_path / "checkpoint", "update")))
    assert "does not support Update mode" in text


def test_a_failed_batch_is_replayed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A batch that cannot be written fails the query; started again it is replayed, and all is right."""
    topic, files = broker.topic(2, max_message_bytes="20000"), tmp_path / "in"
    large = "".join(f"{n * 7919 % 100_003:x}" for n in range(9_000))
    put(files, 0, (1, "a", "+I"), (2, "b", "+I"))
    put(files, 1, (1, "a2", "+I"), (3, large, "+I"), (4, "d", "+I"), (2, None, "-D"))
    put(files, 2, (4, "d2", "+I"))
    given = options(broker, topic)
    query = start(stream(spark, files), given, tmp_path / "checkpoint")
    text = refused(lambda: run_to_end(query))
    assert f"DeliveryError: A message to topic '{topic}'" in text
    assert 'key {"id":3}' in text
    assert query.exception() is not None
    assert (4, "d2") not in table(spark, broker, topic)
    setting = ConfigEntry(
        "max.message.bytes", "1000000", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[setting])
    (altered,) = broker.admin.incremental_alter_configs([resource]).values()
    altered.result()
    run_to_end(start(stream(spark, files), given, tmp_path / "checkpoint"))
    assert table(spark, broker, topic) == [(1, "a2"), (3, large), (4, "d2")]


@pytest.mark.long("another query")
@pytest.mark.classic("only the threads of a classic session have a session of their own")
def test_a_stream_that_starts_in_a_thread_of_the_users_own(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """docs/errors.md: Spark finds no format of a Python sink there; ``upsert_sink`` needs none."""
    topic, files = broker.topic(), tmp_path / "in"
    put(files, 0, (1, "a", "+I"))
    given, frame = options(broker, topic), stream(spark, files)
    said: list[str] = []

    def run() -> None:
        try:
            run_to_end(start(frame, given, tmp_path / "not-found"))
        except Py4JJavaError as error:
            said.append(str(error.java_exception))
        writer = frame.writeStream.foreachBatch(upsert_sink(given)).trigger(availableNow=True)
        run_to_end(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())

    thread = Thread(target=run)
    thread.start()
    thread.join()

    assert "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: upsert-kafka" in said[0]
    assert table(spark, broker, topic) == [(1, "a")]
