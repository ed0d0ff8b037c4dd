"""Scripts over a database's changes, end to end: copies with deletes, a filter, and operation codes to changes and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import run_sql
from tests.conftest import Broker
from tests.spark.conftest import CONNECT, run_to_end

Row = tuple[int, str, int]

PEOPLE = """
CREATE TABLE people (id BIGINT, name STRING, age INT{key}) WITH ('connector' = 'kafka', 'topic' = '{people}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'debezium-json');
CREATE TABLE copied (name STRING, id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{copied}', 'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'value.format' = 'json');
SET 'execution.checkpointing.dir' = '{folder}';
"""
KEY = ", PRIMARY KEY (id) NOT ENFORCED"


def envelope(op: str, before: Row | None, after: Row | None) -> tuple[str, str]:
    """A message of Debezium, whose key is that of its row."""
    rows = [row and dict(zip(("id", "name", "age"), row, strict=True)) for row in (before, after)]
    key = (before or after or (0,))[0]
    return json.dumps({"id": key}), json.dumps({"before": rows[0], "after": rows[1], "op": op})


def names_in(broker: Broker, topic: str) -> dict[int, str | None]:
    """The table in a topic: the name of each key; deleted keys are None."""
    return {
        json.loads(key or b"")["id"]: None if value is None else json.loads(value)["name"]
        for key, value in broker.pairs(topic)
    }


def run_once(spark: SparkSession, script: str) -> None:
    """Runs a script of one stream until all that is there is done."""
    (query,) = run_sql(spark, script)
    query.processAllAvailable()
    query.stop()


@pytest.mark.long("two runs of a script; tests/spark/test_cdc.py copies a table with a key")
@pytest.mark.parametrize(
    ("key", "where", "first", "second"),
    [
        ("", "WHERE 100 / age < 6", {1: None}, {1: "ADA L."}),
        (KEY, "", {1: "ADA", 4: "YOUNG"}, {1: "ADA L.", 4: "YOUNG"}),
    ],
    ids=["filtered", "with a key"],
)
def test_a_copy(
    spark: SparkSession, broker: Broker, tmp_path: Path, key: str, where: str, first: dict[int, str | None], second: dict[int, str | None],
) -> None:  # fmt: skip
    """Deletes and updates of the key are copied, also after a restart; without a key, rows that leave a filter are deleted."""
    people, copied = broker.topic(2), broker.topic(2)
    given = {"people": people, "copied": copied, "servers": broker.servers, "folder": tmp_path}
    script = PEOPLE.format(key=key, **given)
    script += "INSERT INTO copied SELECT UPPER(name), id FROM people " + where
    broker.produce(
        people,
        envelope("r", None, (1, "Ada", 36)),
        envelope("c", None, (2, "Alan", 41)),
        envelope("c", None, (3, "Kid", 10)),
        envelope("u", (3, "Kid", 10), (3, "Kid", 18)),
        envelope("u", (1, "Ada", 36), (1, "Ada", 5)),
        envelope("c", None, (4, "Young", 3)),
    )

    run_once(spark, script)

    assert names_in(broker, copied) == {2: "ALAN", 3: "KID", **first}
    broker.produce(
        people,
        envelope("u", (2, "Alan", 41), (7, "Alan", 41)),
        envelope("d", (3, "Kid", 18), None),
        envelope("u", (1, "Ada", 5), (1, "Ada L.", 37)),
        envelope("u", (4, "Young", 3), (4, "Young", 4)),
    )

    run_once(spark, script)

    assert names_in(broker, copied) == {2: None, 3: None, 7: "ALAN", **second}


@pytest.mark.long("a script of streams, as others that make test runs")
def test_a_key_that_is_computed(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Without a key the rows before changes say what is deleted, whatever the target's key is made of."""
    people, copied = broker.topic(2), broker.topic(1)
    given = {"people": people, "copied": copied, "servers": broker.servers, "folder": tmp_path}
    script = PEOPLE.format(key="", **given)
    script += "INSERT INTO copied (id, name) SELECT id * 10, name FROM people"
    broker.produce(
        people,
        envelope("c", None, (1, "Ada", 36)),
        envelope("c", None, (2, "Alan", 41)),
        envelope("u", (1, "Ada", 36), (3, "Ada", 36)),
        envelope("d", (2, "Alan", 41), None),
    )

    run_once(spark, script)

    assert names_in(broker, copied) == {10: None, 20: None, 30: "Ada"}


@pytest.mark.long("a script of streams, as others that make test runs")
def test_a_script_with_metadata_and_options(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """What Flink's page on Debezium has: metadata of a message, where to start, and what is done with bad ones."""
    people, copied = broker.topic(1, retention_ms="-1"), broker.topic(1)
    source = {"db": "shop", "table": "people", "ts_ms": 1_700_000_000_000}
    rows = [{"id": number, "name": "Ada", "age": number} for number in (1, 2)]
    producer = broker.producer()
    for ms, message in (
        (
            1_000,
            json.dumps(
                {"op": "c", "before": None, "after": {**rows[0], "id": 9}, "source": source}
            ),
        ),
        (
            5_000,
            json.dumps({"op": "c", "before": None, "after": rows[0], "source": source, "ts_ms": 7}),
        ),
        (5_001, "no JSON"),
        (5_002, json.dumps({"op": "c", "before": None, "after": rows[1], "source": source})),
        (5_003, json.dumps({"op": "d", "before": rows[1], "after": None, "source": source})),
    ):
        producer.produce(people, value=message, timestamp=ms)
    assert producer.flush(60) == 0
    given = {"people": people, "copied": copied, "servers": broker.servers, "folder": tmp_path}
    script = (
        PEOPLE.format(key="", **given)
        .replace("age INT", "age INT, at TIMESTAMP(3) METADATA FROM 'value.source.timestamp' VIRTUAL, db STRING METADATA FROM "
                 "'value.source.database' VIRTUAL, seen TIMESTAMP_LTZ(3) METADATA FROM 'value.ingestion-timestamp' VIRTUAL")
        .replace("'format' = 'debezium-json'", "'properties.group.id' = 'a', 'scan.startup.mode' = 'timestamp', "
                 "'scan.startup.timestamp-millis' = '2000', 'value.format' = 'debezium-json', "
                 "'value.debezium-json.ignore-parse-errors' = 'true'")
    )  # fmt: skip
    script += (
        "INSERT INTO copied SELECT db || DATE_FORMAT(at, ' yyyy-MM-dd HH'), id FROM people "
        "WHERE age < 5 AND (seen IS NULL OR seen > TO_TIMESTAMP_LTZ(6, 3))"
    )

    run_once(spark, script)

    assert names_in(broker, copied) == {1: "shop 2023-11-14 22", 2: None}


EVENTS = """
CREATE TABLE events (op STRING, name STRING, id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{events}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'json', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE copied (name STRING, id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{copied}', 'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'value.format' = 'json');
"""


def event(op: str | None, id_: int, name: str) -> tuple[str, str]:
    """A message with an operation code, whose key is that of its row."""
    return json.dumps({"id": id_}), json.dumps({"op": op, "id": id_, "name": name})


def test_operation_codes_become_changes(spark: SparkSession, broker: Broker) -> None:
    """Codes of one's own, with a key; another code fails the query, which says where it is called."""
    events, copied = broker.topic(2), broker.topic(2)
    script = EVENTS.format(events=events, copied=copied, servers=broker.servers)
    call = (
        "INSERT INTO copied SELECT name, id FROM FROM_CHANGELOG(input => TABLE events PARTITION BY id, "
        "op_mapping => MAP['c, r', 'INSERT', 'u', 'UPDATE_AFTER', 'd', 'DELETE']{})"
    )
    broker.produce(
        events, event("c", 1, "Ada"), event("r", 2, "Alan"), event("u", 1, "Ada L."), event("d", 2, "Alan"),
        event("x", 3, "Kid"), event(None, 4, "Kid"),
    )  # fmt: skip

    (query,) = run_sql(spark, script + call.format(", error_handling => 'SKIP'"))
    run_to_end(query)
    (failed,) = run_sql(spark, script + call.format(""))
    with pytest.raises(
        StreamingQueryException,
        match=r"FROM_CHANGELOG: the operation code (x|NULL) in column 'op' is not",
    ):
        run_to_end(failed)

    assert names_in(broker, copied) == {1: "Ada L.", 2: None}


@pytest.mark.long("a script of streams, as others that make test runs")
def test_codes_of_rows_before_and_after(spark: SparkSession, broker: Broker) -> None:
    """Flink's own codes: the row before an update of the key is a delete, wherever its messages are."""
    events, copied = broker.topic(3), broker.topic(2)
    broker.produce(
        events, event("INSERT", 1, "Ada"), event("UPDATE_BEFORE", 1, "Ada"), event("UPDATE_AFTER", 1, "Ada L."),
        event("INSERT", 2, "Alan"), event("UPDATE_BEFORE", 2, "Alan"), event("UPDATE_AFTER", 3, "Alan"),
        event("INSERT", 4, "Kid"), event("DELETE", 4, "Kid"), event("INSERT", 4, "Kid II"),
    )  # fmt: skip
    script = EVENTS.format(events=events, copied=copied, servers=broker.servers)

    (query,) = run_sql(
        spark, f"{script}INSERT INTO copied SELECT name, id FROM FROM_CHANGELOG(TABLE events)"
    )
    run_to_end(query)

    assert names_in(broker, copied) == {1: "Ada L.", 2: None, 3: "Alan", 4: "Kid II"}


@pytest.mark.long("a script of streams, as others that make test runs")
def test_changes_become_operation_codes(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each change is a row that is only added: all are there, and a table marks what is deleted; SELECT alone prints changes."""
    people, marked = broker.topic(1), broker.topic(1)
    given = {"people": people, "copied": marked, "servers": broker.servers, "folder": tmp_path}
    script = PEOPLE.format(key="", **given).replace("(name STRING", "(gone STRING, name STRING")
    script = script.replace(
        "'debezium-json'", "'debezium-json', 'scan.bounded.mode' = 'latest-offset'"
    )
    broker.produce(
        people, envelope("c", None, (1, "Ada", 36)), envelope("u", (1, "Ada", 36), (1, "Ada L.", 37)),
        envelope("c", None, (2, "Alan", 41)), envelope("d", (2, "Alan", 41), None),
    )  # fmt: skip
    script += """
    INSERT INTO copied SELECT gone, name, id FROM TO_CHANGELOG(input => TABLE people, op => DESCRIPTOR(gone),
      op_mapping => MAP['INSERT, UPDATE_AFTER', 'no', 'DELETE', 'yes']);
    SELECT op, name, age FROM TO_CHANGELOG(TABLE people);
    SELECT id, name FROM people;
    """

    for query in run_sql(spark, script):
        run_to_end(query)

    found: list[Any] = [json.loads(value or b"") for _, value in broker.pairs(marked)]
    assert {row["id"]: (row["gone"], row["name"]) for row in found} == {
        1: ("no", "Ada L."),
        2: ("yes", "Alan"),
    }
    if CONNECT is None:  # there, the server prints the rows of streams
        printed = capsys.readouterr().out
        for line in ("|INSERT       |Ada   |36 |", "|UPDATE_BEFORE|Ada   |36 |", "|UPDATE_AFTER |Ada L.|37 |", "|DELETE       |Alan  |41 |"):  # fmt: skip
            assert line in printed
        assert "|id |name  |_change_type    |\n" in printed
        assert "|1  |Ada   |update_preimage |\n" in printed
