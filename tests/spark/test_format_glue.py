"""Tables whose schemas are in a registry of AWS Glue, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import read_table
from tests.conftest import Broker, options
from tests.local_glue import CREDENTIALS
from tests.spark.batches import refused, save
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches

pytest.importorskip("moto")

EACH = pytest.mark.parametrize("name", ["avro-glue", "json-glue", "protobuf-glue"])


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that this process signs with; Spark's workers have them from its start."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def given(broker: Broker, topic: str, glue: str, name: str, **more: object) -> dict[str, str]:
    """Options of a table with key and value in Glue, the key in the key alone."""
    sides = {
        f"{side}.{name}.{option}": value
        for side in ("key", "value")
        for option, value in {"endpoint": glue, "auto.register.schemas": "true"}.items()
    }
    return options(
        broker,
        topic,
        **{"value.fields-include": "EXCEPT_KEY", f"key.{name}.schema.name": f"{topic}-key"},
        **{f"{side}.format": name for side in ("key", "value")},
        **sides,
        **more,
    )


@EACH
def test_a_table_with_a_registry_of_aws_glue(
    spark: SparkSession, broker: Broker, glue: str, name: str
) -> None:
    """Upserts and deletes, compressed or not, come back as the table, with the columns of the newest versions in Glue."""
    it = given(broker, broker.topic(), glue, name)
    changes = "id BIGINT NOT NULL, name STRING, _change_type STRING"
    first = [(1, "a", "upsert"), (2, "b", "upsert"), (3, "c", "upsert")]
    save(spark.createDataFrame(first, changes), it)
    second = spark.createDataFrame(
        [(3, None, 0.0, "delete"), (1, "A", 0.5, "upsert")],
        "id BIGINT NOT NULL, name STRING, score DOUBLE, _change_type STRING",
    )
    save(second, {**it, f"value.{name}.compression": "ZLIB"})

    as_table = {**it, "read.mode": "snapshot"}
    found = read_table(as_table).read_all()

    assert found.schema.names == ["id", "name", "score"]
    table = spark.read.format("upsert-kafka").options(**as_table).load()
    assert rows(table) == [(1, "A", 0.5), (2, "b", None)]
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows(table)


@pytest.mark.long("a run of a query, for what holds for all formats")
@EACH
def test_a_stream(
    spark: SparkSession, broker: Broker, glue: str, tmp_path: Path, name: str
) -> None:
    """It goes on with versions that come later."""
    it = given(broker, broker.topic(), glue, name)
    save(spark.createDataFrame([(1, "a")], "id BIGINT NOT NULL, name STRING"), it)
    batches = Batches(tmp_path / "checkpoint")
    source = spark.readStream.format("upsert-kafka").options(**it)
    run_to_end(batches.start(source.load()))
    later = spark.createDataFrame([(2, "b", 1)], "id BIGINT NOT NULL, name STRING, n INT")
    save(later, it)

    run_to_end(batches.start(source.load()))

    found = [row[:-1] for number in (0, 1) for row in batches.rows[number]]
    assert found == [(1, "a", "upsert"), (2, "b", 1, "upsert")]


@pytest.mark.long("for what unit tests show of each part")
def test_what_a_query_says_of_a_message_and_of_a_schema(
    spark: SparkSession, broker: Broker, glue: str
) -> None:
    """An unknown version: topic, partition and offset; a schema that is not registered: by which option it would be."""
    topic = broker.topic()
    it = given(broker, topic, glue, "avro-glue")
    broker.produce(topic, (b"\3\0" + bytes(16) + b"\2", b"\3\5" + bytes(16) + b"x"))
    reader = spark.read.format("upsert-kafka").schema("id BIGINT, name STRING").options(**it)
    text = refused(reader.load().collect)
    assert "DecodeError" in text
    assert f"{topic!r}, partition 0, offset 0" in text
    assert f"version {'0' * 8}-0000-" in text

    frame = spark.createDataFrame([(1, "a")], "id BIGINT NOT NULL, name STRING")
    not_registered = {**it, "value.avro-glue.auto.register.schemas": "false"}
    text = refused(lambda: save(frame, not_registered))
    assert "SchemaError" in text
    assert "'value.avro-glue.auto.register.schemas' = 'true'" in text
