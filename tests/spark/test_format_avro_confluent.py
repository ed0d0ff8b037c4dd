"""Tables whose schemas are in a registry: written, read back without a schema, and changed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.conftest import Broker, options
from tests.local_registry import LocalRegistry
from tests.spark.batches import refused, save
from tests.spark.conftest import rows, run_to_end


def given(broker: Broker, topic: str, url: str, **more: object) -> dict[str, str]:
    """Options of a table with key and value in the registry, the key in the key alone."""
    return options(
        broker,
        topic,
        **{"value.fields-include": "EXCEPT_KEY"},
        **{f"{side}.format": "avro-confluent" for side in ("key", "value")},
        **{f"{side}.avro-confluent.url": url for side in ("key", "value")},
        **more,
    )


def table(spark: SparkSession, it: dict[str, str], **more: str) -> DataFrame:
    """The table, with the columns that the registry says."""
    return spark.read.format("upsert-kafka").options(**it, **more).load()


def test_a_table_needs_no_schema_where_a_registry_has_it(
    spark: SparkSession, broker: Broker, registry: LocalRegistry
) -> None:
    """Upserts and deletes come back as the table, with the columns of key and value in the registry."""
    it = given(broker, broker.topic(), registry.url)
    changes = "id BIGINT NOT NULL, name STRING, score DOUBLE, _change_type STRING"
    save(
        spark.createDataFrame(
            [(1, "a", 0.5, "upsert"), (2, "b", None, "upsert"), (3, "c", 1.0, "upsert")], changes
        ),
        it,
    )
    save(spark.createDataFrame([(3, None, None, "delete"), (1, "A", 0.5, "upsert")], changes), it)

    found = table(spark, it)

    assert found.schema.simpleString() == (
        "struct<id:bigint,name:string,score:double,_change_type:string>"
    )
    assert rows(found) == [(1, "A", 0.5, "upsert"), (2, "b", None, "upsert")]
    snapshot = table(spark, it, **{"read.mode": "snapshot"})
    assert rows(snapshot) == [(1, "A", 0.5), (2, "b", None)]
    assert registry.ask("GET", f"/subjects/{it['topic']}-key/versions") == [1]


def test_a_stream_of_a_table_that_grew(
    spark: SparkSession, broker: Broker, registry: LocalRegistry, tmp_path: Path
) -> None:
    """The newest schema gives the columns; rows of an older one have NULL in the new column."""
    it = given(broker, broker.topic(), registry.url)
    save(spark.createDataFrame([(1, "a")], "id BIGINT NOT NULL, name STRING"), it)
    save(spark.createDataFrame([(2, "b", 9)], "id BIGINT NOT NULL, name STRING, age INT"), it)

    stream = spark.readStream.format("upsert-kafka").options(**it).load()
    query = stream.writeStream.format("memory").queryName("grown").trigger(availableNow=True)
    run_to_end(query.option("checkpointLocation", str(tmp_path)).start())

    assert rows(spark.table("grown")) == [(1, "a", None, "upsert"), (2, "b", 9, "upsert")]


def test_an_address_that_is_no_registry(
    spark: SparkSession, broker: Broker, registry: LocalRegistry
) -> None:
    """The query fails with what was tried, and without the password."""
    host = registry.url.removeprefix("http://")
    it = given(broker, broker.topic(), f"http://me:pa55word@{host}/elsewhere")

    text = refused(lambda: table(spark, it))

    assert f"BrokerError: The schema registry at http://{host}/elsewhere refuses: HTTP 404" in text
    assert "pa55word" not in text
