"""`scan.headers`: a topic of several record types is read as if it had only those of one type."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import run_sql
from tests.conftest import Broker, options
from tests.raw_produce import produce_raw
from tests.spark.batches import load, refused
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches, message, read

ORDER, INVOICE, TENANT = ("type", b"Order"), ("type", b"Invoice"), ("tenant", b"7")

ORDERS = {"scan.headers": "type=Order"}


def send_all(broker: Broker, topic: str) -> None:
    """Orders 1 to 3, of which 2 is deleted; and messages of other types that no table of orders could read."""
    broker.produce(
        topic,
        (*message(1, "a"), [ORDER]),
        ("no JSON", b"\x00\x01", [INVOICE]),
        (*message(2, "b"), [TENANT, ORDER]),
        (*message(3, "c"), [ORDER, TENANT]),
        (None, None, [("type", None)]),
        (*message(1, "d"), [INVOICE, ORDER]),
        (*message(2, None), [ORDER]),
        (*message(3, None), [TENANT]),
        message(3, None),
        message(1, "other"),
        partition=0,
    )


@pytest.mark.parametrize(
    "client",
    [
        "librdkafka",
        pytest.param("kafka-python", marks=pytest.mark.long("the same by the other client")),
    ],
)
def test_a_batch_reads_one_type(spark: SparkSession, broker: Broker, client: str) -> None:
    """Its table and its changes; messages of others need not be readable, and delete nothing."""
    topic = broker.topic(2)
    send_all(broker, topic)
    # Without aborted messages there is no difference, and kafka-python-ng cannot tell them.
    seen = {"kafka.client": client, "properties.isolation.level": "read_uncommitted"}
    given = options(broker, topic, **ORDERS, **seen)
    schema = "id BIGINT, name STRING"

    assert rows(load(spark, schema, given)) == [(1, "d"), (3, "c")]
    assert rows(load(spark, schema, {**given, "minPartitions": 3})) == [(1, "d"), (3, "c")]
    changes = load(
        spark, f"_offset BIGINT, {schema}, _change_type STRING", {**given, "read.mode": "changelog"}
    )
    assert rows(changes) == [
        (0, 1, "a", "upsert"), (2, 2, "b", "upsert"), (3, 3, "c", "upsert"), (5, 1, "d", "upsert"),
        (6, 2, None, "delete"),
    ]  # fmt: skip
    both = {**given, "scan.headers": "type=Order;tenant=7", "read.mode": "changelog"}
    assert [row[0] for row in rows(load(spark, f"{schema}, _change_type STRING", both))] == [2, 3]


def test_headers_that_cannot_be_read_are_a_bad_message(spark: SparkSession, broker: Broker) -> None:
    """The message may be one that is wanted: the query fails, or skips it, as the options say."""
    topic = broker.topic()
    broker.produce(topic, (*message(1, "a"), [ORDER]))
    produce_raw(broker.servers, topic, b'{"id":2}', b"{}", [(b"type", b"Order"), (b"\xff", b"")])
    given = options(broker, topic, **ORDERS)

    text = refused(load(spark, "id BIGINT", given).collect)

    assert "offset 1" in text
    assert "stage: headers" in text
    assert rows(load(spark, "id BIGINT", {**given, "error-handling.mode": "ignore"})) == [(1,)]


@pytest.mark.long("two runs of two queries")
@pytest.mark.connect
def test_a_stream_reads_one_type(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Its offsets go on past the others; the table with which it begins has none of them either."""
    topic = broker.topic()
    send_all(broker, topic)
    changes, first = Batches(tmp_path / "changes"), Batches(tmp_path / "table")
    table = read(spark, broker, topic, **ORDERS, **{"scan.startup.mode": "full"})
    for _ in range(2):
        run_to_end(changes.start(read(spark, broker, topic, **ORDERS)))
        run_to_end(first.start(table))
        broker.produce(topic, (*message(4, "e"), [ORDER]), (*message(5, "f"), [INVOICE]))

    assert [[row[:2] for row in each] for each in changes.rows.values()] == [
        [(1, "a"), (2, "b"), (3, "c"), (1, "d"), (2, None)], [(4, "e")],
    ]  # fmt: skip
    assert [sorted(row[:3] for row in each) for each in first.rows.values()] == [
        [(1, "d", "upsert"), (3, "c", "upsert")], [(4, "e", "upsert")],
    ]  # fmt: skip


@pytest.mark.long("a script, as others that make test runs")
def test_a_table_of_a_script_has_one_type(spark: SparkSession, broker: Broker) -> None:
    """The option stands in the statement of the table."""
    topic, target = broker.topic(), broker.topic()
    send_all(broker, topic)
    table = """
        CREATE TABLE {name} (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'upsert-kafka', 'topic' = '{topic}', 'key.format' = 'json',
          'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json'{more});
    """
    orders = table.format(
        name="orders", topic=topic, servers=broker.servers, more=", 'scan.headers' = 'type=Order'"
    )
    copied = table.format(name="copied", topic=target, servers=broker.servers, more="")

    run_sql(spark, f"{orders} {copied} INSERT INTO copied SELECT * FROM orders;", mode="batch")

    assert sorted(broker.pairs(target)) == [
        (b'{"id":1}', b'{"id":1,"name":"d"}'), (b'{"id":3}', b'{"id":3,"name":"c"}'),
    ]  # fmt: skip
