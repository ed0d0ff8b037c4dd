"""A job that logs in by tokens of a few seconds: writes a table, copies it in a stream, and reads both; run in a process of its own."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka, LocalSecurity, read_table
from tests.conftest import broker_at
from tests.given_tokens import login

SCHEMA = "id BIGINT, name STRING"
LIFE_S = 3


def started(how: str, events: str) -> SparkSession:
    """A session, classic or of Spark Connect, whose events are logged."""
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if how == "connect" else builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events,
    }
    return builder.config(map=settings).getOrCreate()


def main(client: str, how: str, folder: str) -> None:
    """Prints plans, and what both tables have."""
    events = Path(folder, "events")
    events.mkdir()
    with LocalKafka(
        security=LocalSecurity(users={"ana": "x"}),
        config={"listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms": "3600000"},
    ) as kafka:
        topics = broker_at(kafka.bootstrap_servers)
        accepted = {"enable.idempotence": "false", "isolation.level": "read_uncommitted"}
        properties = {
            "bootstrap.servers": kafka.address("SASL_PLAINTEXT"),
            **login(f"user=ana life={LIFE_S}"),
            **(accepted if client == "kafka-python" else {}),
        }
        options = {
            "kafka.client": client,
            "primary-key": "id",
            "key.format": "json",
            "value.format": "json",
            **{f"properties.{name}": value for name, value in properties.items()},
        }
        first, second = (topics.topic(cleanup_policy="compact") for _ in range(2))
        spark = started(how, events.as_uri())
        rows = spark.range(3).selectExpr("id", "'a' AS name")
        reader = spark.readStream.format("upsert-kafka").options(**options).option("topic", first)
        copy = reader.schema(f"{SCHEMA}, _change_type STRING").load()
        query = (
            copy.writeStream.format("upsert-kafka")
            .options(**options)
            .option("topic", second)
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(processingTime="0 seconds")
            .start()
        )
        for number in range(3):
            rows.selectExpr("id", f"'{number}' AS name").write.format("upsert-kafka").mode(
                "append"
            ).options(**options).option("topic", first).save()
            query.processAllAvailable()
            time.sleep(0.6 * LIFE_S)
        query.stop()
        table = spark.read.format("upsert-kafka").options(**options).option("topic", first)
        table.schema(SCHEMA).load().explain(extended=True)
        for topic in (first, second):
            table = read_table({**options, "topic": topic}, schema=SCHEMA).read_all()
            found = [tuple(row.values()) for row in table.to_pylist()]
            sys.stdout.write(f"{sorted(found)}\n")
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
