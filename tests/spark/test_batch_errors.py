"""What is refused, when, and in which words: the text always holds our class's name in full.

What is seen without a broker is in tests/unit/connector/test_datasource.py; here one of each side shows that Spark passes it on.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import all_refused, clause, load, refused, save

SCHEMA = "id BIGINT, name STRING"
SECRET = "pl4nted-s3cret"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """A topic with a row, for reads that must not get that far."""
    name = broker.topic(1)
    broker.produce(name, ('{"id":1}', '{"id":1,"name":"a"}'))
    return name


def test_options_are_checked_when_planned(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A wrong option is an ``OptionError`` on both sides before anything is read or written."""
    wrong = options(broker, topic, **{"value.fields-inclde": "ALL"})
    frame = spark.sql("SELECT 1L AS id, 'a' AS name")
    for action in (load(spark, SCHEMA, wrong).collect, lambda: save(frame, wrong)):
        text = refused(action)
        assert "OptionError: " in text
        assert "Did you mean 'value.fields-include'?" in text
    assert len(broker.pairs(topic)) == 1


def test_a_schema_that_does_not_fit(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Columns that do not fit are a ``SchemaError`` when planned, on both sides, as are none to read."""
    given = options(broker, topic)
    reader = spark.read.format("upsert-kafka").options(**given)
    for action in (
        lambda: reader.load().schema,
        load(spark, "name STRING", given).collect,
        lambda: save(spark.sql("SELECT 1L AS id, INTERVAL '1' MONTH AS y"), given),
        lambda: save(spark.sql("SELECT 1L AS id, NULL AS n"), given),
    ):
        assert "SchemaError: " in refused(action)
    assert len(broker.pairs(topic)) == 1


def test_options_of_the_other_side_are_accepted(spark: SparkSession, broker: Broker) -> None:
    """Every declared option is accepted on both sides, Spark's own too."""
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


def test_a_topic_that_does_not_exist(spark: SparkSession, broker: Broker, topic: str) -> None:
    """A missing topic is an error on both sides that shows how to create it compacted."""
    missing = f"{topic}-missing"
    frame = spark.sql("SELECT 1L AS id, '' AS _topic")
    both = options(broker, [topic, missing])
    texts = all_refused(
        load(spark, SCHEMA, options(broker, missing)).collect,
        load(spark, SCHEMA, both).collect,
        lambda: save(frame, both),
    )
    for text in texts:
        assert f"BrokerError: Topic '{missing}' does not exist" in text
        assert "cleanup.policy=compact" in text
    assert missing not in broker.admin.list_topics(timeout=60).topics


def test_topics_may_be_created_when_asked_for(spark: SparkSession, broker: Broker) -> None:
    """``properties.allow.auto.create.topics`` lets the broker create a missing topic."""
    name = broker.topic(1) + "-new"
    given = options(broker, name, **{"properties.allow.auto.create.topics": "true"})
    save(spark.sql("SELECT 1L AS id, 'a' AS name"), given)
    assert load(spark, SCHEMA, options(broker, name)).count() == 1


def test_no_broker_and_no_secret(spark: SparkSession, broker: Broker, topic: str) -> None:
    """Without a broker both sides say so when the time is over; no error of ours shows a secret."""
    secured = options(
        broker, topic,
        **{
            "properties.security.protocol": "SASL_PLAINTEXT", "properties.sasl.mechanism": "PLAIN",
            "properties.sasl.username": "alice", "properties.sasl.password": SECRET,
            "properties.request.timeout.ms": "1000", "properties.default.api.timeout.ms": "2000",
        },
    )  # fmt: skip
    away = {**secured, "properties.bootstrap.servers": "127.0.0.1:1"}
    spark.sql(f"CREATE TEMPORARY VIEW away (id BIGINT) USING `upsert-kafka` OPTIONS {clause(away)}")
    told = all_refused(
        load(spark, SCHEMA, secured).collect,  # this broker wants no password
        load(spark, SCHEMA, away).collect,
        lambda: spark.sql("INSERT INTO away VALUES (1)"),
    )
    spark.catalog.dropTempView("away")

    for each in told:
        assert "BrokerError: Could not look up the topics" in each
        assert SECRET not in each
    for each in told[1:]:
        assert "'127.0.0.1:1'" in each
        assert "properties.bootstrap.servers" in each
    assert len(broker.pairs(topic)) == 1
