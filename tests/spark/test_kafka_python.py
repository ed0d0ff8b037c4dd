"""The pure-Python Kafka client, end to end."""

from __future__ import annotations

from pathlib import Path

import kafka
import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.batches import load, refused, save
from tests.spark.conftest import rows, run_to_end

SCHEMA = "id BIGINT, name STRING"
ACCEPTED = {
    "kafka.client": "kafka-python",
    "properties.isolation.level": "read_uncommitted",
    "properties.enable.idempotence": "false",
}


def test_a_table_is_written_and_read(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """By a batch and by a stream, and what cannot be decoded goes to the dead-letter topic."""
    topic, copy, letters = broker.topic(2), broker.topic(), broker.topic()
    table = [(1, "a"), (2, None), (3, "ü")]
    save(spark.createDataFrame(table, SCHEMA), options(broker, topic, **ACCEPTED))
    assert rows(load(spark, SCHEMA, options(broker, topic, **ACCEPTED))) == table

    broker.produce(topic, (None, "no key"))
    log = {"error-handling.mode": "log", "error-handling.log.target": letters}
    stream = (
        spark.readStream.format("upsert-kafka")
        .schema(f"{SCHEMA}, _change_type STRING")
        .options(**options(broker, topic, **ACCEPTED, **log))
        .load()
    )
    run_to_end(
        stream.writeStream.format("upsert-kafka")
        .options(**options(broker, copy, **ACCEPTED))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )

    assert rows(load(spark, SCHEMA, options(broker, copy, **ACCEPTED))) == table
    assert [value for _, value in broker.pairs(letters)] == [b"no key"]


@pytest.mark.skipif(kafka.__version__.startswith("3."), reason="kafka-python 3 has both")
def test_what_kafka_python_ng_cannot_do_is_for_the_user_to_accept(
    spark: SparkSession, broker: Broker
) -> None:
    """Reading without read_committed, and writing without idempotence."""
    given = options(broker, broker.topic(), **{"kafka.client": "kafka-python"})

    text = refused(load(spark, SCHEMA, given).collect)
    assert "OptionError" in text
    assert "'properties.isolation.level' = 'read_uncommitted'" in text
    text = refused(lambda: save(spark.createDataFrame([(1, "a")], SCHEMA), given))
    assert "OptionError" in text
    assert "'properties.enable.idempotence' = 'false'" in text
