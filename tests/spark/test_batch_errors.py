"""What is refused, when, and in which words: the text always holds our class's name in full."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import clause, load, refused, save

SCHEMA = "id BIGINT, name STRING"
SECRET = "pl4nted-s3cret"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """A topic with a row, for reads that must not get that far."""
    name = broker.topic(1)
    broker.produce(name, ('{"id":1}', '{"id":1,"name":"a"}'))
    return name


@dataclass(frozen=True)
class Told:
    """What an action was told, and after how many seconds."""

    text: str
    seconds: float


def _told(action: Callable[[], object]) -> Told:
    begin = time.monotonic()
    text = refused(action)
    return Told(text, time.monotonic() - begin)


@pytest.fixture(scope="module", autouse=True)
def hopeless(spark: SparkSession, broker: Broker, topic: str) -> Iterator[list[Future[Told]]]:
    """Reads and a write that reach nobody: under way while the other tests of this page run."""
    secured = options(
        broker, topic,
        **{
            "properties.security.protocol": "SASL_PLAINTEXT", "properties.sasl.mechanism": "PLAIN",
            "properties.sasl.username": "alice", "properties.sasl.password": SECRET,
            "properties.request.timeout.ms": "5000", "properties.default.api.timeout.ms": "15000",
        },
    )  # fmt: skip
    away = {**secured, "properties.bootstrap.servers": "127.0.0.1:1"}
    spark.sql(f"CREATE TEMPORARY VIEW away (id BIGINT) USING `upsert-kafka` OPTIONS {clause(away)}")
    with ThreadPoolExecutor(3) as pool:
        yield [
            pool.submit(_told, action)
            for action in (
                load(spark, SCHEMA, away).collect,
                lambda: spark.sql("INSERT INTO away VALUES (1)"),
                load(spark, SCHEMA, secured).collect,  # this broker wants no password
            )
        ]
    spark.catalog.dropTempView("away")


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"value.fields-inclde": "ALL"}, "Did you mean 'value.fields-include'?"),
    ({"value.json.ignore-parse-error": "true"}, "Did you mean 'value.json.ignore-parse-errors'?"),
    ({"value.fields-include": "SOME"}, "Invalid value for option 'value.fields-include'"),
    ({"primary-key": None}, "'upsert-kafka' tables require to define a PRIMARY KEY constraint."),
    ({"value.format": None, "key.format": None}, "key.format, value.format"),
    ({"key.format": "debezium-json"},
     "'upsert-kafka' connector doesn't support 'debezium-json' as key format, because"),
    ({"key.fields-prefix": "k_"},
     "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'."),
    ({"properties.partitioner": "random"}, "properties.partitioner"),
    ({"properties.no.such.thing": "x"}, "no.such.thing"),
]  # fmt: skip


def test_options_are_checked_when_planned(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A wrong option is an ``OptionError`` on both sides before anything is read or written."""
    frame = spark.sql("SELECT 1L AS id, 'a' AS name")
    for at, (given, words) in enumerate(WRONG):
        wrong = options(broker, topic, **given)
        reading = load(spark, SCHEMA, wrong).collect
        actions = [reading, lambda wrong=wrong: save(frame, wrong)]
        for action in actions if at < 3 else actions[at % 2 :][:1]:  # each side takes its turn
            text = refused(action)
            assert "OptionError: " in text
            assert words in text
    half = options(broker, topic, **{"sink.buffer-flush.max-rows": "10"})
    text = refused(lambda: save(frame, half))
    assert (
        "OptionError: 'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be "
        "greater than zero together to enable sink buffer flushing." in text
    )
    nothing = {name: value for name, value in options(broker, topic).items() if name != "topic"}
    assert "OptionError: Either 'topic' or 'topic-pattern' must be set." in refused(
        lambda: save(frame, nothing)
    )
    assert len(broker.pairs(topic)) == 1


UNFIT: list[tuple[str, dict[str, str], str]] = [
    ("name STRING", {},
     "Could not find the field 'id' in the table schema for usage in the key format. A key field"),
    ("id ARRAY<BIGINT>", {}, "'id'"),
    ("id BIGINT, _partition STRING", {}, "Column '_partition'"),
    ("id BIGINT, h STRING", {"metadata.h": "headers"}, "Column 'h'"),
    ("id BIGINT", {"metadata.missing": "offset"}, "metadata.missing"),
    ("id BIGINT, name STRING", {"read.mode": "changelog"}, "_change_type"),
    ("id BIGINT, y INTERVAL YEAR TO MONTH", {}, "'y'"),
]  # fmt: skip


