"""Reading a batch: the table as of now, its changes, or every message as a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load, refused, save
from tests.spark.conftest import rows

CHANGELOG = {"read.mode": "changelog"}
APPEND = {"read.mode": "append", "primary-key": None, "key.format": None}


@pytest.mark.connect
def test_snapshot_changelog_and_append(spark: SparkSession, broker: Broker) -> None:
    """The same topic as the table, as its changes, as its changes without deletes, as plain rows."""
    topic = broker.topic(2)
    broker.produce(topic, ('{"id":1}', '{"id":1,"name":"a"}'), partition=0)
    broker.produce(
        topic, ('{"id": 1}', '{"id":1,"name":"b"}'), ('{"id":2}', '{"id":2,"name":"gone"}'),
        ('{"id":2}', None), ('{"id":3}', None), ('{"id":4}', '{"name":"x","name":"y"}'),
        ('{"id":5,"more":true}', '{"name":"e","more":[1]}'), ('{"id":6}', "{}"), partition=0,
    )  # fmt: skip
    broker.produce(topic, ('{"id":1}', '{"id":1,"name":"elsewhere"}'), partition=1)
    schema = "id BIGINT, name STRING"
    table = [(1, "b"), (1, "elsewhere"), (4, "y"), (5, "e"), (6, None)]
    assert rows(load(spark, schema, options(broker, topic))) == table
    with_kind = load(spark, f"{schema}, _change_type STRING", options(broker, topic))
    assert rows(with_kind) == [(*row, "upsert") for row in table]
    changes = [
        (1, "a", "upsert"), (1, "b", "upsert"), (1, "elsewhere", "upsert"), (2, "gone", "upsert"),
        (2, None, "delete"), (3, None, "delete"), (4, "y", "upsert"), (5, "e", "upsert"),
        (6, None, "upsert"),
    ]  # fmt: skip
    changelog = options(broker, topic, **CHANGELOG)
    found = rows(load(spark, f"{schema}, _change_type STRING", changelog))
    assert sorted(found, key=repr) == sorted(changes, key=repr)
    dropped = rows(load(spark, schema, {**changelog, "scan.deletes": "drop"}))
    assert dropped == [change[:2] for change in sorted(changes, key=repr) if change[2] == "upsert"]
    plain = options(broker, topic, **APPEND)
    ignored = {"error-handling.mode": "ignore"}
    assert sorted(load(spark, "name STRING", {**plain, **ignored}).collect(), key=repr) == sorted(
        [(row[1],) for row in changes if row[2] == "upsert"], key=repr
    )
    text = refused(load(spark, "name STRING", plain).collect)
    assert "DecodeError" in text
    assert "the value is null" in text


METADATA = (
    "_topic STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP, _timestamp_type STRING, "
    "_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, _leader_epoch INT"
)
NAMED = {
    "a": ("topic", "STRING"), "b": ("partition", "BIGINT"), "c": ("offset", "BIGINT"),
    "d": ("timestamp", "TIMESTAMP_NTZ"), "e": ("timestamp-type", "STRING"),
    "f": ("headers", "MAP<STRING, BINARY>"),
    "g": ("header-list", "ARRAY<STRUCT<key: STRING, value: BINARY>>"), "h": ("leader-epoch", "BIGINT"),
    "i": ("change-type", "STRING"), "_topic": ("none", "STRING"),
}  # fmt: skip


@pytest.fixture
def tokyo(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, nine hours ahead of UTC, in one of the spellings that Spark takes."""
    spark.conf.set("spark.sql.session.timeZone", "+09")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_metadata_of_every_kind(tokyo: SparkSession, broker: Broker) -> None:
    """Reserved names and ``metadata.<column>`` show all there is to know, in every allowed type."""
    topic = broker.topic(1, retention_ms="-1")
    producer = broker.producer()
    sent = [("h", b"1"), ("g", None), ("h", b"2")]
    producer.produce(
        topic, key=b'{"id":1}', value=b'{"_topic":"physical"}', timestamp=1_600_000_000_123,
        headers=sent,
    )  # fmt: skip
    producer.produce(topic, key=b'{"id":2}', timestamp=1_600_000_000_456)
    assert producer.flush(60) == 0
    given = options(broker, topic, **CHANGELOG)
    first, second = (
        load(tokyo, f"id BIGINT, {METADATA}, _change_type STRING", given)
        .selectExpr("*", "unix_millis(_timestamp) AS ms")
        .drop("_timestamp")
        .orderBy("id")
        .collect()
    )
    assert first[:5] == (1, topic, 0, 0, "CreateTime")
    assert [tuple(header) for header in first["_headers"]] == sent
    assert first[6:] == (0, "upsert", 1_600_000_000_123)
    assert second[:5] == (2, topic, 0, 1, "CreateTime")
    assert second[5:] == ([], 0, "delete", 1_600_000_000_456)
    schema = ", ".join(f"{name} {type_}" for name, (_, type_) in NAMED.items())
    named = {f"metadata.{name.upper()}": key for name, (key, _) in NAMED.items()}
    first, second = load(tokyo, f"{schema}, id BIGINT", {**given, **named}).orderBy("id").collect()
    at = datetime(2020, 9, 13, 21, 26, 40, 123_000)  # noqa: DTZ001 - the session's local time
    assert first[:5] == (topic, 0, 0, at, "CreateTime")
    assert first["f"] == {"h": b"2", "g": None}
    assert [tuple(header) for header in first["g"]] == sent
    assert first[7:] == (0, "upsert", "physical", 1)
    assert second[5:] == ({}, [], 0, "delete", None, 2)


