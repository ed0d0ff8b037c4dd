"""Filters of a batch choose what is read: with Spark's setting on and off, over a classic session and Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader

from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from tests.conftest import Broker, options
from tests.spark.batches import clause, load, refused, save
from tests.spark.conftest import rows, run_to_end

pytestmark = pytest.mark.skipif(
    not hasattr(DataSourceReader, "pushFilters"), reason="filters need PySpark 4.1"
)

SETTING = "spark.sql.python.filterPushdown.enabled"
ASKED = {"scan.filter-pushdown": "one-filter-per-load"}
T0 = 1_700_000_000_000
SCHEMA = "id BIGINT, name STRING, score DOUBLE, _partition INT, _offset BIGINT, _timestamp TIMESTAMP, _topic STRING"


OF_ANOTHER_MODE = pytest.mark.long(
    "26 filters; tests/unit/connector/test_filters_law.py has all modes"
)


@pytest.fixture
def pushes(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with Spark's setting on."""
    spark.conf.set(SETTING, "true")
    yield spark
    spark.conf.unset(SETTING)


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Thirty rows in partitions 0 to 2, where keys are in any partition and their times do not rise."""
    name = broker.topic(4, retention_ms="-1")
    producer = broker.producer()
    for at in range(30):
        key, score = b'{"id":%d}' % (at % 11), (b"null", b"1.5", b'"NaN"')[at % 3]
        value = b'{"id":%d,"name":"n%d","score":%b}' % (at % 11, at, score)
        producer.produce(
            name, key=key, value=None if at % 7 == 0 else value, partition=at % 3,
            timestamp=T0 + (at * 7 % 30) * 1000,
        )  # fmt: skip
    assert producer.flush(60) == 0
    return name


WHERE = [
    "_partition = 1",
    "_partition IN (0, 2, NULL)",
    "_partition <> 1 AND _partition IS NOT NULL",
    "_partition <=> 2",
    "_partition <=> NULL",
    "_partition = CAST(NULL AS INT)",
    "_partition = 0 OR _partition = 2",
    "_partition > 7",
    "NOT (_partition IN (1))",
    "_partition IN (0,1,2,3,4,5,6,7,8,9,10,11)",
    "_offset >= 3 AND _offset < 8",
    "_offset = 4",
    "_offset IN (2, 9)",
    "_offset BETWEEN 2 AND 3 AND id > 4",
    "_timestamp >= timestamp_millis(1700000012000)",
    "_timestamp > timestamp_millis(1700000012000) AND _timestamp <= timestamp_millis(1700000020000)",
    "_timestamp = timestamp_millis(1700000007000)",
    "_timestamp < timestamp_millis(1700000003000)",
    "_timestamp > '1960-01-01' AND _topic LIKE 't-%'",
    "_topic = 'other'",
    "id = 3",
    "ID IN (3, 4) AND _PARTITION = 0",
    "score = double('NaN')",
    "score IS NULL",
    "score > 1.0 AND name LIKE 'n1%'",
    "name LIKE '%5' OR _offset = 1",
]


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("snapshot", marks=pytest.mark.connect),
        pytest.param("changelog", marks=OF_ANOTHER_MODE),
        pytest.param("append", marks=OF_ANOTHER_MODE),
    ],
)
def test_rows_are_the_same(spark: SparkSession, broker: Broker, topic: str, mode: str) -> None:
    """For filters that Spark passes on, and for those that it keeps to itself."""
    more: dict[str, object] = {"read.mode": mode, **ASKED}
    if mode == "append":
        more |= {"primary-key": None, "key.format": None, "error-handling.mode": "ignore"}
    schema = SCHEMA + (", _change_type STRING" if mode == "changelog" else "")
    given = options(broker, topic, **more)
    truths = [f"({where}) AS w{at}" for at, where in enumerate(WHERE)]
    # As columns, since Spark filters a cached DataFrame by its statistics, and they leave out NaN.
    everything = load(spark, schema, given).selectExpr("*", *truths).collect()
    expected = {
        where: sorted(repr((*row,)[: -len(WHERE)]) for row in everything if row[f"w{at}"])
        for at, where in enumerate(WHERE)
    }
    spark.conf.set(SETTING, "true")
    try:
        found = {
            where: list(map(repr, rows(load(spark, schema, given).where(where)))) for where in WHERE
        }
    finally:
        spark.conf.unset(SETTING)

    assert found == expected


@pytest.fixture(scope="module")
def half_bad(broker: Broker) -> str:
    """Rows in partition 0, and in partition 1 a message that cannot be decoded: whoever reads that one fails."""
    name = broker.topic(2)
    broker.produce(name, *[(f'{{"id":{at}}}', "{}") for at in range(5)], partition=0)
    broker.produce(name, ("{", "{"), partition=1)
    return name


COLUMNS = "id BIGINT, _partition INT"


@pytest.mark.connect
def test_what_a_filter_leaves_out_is_not_read(
    pushes: SparkSession, broker: Broker, half_bad: str
) -> None:
    """In a DataFrame and in SQL; without the option everything is read, as ever."""
    given = options(broker, half_bad, **ASKED)
    assert len(rows(load(pushes, COLUMNS, given).where("_partition = 0"))) == 5
    pushes.sql(f"DROP TABLE IF EXISTS {(table := half_bad.replace('-', '_'))}")
    pushes.sql(f"CREATE TABLE {table} ({COLUMNS}) USING `upsert-kafka`")
    query = f"SELECT * FROM {table} WITH {clause(given)} WHERE _partition < 1 AND id > 2"
    assert len(rows(pushes.sql(query))) == 2
    pushes.sql(f"DROP TABLE {table}")

    unasked = load(pushes, COLUMNS, options(broker, half_bad))
    assert "DecodeError" in refused(unasked.where("_partition = 0").collect)


@pytest.mark.connect
def test_reads_work_while_the_setting_is_off(
    spark: SparkSession, broker: Broker, topic: str, half_bad: str
) -> None:
    """They read everything; Spark would reject a reader that takes filters then."""
    assert load(spark, COLUMNS, options(broker, topic, **ASKED)).where("_partition = 1").count() > 0
    given = options(broker, half_bad, **ASKED)
    assert "DecodeError" in refused(load(spark, COLUMNS, given).where("_partition = 0").collect)


@pytest.mark.connect
def test_a_key_is_read_of_its_partition(pushes: SparkSession, broker: Broker) -> None:
    """With ``murmur2``, of a table that this connector has written."""
    topic = broker.topic(2)
    given = options(broker, topic, **ASKED, **{"scan.key-partitioner": "murmur2"})
    save(pushes.range(50).selectExpr("id"), given)
    one = partition_of(b'{"id":7}', 2)
    broker.produce(topic, ("{", "{"), partition=1 - one)
    others = [at for at in range(50) if partition_of(b'{"id":%d}' % at, 2) == one][:3]

    assert rows(load(pushes, "id BIGINT", given).where("id = 7")) == [(7,)]
    keys = ", ".join(map(str, others))
    found = rows(load(pushes, "id BIGINT", given).where(f"id IN ({keys})"))
    assert found == sorted(((at,) for at in others), key=repr)
    assert rows(load(pushes, "id BIGINT", given).where("id = 7 AND id = 8")) == []
    assert "DecodeError" in refused(load(pushes, "id BIGINT", given).where("id > 7").collect)


def test_filters_are_not_taken_unless_that_is_asked(
    pushes: SparkSession, broker: Broker, topic: str
) -> None:
    """A DataFrame may be used with any filters, in one query and one after another."""
    frame = load(pushes, COLUMNS, options(broker, topic))
    each = [frame.where(f"_partition = {number}") for number in range(3)]

    parts = [one.count() for one in each]
    assert frame.count() == sum(parts)
    assert each[0].union(each[1]).count() == parts[0] + parts[1]


@pytest.mark.classic("a server of Spark Connect may load the table anew for each query")
def test_spark_keeps_the_filter_of_a_query_for_the_next_one(
    pushes: SparkSession, broker: Broker, topic: str
) -> None:
    """Spark 4.1 to 4.3 plans a load() with filters once more and keeps that for whoever comes next.

    This is why filters are taken only if the option promises one filter for each load(). Where this test fails, Spark keeps the
    filters of queries apart, and the option is no longer needed.
    """
    given = options(broker, topic, **ASKED)
    whole = load(pushes, COLUMNS, given).count()
    frame = load(pushes, COLUMNS, given)
    part = frame.where("_partition = 0").count()

    assert 0 < part < whole
    assert frame.count() == part, "Spark reads the whole table again: filters need no promise"


@pytest.mark.long("what Spark does not do")
def test_streams_read_everything(
    pushes: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Spark passes no filters to a stream of a Python source: it applies them itself."""
    given = options(broker, topic, **ASKED)
    reader = pushes.readStream.format("upsert-kafka").schema(f"{COLUMNS}, _change_type STRING")
    query = (
        reader.options(**given).load().where("_partition = 0")
        .writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    run_to_end(query)

    assert sum(each.numInputRows for each in query.recentProgress) == 30