def test_a_schema_that_does_not_fit(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Columns, key and types that do not fit are a ``SchemaError`` when planned."""
    for schema, given, words in UNFIT:
        text = refused(load(spark, schema, options(broker, topic, **given)).collect)
        assert "SchemaError: " in text
        assert words in text


def test_no_schema_and_no_such_metadata(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Without a schema the error says how to give one; an unknown metadata key names those there are."""
    reader = spark.read.format("upsert-kafka").options(**options(broker, topic))
    text = refused(lambda: reader.load().schema)
    assert "SchemaError: " in text
    assert ".schema(" in text
    unknown = options(broker, topic, **{"metadata.h": "header"})
    text = refused(load(spark, "id BIGINT, h STRING", unknown).collect)
    assert "OptionError: " in text
    assert "'header-list'" in text


def test_schemas_that_cannot_be_written(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A missing key column, two sources of headers, a type without a mapping: before any row."""
    given = options(broker, topic)
    assert "SchemaError: Could not find the field 'id'" in refused(
        lambda: save(spark.sql("SELECT 'a' AS name"), given)
    )
    both = spark.sql(
        "SELECT 1L AS id, map('a', X'01') AS h, array(named_struct('key', 'a', 'value', X'01')) "
        "AS _headers"
    )
    text = refused(lambda: save(both, {**given, "metadata.h": "headers"}))
    assert "SchemaError: The writable metadata is ambiguous." in text
    months = spark.sql("SELECT 1L AS id, INTERVAL '1' MONTH AS y")
    assert "SchemaError: " in refused(lambda: save(months, given))
    assert "SchemaError: " in refused(lambda: save(spark.sql("SELECT 1L AS id, NULL AS n"), given))
    kind = spark.sql("SELECT 1L AS id, 1 AS _change_type")
    assert "SchemaError: Column '_change_type'" in refused(lambda: save(kind, given))
    assert len(broker.pairs(topic)) == 1


def test_options_of_the_other_side_are_accepted_and_checked(
    spark: SparkSession, broker: Broker
) -> None:
    """Every declared option is accepted on both sides, Spark's own too, and checked on both."""
    here = broker.topic(1)
    given = options(
        broker, here,
        **{
            "scan.startup.mode": "earliest-offset", "failOnDataLoss": "TRUE",
            "sink.buffer-flush.max-rows": "0", "sink.delivery-guarantee": "at-least-once",
            "checkpointLocation": "/nowhere", "queryName": "q", "connector": "upsert-kafka",
            "PROPERTIES.Client.Id": "mine", "scan.topic-partition-discovery.interval": "5 min",
            "properties.max.poll.records": "5",
        },
    )  # fmt: skip
    save(spark.sql("SELECT 1L AS id, 'a' AS name"), given)
    assert load(spark, SCHEMA, given).count() == 1
    text = refused(lambda: save(spark.sql("SELECT 1L AS id"), {**given, "scan.deletes": "hide"}))
    assert "OptionError: Invalid value for option 'scan.deletes'" in text
    text = refused(load(spark, SCHEMA, {**given, "sink.parallelism": "many"}).collect)
    assert "OptionError: Invalid value for option 'sink.parallelism'" in text


def test_options_of_the_sink_that_a_writer_cannot_have(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    """``sink.parallelism`` and ``sequence-by`` are refused with the remedy."""
    for name, value in (("sink.parallelism", "2"), ("sequence-by", "name")):
        given = options(broker, topic, **{name: value})
        text = refused(lambda given=given: save(spark.sql("SELECT 1L AS id"), given))
        assert f"OptionError: Option '{name}' works with upsert_sink only" in text
        assert "foreachBatch(upsert_sink(" in text
    pattern = {**options(broker, topic), "topic-pattern": "t.*"}
    del pattern["topic"]
    text = refused(lambda: save(spark.sql("SELECT 1L AS id"), pattern))
    assert "OptionError: 'topic-pattern' is for reading" in text


def test_a_topic_that_does_not_exist(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A missing topic is an error on both sides that shows how to create it compacted."""
    missing = f"{topic}-missing"
    for given in (options(broker, missing), options(broker, [topic, missing])):
        read = load(spark, SCHEMA, given).collect
        frame = spark.sql("SELECT 1L AS id, '' AS _topic")
        for action in (read, lambda given=given, frame=frame: save(frame, given)):
            text = refused(action)
            assert f"BrokerError: Topic '{missing}' does not exist" in text
            assert "cleanup.policy=compact" in text
    assert missing not in broker.admin.list_topics(timeout=60).topics


def test_topics_may_be_created_when_asked_for(spark: SparkSession, broker: Broker) -> None:
    """``properties.allow.auto.create.topics`` lets the broker create a missing topic."""
    name = broker.topic(1) + "-new"
    given = options(broker, name, **{"properties.allow.auto.create.topics": "true"})
    save(spark.sql("SELECT 1L AS id, 'a' AS name"), given)
    assert load(spark, SCHEMA, options(broker, name)).count() == 1


def test_no_broker_and_no_secret(
    spark: SparkSession, broker: Broker, topic: str, hopeless: list[Future[Told]]
) -> None:
    """Without a broker both sides say so when the time is over; no error of ours shows a secret."""
    secret = {"properties.sasl.password": SECRET}
    wrong = [
        {**secret, "properties.security.protocol": "SASL_SOMETHING"},
        {**secret, "properties.sasl.username": "${env:NO_SUCH_VARIABLE}"},
        {"properties.sasl.jaas.config": f"com.example.Login required password='{SECRET}';"},
        {**secret, "topik": "t"},
    ]
    for given in wrong:
        text = refused(load(spark, SCHEMA, options(broker, topic, **given)).collect)
        assert "OptionError: " in text
        assert SECRET not in text
    told = [asked.result() for asked in hopeless]
    for each in told:
        assert "BrokerError: Could not look up the topics" in each.text
        assert SECRET not in each.text
        assert each.seconds < 180, "about 15 seconds on a machine that has time"
    for each in told[:2]:
        assert "'127.0.0.1:1'" in each.text
        assert "properties.bootstrap.servers" in each.text
    assert len(broker.pairs(topic)) == 1
