"""Tables whose schemas are in a registry: written, read back without a schema, and changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import read_table
from tests.conftest import Broker, options
from tests.local_registry import Registry
from tests.spark.batches import refused, save
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches


def given(
    broker: Broker, topic: str, url: str, *, name: str = "avro-confluent", **more: object
) -> dict[str, str]:
    """Options of a table with key and value in the registry, the key in the key alone."""
    return options(
        broker,
        topic,
        **{"value.fields-include": "EXCEPT_KEY"},
        **{f"{side}.format": name for side in ("key", "value")},
        **{f"{side}.{name}.url": url for side in ("key", "value")},
        **more,
    )


def table(spark: SparkSession, it: dict[str, str], **more: str) -> DataFrame:
    """The table, with the columns that the registry says."""
    return spark.read.format("upsert-kafka").options(**it, **more).load()


@pytest.mark.parametrize("name", ["avro-confluent", "json-registry", "proto-registry"])
def test_a_table_needs_no_schema_where_a_registry_has_it(
    spark: SparkSession, broker: Broker, registry: Registry, name: str
) -> None:
    """Upserts and deletes come back as the table, with the columns of key and value in the registry."""
    it = given(broker, broker.topic(), registry.url, name=name)
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
    # Apicurio gives two versions to one schema that two tasks register at the same moment.
    versions = f"/subjects/{it['topic']}-key/versions"
    kept = (registry.ask("GET", f"{versions}/{each}") for each in registry.ask("GET", versions))
    assert len({each["schema"] for each in kept}) == 1


@pytest.mark.long("four runs of a query")
@pytest.mark.parametrize("name", ["avro-confluent", "json-registry", "proto-registry"])
def test_a_stream_of_a_table_that_changes(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path, name: str
) -> None:
    """A query that starts again goes on from its checkpoint, with the columns of the newest schema, at any depth.

    It has NULL where a row was written without one, and leaves out what the schema has lost; so does the batch that had failed.
    """
    it = given(broker, broker.topic(), registry.url, name=name)
    batches = Batches(tmp_path / "checkpoint", fails={2})

    def write(part: str, *row: object) -> None:
        at = f"STRUCT<{part.replace(' INT', ': INT')}>"
        columns = f"id BIGINT NOT NULL, at {at}, lines ARRAY<{at}>, by_name MAP<STRING, {at}>"
        id_, *values = row
        within = (values, [values], {"x": values})
        save(spark.createDataFrame([(id_, *within, *values)], f"{columns}, {part}"), it)

    def run() -> dict[int, list[tuple[object, ...]]]:
        run_to_end(batches.start(spark.readStream.format("upsert-kafka").options(**it).load()))
        return {number: [row[:-1] for row in found] for number, found in batches.rows.items()}

    def row(id_: int, *values: int | None) -> tuple[object, ...]:
        return (id_, values, [values], {"x": values}, *values, "upsert")

    write("a INT, b INT", 1, 10, 11)
    first = run()
    write("a INT, b INT", 2, 20, 21)
    write("a INT, b INT, c INT", 3, 30, 31, 32)
    second = run()
    write("a INT, b INT, c INT", 4, 40, 41, 42)
    with pytest.raises(StreamingQueryException, match="the sink fails as it was told to"):
        run()
    write("a INT, c INT", 5, 50, 52)
    newest = [(1, 10, None), (2, 20, None), (3, 30, 32), (4, 40, 42), (5, 50, 52)]

    assert first == {0: [row(1, 10, 11)]}
    assert second == {**first, 1: [row(2, 20, 21, None), row(3, 30, 31, 32)]}
    assert run() == {**second, 2: [row(4, 40, 42)], 3: [row(5, 50, 52)]}
    assert rows(table(spark, it)) == [row(*each) for each in newest]
    in_arrow = read_table(it).read_all().select(["id", "at", "c"]).to_pylist()
    assert sorted(map(tuple, map(dict.values, in_arrow))) == [
        (id_, {"a": a, "c": c}, c) for id_, a, c in newest
    ]


def test_an_address_that_is_no_registry(
    spark: SparkSession, broker: Broker, registry: Registry
) -> None:
    """The query fails with what was tried, and without the password."""
    host = registry.url.removeprefix("http://")
    it = given(broker, broker.topic(), f"http://me:pa55word@{host}/elsewhere")

    text = refused(lambda: table(spark, it).schema)

    assert f"BrokerError: The schema registry at http://{host}/elsewhere refuses: HTTP 404" in text
    assert "pa55word" not in text
