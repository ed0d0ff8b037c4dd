"""A recorded topic of Debezium, end to end: the table in Spark is the table in the database."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load
from tools.recorded_debezium import TOPIC, Recorded, record


@pytest.mark.parametrize(
    "key_format", [None, pytest.param("json", marks=pytest.mark.long("the same with keys"))]
)
def test_the_table_of_a_recorded_topic(
    spark: SparkSession, broker: Broker, key_format: str | None
) -> None:
    """Dates, timestamps, decimals, texts and bits of messages with schemas, after a column was added; keys have schemas too."""
    recording = record(Recorded(9, rows=20, transactions=60))
    topic = broker.topic(2, retention_ms="-1")
    broker.produce(topic, *((m.key, m.value) for m in recording.messages if m.topic == TOPIC))
    given: dict[str, Any] = {
        "key.format": key_format,
        "value.format": "debezium-json",
        "value.debezium-json.schema-include": "true",
        "read.mode": "snapshot",
    }
    table = load(spark, recording.ddl, options(broker, topic, **given))

    found = {row["id"]: row.asDict() for row in table.where("seen IS NULL").collect()}
    moments = {row[0]: row[1] for row in table.selectExpr("id", "unix_micros(seen)").collect()}

    expected = {key: exact(row) for key, row in recording.as_sent.items()}
    assert found == {key: row for key, row in expected.items() if row["seen"] is None}
    assert moments == {key: row["seen"] and micros(row["seen"]) for key, row in expected.items()}


def exact(row: Any) -> dict[str, Any]:
    """A row as Spark has it: decimals with the digits of their type, binaries as bytearrays."""
    digits = {"balance": Decimal("0.01"), "credit": Decimal(1).scaleb(-18)}
    return {
        name: value.quantize(digits[name]) if isinstance(value, Decimal) else value
        for name, value in row.items()
    }


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