def test_metadata_of_a_log_append_topic(spark: SparkSession, broker: Broker) -> None:
    """The broker's own time has the type LogAppendTime; a snapshot shows metadata too."""
    topic = broker.topic(1, message_timestamp_type="LogAppendTime")
    broker.produce(topic, ('{"id":1}', "{}"), ('{"id":1}', "{}"))
    given = options(broker, topic)
    schema = "id BIGINT, _offset BIGINT, _timestamp_type STRING, _timestamp TIMESTAMP"
    (row,) = (
        load(spark, schema, given).selectExpr("*", "_timestamp > '2024-01-01' AS now").collect()
    )
    assert (row[:3], row["now"]) == ((1, 1, "LogAppendTime"), True)


@pytest.mark.long("many reads of 40,000 messages")
@pytest.mark.classic("counts the partitions of RDDs")
def test_a_large_table(spark: SparkSession, broker: Broker) -> None:
    """Many changes of few keys in several partitions give what a dict of them would hold."""
    topic = broker.topic(3)
    changes = [
        (f'{{"id":{n * 7 % 2500}}}', None if n % 13 == 0 else f'{{"id":{n * 7 % 2500},"v":{n}}}')
        for n in range(40_000)
    ]
    broker.produce(topic, *changes)
    last = dict(broker.pairs(topic))
    assert len(last) == 2500
    expected = {value["id"]: value["v"] for value in map(json.loads, filter(None, last.values()))}
    given = options(broker, topic)
    table = load(spark, "v BIGINT, id BIGINT", given)
    assert {row["id"]: row["v"] for row in table.collect()} == expected
    assert table.count() == len(expected)
    assert table.select("id").distinct().count() == len(expected)
    assert table.rdd.getNumPartitions() == 3
    changelog = load(spark, "id BIGINT, _change_type STRING", {**given, **CHANGELOG})
    counted = {row[0]: row[1] for row in changelog.groupBy("_change_type").count().collect()}
    assert counted == {"upsert": 40_000 - 3077, "delete": 3077}
    pieces = load(
        spark, "id BIGINT, _change_type STRING", {**given, **CHANGELOG, "minPartitions": 7}
    )
    assert pieces.rdd.getNumPartitions() == 7
    assert pieces.count() == 40_000
    few = load(spark, "v BIGINT, id BIGINT", {**given, "scan.parallelism": 2})
    assert few.rdd.getNumPartitions() == 2
    assert {row["id"]: row["v"] for row in few.collect()} == expected
    shared = load(spark, "v BIGINT, id BIGINT", {**given, "minPartitions": 7})
    assert shared.rdd.getNumPartitions() == 7
    assert {row["id"]: row["v"] for row in shared.collect()} == expected
    assert shared.count() == len(expected)
    small = load(spark, "v BIGINT, id BIGINT", {**given, "scan.snapshot.memory": "32 kb"})
    assert "OptionError: The table in topic" in refused(small.collect)


def test_topics_in_every_spelling(spark: SparkSession, broker: Broker) -> None:
    """One topic, a list, a pattern, or what ``load`` is given."""
    name = broker.topic(1)
    one, other = f"{name}.a", f"{name}.b"
    for at, topic in enumerate((one, other)):
        broker.create(topic)
        broker.produce(topic, (f'{{"id":{at}}}', "{}"))
    schema, both = "id BIGINT, _topic STRING", [(0, one), (1, other)]
    given = options(broker, one)
    assert rows(load(spark, schema, given)) == both[:1]
    del given["topic"]
    assert rows(load(spark, schema, given, other)) == both[1:]
    assert rows(load(spark, schema, given, f"{one};{other}")) == both
    assert rows(load(spark, schema, given, [one, other])) == both
    assert rows(load(spark, schema, {**given, "topic": f"{other}; {one}"})) == both
    pattern = {**given, "topic-pattern": rf"{name}\.[a-z]"}
    assert rows(load(spark, schema, pattern)) == both
    assert rows(load(spark, schema, {**given, "topic-pattern": "no-topic-has-this-name"})) == []
    text = refused(load(spark, schema, pattern, one).collect)
    assert "OptionError: Option 'topic' and 'topic-pattern' shouldn't be set together." in text
    assert "OptionError: Either 'topic' or 'topic-pattern' must be set." in refused(
        load(spark, schema, given).collect
    )


