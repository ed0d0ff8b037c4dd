"""No secret is left anywhere: not by queries that succeed, nor by those that fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import LocalKafka, LocalSecurity, upsert_sink
from tests.conftest import broker_at
from tests.spark.conftest import run_to_end
from tests.table_options import table_options

pytestmark = pytest.mark.classic("looks into plans in the JVM of the driver, and its logs")

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLANTED = {
    "in a file": "pl4nted-1",
    "in JAAS": "pl4nted-2",
    "as a literal": "pl4nted-3",
    "and wrong": "pl4nted-4",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[LocalKafka]:
    """A broker with a user for each place where a password may stand."""
    users = {name.replace(" ", "-"): password for name, password in PLANTED.items()}
    with LocalKafka(security=LocalSecurity(users={**users, "and-wrong": "another"})) as kafka:
        yield kafka


def test_no_secret_is_left_anywhere(
    spark: SparkSession,
    secured: LocalKafka,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not in plans, progress, the checkpoint, errors, reprs, logs, what processes print, and Spark's event log."""
    caplog.set_level("INFO")
    broker = broker_at(secured.bootstrap_servers)
    source, target = broker.topic(), broker.topic()
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"password = {PLANTED['in a file']}")

    def options(topic: str, where: str, **more: str) -> dict[str, str]:
        login = {
            "properties.sasl.username": where.replace(" ", "-"),
            "properties.sasl.password": PLANTED[where],
        }
        return {
            **table_options(topic=topic),
            "properties.bootstrap.servers": secured.address("SASL_PLAINTEXT"),
            "properties.security.protocol": "SASL_PLAINTEXT",
            "properties.sasl.mechanism": "SCRAM-SHA-256",
            **(login if where != "in JAAS" else {}),
            **more,
        }

    jaas = {
        "properties.sasl.jaas.config": f"{MODULE} username='in-JAAS' password='{PLANTED['in JAAS']}';"
    }
    by_file = {"properties.sasl.password": f"${{file:{secrets}:password}}"}
    seen: list[str] = []

    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, v STRING")
    rows.write.format("upsert-kafka").options(**options(source, "in JAAS", **jaas)).mode(
        "append"
    ).save()
    table = spark.read.format("upsert-kafka").schema("id INT, v STRING, _change_type STRING")
    table = table.options(**options(source, "as a literal")).load()
    assert table.count() == 2
    seen += [table._jdf.queryExecution().toString(), repr(table)]

    stream = spark.readStream.format("upsert-kafka").schema("id INT, v STRING, _change_type STRING")
    stream = stream.options(**options(source, "in a file", **by_file)).load()
    seen.append(stream._jdf.queryExecution().toString())
    sink = upsert_sink(options(target, "as a literal"))
    checkpoint = str(tmp_path / "checkpoint")
    query = (
        stream.writeStream.option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .foreachBatch(sink)
        .start()
    )
    run_to_end(query)
    assert len(broker.messages(target)) == 2
    plan = query._jsq.explainInternal(True)
    seen += [
        plan,
        json.dumps([dict(each) for each in query.recentProgress], default=str),
        repr(sink),
    ]

    wrong = options(source, "and wrong", **{"properties.default.api.timeout.ms": "60000"})
    failing = spark.readStream.format("upsert-kafka").schema(
        "id INT, v STRING, _change_type STRING"
    )
    with pytest.raises(Exception, match=r"(?i)authenticat") as error:
        run_to_end(
            failing.options(**wrong)
            .load()
            .writeStream.option("checkpointLocation", str(tmp_path / "failing"))
            .trigger(availableNow=True)
            .format("noop")
            .start()
        )
    seen += [str(error.value), repr(error.value)]

    printed = capfd.readouterr()
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file != secrets]
    events = [file for file in event_logs(spark).rglob("*") if file.is_file()]
    assert files
    assert events
    seen += [caplog.text, printed.out, printed.err]
    seen += [file.read_bytes().decode(errors="replace") for file in (*files, *events)]
    for where, secret in PLANTED.items():
        assert not any(secret in text for text in seen), where


def event_logs(spark: SparkSession) -> Path:
    """Where the session writes its events."""
    return Path(spark.conf.get("spark.eventLog.dir").removeprefix("file:"))
