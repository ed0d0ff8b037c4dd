"""Tables whose schemas are in a registry: written, read back without a schema, and changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import read_table, upsert_sink
from tests.conftest import Broker, options
from tests.guid_registry import guid_registry
from tests.local_registry import Registry
from tests.spark.batches import refused, save
from tests.spark.conftest import rows, run_to_end
from tests.spark.streams import Batches
from tests.spark.test_exactly_once import Batches as Runs


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
        id_, *others = row
        values = tuple(others)  # over Connect a list is no STRUCT
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


OTHER_FORMAT = pytest.mark.long("the same with another format")


@pytest.mark.parametrize(
    "name",
    [
        "avro-confluent",
        pytest.param("json-registry", marks=OTHER_FORMAT),
        pytest.param("proto-registry", marks=OTHER_FORMAT),
    ],
)
def test_schemas_in_headers(spark: SparkSession, broker: Broker, tmp_path: Path, name: str) -> None:
    """Batches and streams write and read them, also beside messages that begin with an id, and in the first batch of ``full``."""
    columns = "id BIGINT NOT NULL, name STRING, _change_type STRING"

    def write(*changes: tuple[object, ...]) -> None:
        save(spark.createDataFrame(list(changes), columns), {**it, **located})

    with guid_registry() as guids:
        it = given(broker, broker.topic(), guids.url, name=name)
        located: dict[str, str] = {}
        write((1, "a", "upsert"), (2, "b", "upsert"))
        located = {f"{side}.{name}.schema-id-location": "header" for side in ("key", "value")}
        write((2, "B", "upsert"), (3, "c", "upsert"))
        write((1, None, "delete"))
        batches = Batches(tmp_path / "checkpoint")
        full = {**it, "scan.startup.mode": "full"}
        run_to_end(batches.start(spark.readStream.format("upsert-kafka").options(**full).load()))
        write((3, None, "delete"), (4, "d", "upsert"))
        run_to_end(batches.start(spark.readStream.format("upsert-kafka").options(**full).load()))

        seen = [[each for each, _ in message.headers] for message in broker.messages(it["topic"])]
        found = rows(table(spark, it, **{"read.mode": "snapshot"}))
        copied = {**given(broker, broker.topic(), guids.url, name=name), **located}
        frame = spark.readStream.format("upsert-kafka").options(**it).load()
        writer = frame.writeStream.format("upsert-kafka").options(**copied)
        writer = writer.option("checkpointLocation", str(tmp_path / "copy"))
        run_to_end(writer.trigger(availableNow=True).start())
        copies = rows(table(spark, copied, **{"read.mode": "snapshot"}))

    both = ["__key_schema_id", "__value_schema_id"]
    assert sorted(seen) == sorted([[], [], both, both, both[:1], both[:1], both])
    assert sorted(row[:-1] for row in batches.rows[0]) == [(2, "B", "upsert"), (3, "c", "upsert")]
    assert sorted(row[:-1] for row in batches.rows[1]) == [(3, None, "delete"), (4, "d", "upsert")]
    assert found == copies == [(2, "B"), (4, "d")]


@pytest.mark.classic("exactly once is refused over Spark Connect")
@pytest.mark.long("the same exactly once")
def test_schemas_in_headers_exactly_once(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The headers are those of each message; a batch that runs again writes nothing twice."""
    with guid_registry() as guids:
        it = given(broker, broker.topic(), guids.url)
        it |= {f"{side}.avro-confluent.schema-id-location": "header" for side in ("key", "value")}
        sink = upsert_sink(
            {
                **it,
                "sink.parallelism": "2",
                "sink.delivery-guarantee": "exactly-once",
                "sink.transactional-id-prefix": it["topic"],
            }
        )
        run = Runs(spark, tmp_path)
        for _ in range(2):
            run.add()
            run.run(sink)
        run.forget_last()
        run.run(sink)

        messages = broker.messages(it["topic"])
        found = rows(table(spark, it, **{"read.mode": "snapshot"}))

    assert found == [(n, "1") for n in range(10)]
    assert len(messages) == 20
    assert {tuple(name for name, _ in each.headers) for each in messages} == {
        ("__key_schema_id", "__value_schema_id")
    }


def test_an_address_that_is_no_registry(
    spark: SparkSession, broker: Broker, registry: Registry
) -> None:
    """The query fails with what was tried, and without the password."""
    host = registry.url.removeprefix("http://")
    it = given(broker, broker.topic(), f"http://me:pa55word@{host}/elsewhere")

    text = refused(lambda: table(spark, it).schema)

    assert f"BrokerError: The schema registry at http://{host}/elsewhere refuses: HTTP 404" in text
    assert "pa55word" not in text