def test_an_empty_topic_is_an_empty_table(spark: SparkSession, broker: Broker) -> None:
    """A topic without messages, or with nothing but deletes, has no rows and needs no care."""
    empty, deleted = broker.topic(3), broker.topic(1)
    broker.produce(deleted, ('{"id":1}', "{}"), ('{"id":1}', None))
    nothing = load(spark, "id BIGINT NOT NULL, name STRING", options(broker, empty))
    assert (nothing.count(), nothing.collect()) == (0, [])
    gone = load(spark, "id BIGINT, other STRING", options(broker, deleted))
    assert rows(gone.join(nothing, "id", "full_outer")) == []


def test_one_dataframe_in_many_places(spark: SparkSession, broker: Broker) -> None:
    """Few columns, filters, limits, joins, unions with itself and caches work as on any table."""
    topic = broker.topic(2)
    given = options(broker, topic)
    save(spark.sql("SELECT id, concat('n', id) AS name FROM range(10)"), given)
    table = load(spark, "name STRING, id BIGINT, _offset BIGINT", given)
    assert rows(table.select("id").where("id < 3")) == [(0,), (1,), (2,)]
    assert len(table.limit(4).collect()) == 4
    assert table.union(table).count() == 20
    joined = table.alias("a").join(table.alias("b"), "id").selectExpr("a.name", "b.name")
    assert joined.where("a.name = b.name").count() == 10
    assert table.agg({"id": "sum"}).collect()[0][0] == 45
    cached = table.cache()
    assert cached.count() == cached.where("name IS NOT NULL").count() == 10
    cached.unpersist()
    assert table.isEmpty() is False
    assert table.orderBy("id").head()["name"] == "n0"


def test_a_dataframe_is_the_table_as_of_its_first_use(spark: SparkSession, broker: Broker) -> None:
    """Spark plans a DataFrame's partitions once; a fresh ``load()`` sees the table as it is now."""
    topic = broker.topic(1)
    given = options(broker, topic)
    broker.produce(topic, ('{"id":1}', "{}"))
    planned = load(spark, "id BIGINT", given)
    assert rows(planned) == [(1,)]
    broker.produce(topic, ('{"id":2}', "{}"), ('{"id":1}', None))
    assert rows(planned) == [(1,)]
    assert rows(load(spark, "id BIGINT", given)) == [(2,)]


def test_not_null(spark: SparkSession, broker: Broker) -> None:
    """A snapshot and an append source keep NOT NULL; a changelog allows it for key columns alone."""
    topic = broker.topic(1)
    broker.produce(topic, ('{"id":1}', '{"size":1}'), ('{"id":2}', None))
    given = options(broker, topic)
    strict = "id BIGINT NOT NULL, size BIGINT NOT NULL"
    table = load(spark, strict, given)
    assert [field.nullable for field in table.schema] == [False, False]
    assert rows(table) == [(1, 1)]
    changelog = {**given, **CHANGELOG}
    text = refused(load(spark, f"{strict}, _change_type STRING", changelog).collect)
    assert "SchemaError: Column 'size' is NOT NULL" in text
    assert "a delete has no other columns" in text
    keyed = load(spark, "id BIGINT NOT NULL, size BIGINT, _change_type STRING", changelog)
    assert rows(keyed) == [(1, 1, "upsert"), (2, None, "delete")]
    broker.produce(topic, ('{"id":3}', "{}"))
    text = refused(load(spark, strict, given).collect)
    assert f"DecodeError: The message at topic '{topic}', partition 0, offset 2 cannot" in text
    assert "size" in text
    plain = options(broker, topic, **APPEND)
    kept = load(spark, "size BIGINT NOT NULL", {**plain, "error-handling.mode": "ignore"})
    assert rows(kept) == [(1,)]


def test_explain_shows_a_plan_and_no_secret(
    spark: SparkSession, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every form of ``explain`` works; what is in an option is not in it."""
    given = options(broker, broker.topic(1), **{"properties.sasl.password": "s3cret-planted"})
    table = load(spark, "id BIGINT, name STRING", given).where("id > 1").select("name")
    for mode in ("simple", "extended", "formatted", "cost", "codegen"):
        table.explain(mode=mode)
    out = capsys.readouterr().out
    assert "upsert-kafka" in out or "BatchScan" in out
    assert "s3cret-planted" not in out
