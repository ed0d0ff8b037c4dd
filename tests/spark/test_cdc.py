"""Topics of a database's changes, end to end: the table, rows before and after each change, streams, scripts, bad messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import normalize_changelog, run_sql
from tests.conftest import Broker, options
from tests.spark.batches import load, refused
from tests.spark.conftest import rows, run_to_end

COLUMNS = "id BIGINT, name STRING"
CHANGES = f"{COLUMNS}, _change_type STRING, _partition INT, _offset BIGINT"
NO_KEY: dict[str, Any] = {"primary-key": None, "key.format": None, "read.mode": "changelog"}


def envelope(op: str, before: Any, after: Any) -> str:
    """A message of Debezium; rows are (id, name)."""
    named = [
        None if each is None else dict(zip(("id", "name"), each, strict=True))
        for each in (before, after)
    ]
    return json.dumps(
        {
            "before": named[0],
            "after": named[1],
            "op": op,
            "ts_ms": 1_700_000_000_000,
            "source": {"table": "people"},
        }
    )


MESSAGES = [
    envelope("r", None, (1, "Ada")),
    envelope("c", None, (2, "Alan")),
    envelope("u", (1, "Ada"), (1, "Ada L.")),
    envelope("u", (2, "Alan"), (7, "Alan")),
    envelope("c", None, (3, "Grace")),
    envelope("d", (3, "Grace"), None),
    None,
    envelope("t", None, None),
    envelope("x", None, None),
    envelope("c", None, (4, "Edsger")),
]


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Changes of a table without keys, among them a bad one at offset 8."""
    name = broker.topic(1, retention_ms="-1")
    broker.produce(name, *((None, message) for message in MESSAGES))
    return name


def debezium(broker: Broker, topic: str, **more: Any) -> dict[str, str]:
    """Options of the table in it."""
    given = {
        "key.format": None,
        "value.format": "debezium-json",
        "error-handling.mode": "ignore",
        **more,
    }
    return options(broker, topic, **given)


def test_the_table(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A batch is the table as of now, also where several tasks share its keys; an update of a key moves its row."""
    wanted = [(1, "Ada L."), (4, "Edsger"), (7, "Alan")]
    assert rows(load(spark, COLUMNS, debezium(broker, topic))) == wanted
    assert rows(load(spark, COLUMNS, debezium(broker, topic, minPartitions=3))) == wanted


def test_rows_before_and_after_each_change(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Without a primary key; metadata of the format is a column by an option."""
    given = debezium(broker, topic, **NO_KEY, **{"metadata.table": "value.source.table"})
    frame = load(spark, f"{COLUMNS}, _change_type STRING, _offset BIGINT, table STRING", given)
    assert [tuple(row) for row in frame.collect()] == [
        (*row, "people")
        for row in [
            (1, "Ada", "insert", 0),
            (2, "Alan", "insert", 1),
            (1, "Ada", "update_preimage", 2),
            (1, "Ada L.", "update_postimage", 2),
            (2, "Alan", "update_preimage", 3),
            (7, "Alan", "update_postimage", 3),
            (3, "Grace", "insert", 4),
            (3, "Grace", "delete", 5),
            (4, "Edsger", "insert", 9),
        ]
    ]


def test_bad_messages(spark: SparkSession, broker: Broker, topic: str) -> None:
    """They fail the query with their place, or go to the dead-letter topic as they are."""
    text = refused(
        load(spark, COLUMNS, debezium(broker, topic, **{"error-handling.mode": "fail"})).collect
    )
    assert (
        f'topic \'{topic}\', partition 0, offset 8 cannot be decoded (stage: value): unknown "op" value "x"'
        in text
    )
    letters = broker.topic(1)
    given = debezium(
        broker,
        topic,
        **{"error-handling.mode": "log", "error-handling.log.target": letters, "minPartitions": 2},
    )
    assert len(rows(load(spark, COLUMNS, given))) == 3
    (letter,) = broker.messages(letters)
    assert letter.value == MESSAGES[8].encode()


def test_a_stream_and_whole_rows(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """A stream gives upserts and deletes, which become whole rows; both are limited by offsets as any topic is."""
    reader = (
        spark.readStream.format("upsert-kafka").schema(CHANGES).options(**debezium(broker, topic))
    )
    query = (
        reader.load()
        .writeStream.format("memory").queryName("cdc")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    run_to_end(query)
    changes = [
        (1, "Ada", "upsert", 0), (2, "Alan", "upsert", 1), (1, "Ada L.", "upsert", 2), (2, None, "delete", 3),
        (7, "Alan", "upsert", 3), (3, "Grace", "upsert", 4), (3, None, "delete", 5), (4, "Edsger", "upsert", 9),
    ]  # fmt: skip
    shown = spark.sql("SELECT id, name, _change_type, _offset FROM cdc")
    assert [tuple(row) for row in shown.collect()] == changes
    batch = load(spark, CHANGES, debezium(broker, topic, **{"read.mode": "changelog"}))
    whole = normalize_changelog(batch, ["id"]).select("id", "name", "_change_type")
    assert rows(whole) == sorted(
        [
            (1, "Ada", "insert"), (2, "Alan", "insert"), (1, "Ada", "update_preimage"), (1, "Ada L.", "update_postimage"),
            (2, "Alan", "delete"), (7, "Alan", "insert"), (3, "Grace", "insert"), (3, "Grace", "delete"), (4, "Edsger", "insert"),
        ],
        key=repr,
    )  # fmt: skip


@pytest.mark.long("tests/spark/test_table_first.py has such a stream")
def test_a_stream_that_begins_with_the_table(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """With 'scan.startup.mode' = 'full' the first batch is the table, each row once and no deletes."""
    given = debezium(broker, topic, **{"scan.startup.mode": "full", "minPartitions": 2})
    query = (
        spark.readStream.format("upsert-kafka").schema(CHANGES).options(**given).load()
        .writeStream.format("memory").queryName("cdc_full")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    run_to_end(query)
    shown = spark.sql("SELECT id, name, _change_type, _offset FROM cdc_full")
    assert rows(shown) == [
        (1, "Ada L.", "upsert", 2),
        (4, "Edsger", "upsert", 9),
        (7, "Alan", "upsert", 3),
    ]


SCRIPT = """
CREATE TABLE people (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = '{people}', 'properties.bootstrap.servers' = '{servers}', 'format' = 'debezium-json',
  'scan.bounded.mode' = 'latest-offset', 'error-handling.mode' = 'ignore');
CREATE TABLE copied (who STRING, id BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '{copied}', 'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json',
  'value.format' = 'json');
INSERT INTO copied SELECT UPPER(name), id FROM people;
"""


def test_a_script_copies_a_table_with_its_deletes(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """The connector 'kafka' with such a format and a PRIMARY KEY is an upsert table."""
    copied = broker.topic(1)
    (query,) = run_sql(spark, SCRIPT.format(people=topic, copied=copied, servers=broker.servers))
    run_to_end(query)
    found = dict(broker.pairs(copied))
    assert {json.loads(key or b"")["id"]: value and json.loads(value)["who"] for key, value in found.items()} == {
        1: "ADA L.", 2: None, 7: "ALAN", 3: None, 4: "EDSGER",
    }  # fmt: skip
