"""Streams that are started again for columns that came while they ran (``scan.schema-changes`` = ``restart``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import normalize_changelog, upsert_sink, why_it_ended
from tests.conftest import Broker, options
from tests.local_registry import Registry
from tests.spark.batches import refused, save
from tests.spark.conftest import eventually, run_to_end
from tests.spark.streams import KNOWS_LIMITS, Batches, failing_once
from tests.spark.supervised import supervisor
from tests.spark.test_changelog import keeps_state

NARROW, WIDE = "id BIGINT NOT NULL, name STRING", "id BIGINT NOT NULL, name STRING, tier INT"


def given(
    broker: Broker, topic: str, registry: Registry, name: str = "avro-confluent", **more: object
) -> dict[str, str]:
    """Options of a table whose values have their schemas in the registry."""
    return options(
        broker,
        topic,
        **{"key.format": "json", "value.format": name, f"value.{name}.url": registry.url},
        **more,
    )


def read(spark: SparkSession, it: dict[str, str], **more: str) -> DataFrame:
    """The stream, with the columns that the registry says now."""
    more = {"scan.schema-changes": "restart", **more}
    return spark.readStream.format("upsert-kafka").options(**it, **more).load()


def ended(query: StreamingQuery) -> Any:
    """Why a query has ended that had to end by itself."""
    with pytest.raises(PySparkException) as raised:
        run_to_end(query)
    return why_it_ended(raised.value)


def table(broker: Broker, topic: str) -> dict[int, dict[str, Any]]:
    """The last value of each key of a topic in JSON."""
    return {
        json.loads(key or b"")["id"]: json.loads(value or b"null")
        for key, value in broker.pairs(topic)
    }


@pytest.mark.classic("over Spark Connect, a DataFrame gets its columns when the query starts")
def test_a_column_that_comes_while_a_query_runs(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path
) -> None:
    """The query ends, says what it lacks, and with a new load() reads the same messages; each row has its column."""
    it, target = given(broker, broker.topic(2), registry), broker.topic()
    save(spark.createDataFrame([(1, "Ada")], NARROW), it)

    def start(frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.format("upsert-kafka").options(**options(broker, target))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    run_to_end(start(read(spark, it)))
    before = read(spark, it)
    save(spark.createDataFrame([(2, "Alan", 1), (1, "Ada L.", 2), (3, "Grace", 3)], WIDE), it)

    why = ended(start(before))
    assert (why.error, why.restart) == ("SchemaChangedError", True)
    assert f"topic '{it['topic']}', partition" in why.text
    assert "columns that this query lacks: tier INT" in why.text
    assert "Start the query again from its checkpoint, with a new load() " in why.text
    assert "it then has the newest columns, and reads the same messages." in why.text
    run_to_end(start(read(spark, it)))

    assert table(broker, target) == {
        1: {"id": 1, "name": "Ada L.", "tier": 2},
        2: {"id": 2, "name": "Alan", "tier": 1},
        3: {"id": 3, "name": "Grace", "tier": 3},
    }


def test_what_is_refused(spark: SparkSession, broker: Broker, registry: Registry) -> None:
    """Where a new start would have the same columns, the query does not begin; a batch read has no other columns."""
    it = given(broker, broker.topic(), registry)
    save(spark.createDataFrame([(1, "Ada")], NARROW), it)
    restart = {"scan.schema-changes": "restart"}
    reader = spark.readStream.format("upsert-kafka").options(**it, **restart)

    def run(frame: DataFrame) -> None:
        run_to_end(frame.writeStream.format("noop").trigger(availableNow=True).start())

    text = refused(lambda: run(reader.schema(f"{NARROW}, _change_type STRING").load()))
    assert "is for columns that come from a schema, and not from .schema(...)" in text
    batch = spark.read.format("upsert-kafka").options(**it, **restart)
    assert "'scan.schema-changes' = 'restart' is for streams." in refused(batch.load().collect)


@pytest.mark.long("four runs of a query, one of them started again by a supervisor")
@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("avro-confluent", "librdkafka"),
        ("avro-confluent", "kafka-python"),
        ("json-registry", "librdkafka"),
        ("proto-registry", "librdkafka"),
    ],
)
def test_a_supervisor_and_a_query_that_runs(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path, name: str, client: str
) -> None:
    """A column that is added twice, in one of five partitions: the supervisor starts the query twice, and no row lacks it."""
    committed = {} if client == "librdkafka" else {"properties.isolation.level": "read_uncommitted"}
    it = given(broker, broker.topic(5), registry, name)
    reading = {**it, **committed, "kafka.client": client, "scan.parallelism": "2"}
    save(spark.createDataFrame([(n, "x") for n in range(20)], NARROW), it)
    sink = Batches(tmp_path / "checkpoint")
    started: list[StreamingQuery] = []

    def start() -> StreamingQuery:
        frame = read(spark, reading).drop("_change_type")
        started.append(sink.start(frame, processingTime="0 seconds"))
        wider = {1: "tier INT", 2: "tier INT, n BIGINT"}.get(len(started))
        if wider:
            eventually(lambda: len(sink.all()) >= 20 + len(started) - 1, "what was there")
            row = (100 + len(started), "y", 7, 8)[: 3 + len(started) - 1]
            save(spark.createDataFrame([row], f"{NARROW}, {wider}"), it)
        else:
            eventually(lambda: len(sink.all()) >= 22, "all rows")
            started[-1].stop()
        return started[-1]

    supervisor()(start, pause_s=0.1)

    assert len(started) == 3
    later = [row for row in sink.all() if row[0] > 100]
    assert later == [(101, "y", 7), (102, "y", 7, 8)]
    assert len(sink.all()) == 22


@pytest.mark.classic("exactly once is refused over Spark Connect")
@pytest.mark.long("six runs of a query")
@pytest.mark.parametrize("fails", [False, True], ids=["", "the sink fails after it"])
def test_exactly_once(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path, fails: bool
) -> None:
    """Each message of the source is one of the target, also when the batch that met the column fails once more after its restart."""
    it, target = given(broker, broker.topic(3), registry), broker.topic(2)
    append = {"read.mode": "append", "primary-key": None, "key.format": None}
    reading = {k: v for k, v in it.items() if k not in append} | {"read.mode": "append"}
    sink = upsert_sink(
        options(broker, target),
        **{
            "sink.parallelism": "2",
            "sink.delivery-guarantee": "exactly-once",
            "sink.transactional-id-prefix": f"shape-{target}",
        },
    )

    write = failing_once(sink, tmp_path / "failed", "tier") if fails else sink

    def start(frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).foreachBatch(write).start()

    save(spark.createDataFrame([(n, "x") for n in range(50)], NARROW), it)
    run_to_end(start(read(spark, reading)))
    before = read(spark, reading)
    save(spark.createDataFrame([(n, "y") for n in range(25)], NARROW), it)
    save(spark.createDataFrame([(n, "z", n) for n in range(50)], WIDE), it)
    assert ended(start(before)).error == "SchemaChangedError"
    if fails:
        assert ended(start(read(spark, reading))).error is None
    run_to_end(start(read(spark, reading)))

    values = (json.loads(value or b"") for _, value in broker.pairs(target))
    found = sorted(((row["id"], row["name"], row.get("tier")) for row in values), key=repr)
    expected = [(n, "x", None) for n in range(50)] + [(n, "y", None) for n in range(25)]
    assert found == sorted([*expected, *((n, "z", n) for n in range(50))], key=repr)


@pytest.mark.classic("over Spark Connect, a DataFrame gets its columns when the query starts")
@pytest.mark.long("five runs of a query")
def test_the_table_first(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path
) -> None:
    """The first batch of 'full' is read again as of the same offsets, with the column."""
    it, sink = given(broker, broker.topic(2), registry), Batches(tmp_path / "checkpoint")
    save(spark.createDataFrame([(1, "Ada"), (2, "Alan")], NARROW), it)
    full = {"scan.startup.mode": "full", "minPartitions": "4"}
    before = read(spark, it, **full)
    save(spark.createDataFrame([(2, "Alan T.", 2)], WIDE), it)

    assert ended(sink.start(before.drop("_change_type"))).error == "SchemaChangedError"
    assert sink.all() == []
    save(spark.createDataFrame([(3, "Grace", 3)], WIDE), it)
    # Before PySpark 4.2 the first run ends with the batch that was not finished.
    for _ in range(1 if KNOWS_LIMITS else 2):
        run_to_end(sink.start(read(spark, it, **full).drop("_change_type")))

    first, second = ([row[:-1] for row in rows] for rows in sink.rows.values())
    assert sorted(first) == [(1, "Ada", None), (2, "Alan T.", 2)]
    assert second == [(3, "Grace", 3)]


@keeps_state
@pytest.mark.long("three runs of a query with state")
@pytest.mark.parametrize(
    ("wider", "says"),
    [
        ("id BIGINT NOT NULL, n INT, tier INT", None),
        ("id BIGINT NOT NULL, n BIGINT", "CheckpointError"),
    ],
    ids=["added", "wider"],
)
def test_whole_rows(
    spark: SparkSession,
    broker: Broker,
    registry: Registry,
    tmp_path: Path,
    wider: str,
    says: str | None,
) -> None:
    """The state takes an added column, and of a wider type the error says which column it is."""
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    it, sink = given(broker, broker.topic(), registry), Batches(tmp_path / "checkpoint")
    save(spark.createDataFrame([(1, 1)], "id BIGINT NOT NULL, n INT"), it)
    metadata = {"metadata._partition": "partition", "metadata._offset": "offset"}

    def start() -> StreamingQuery:
        return sink.start(normalize_changelog(read(spark, it, **metadata), ["id"], buckets=1))

    run_to_end(start())
    save(spark.createDataFrame([(1, 2, 7)[: wider.count(",") + 1]], wider), it)
    if says is None:
        run_to_end(start())
        assert len(sink.all()) == 3
    else:
        why = ended(start())
        assert (why.error, why.restart) == (says, False)
        assert "'n'" in why.text
