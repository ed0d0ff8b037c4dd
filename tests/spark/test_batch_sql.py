"""The table in SQL: CREATE TABLE with options in the query, and temporary views."""

from __future__ import annotations

import uuid

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import UpsertKafkaDataSource
from tests.conftest import Broker, options
from tests.spark.batches import clause, load, refused
from tests.spark.conftest import rows


@pytest.fixture
def name() -> str:
    """A table's or view's name that no other test has."""
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.mark.connect
def test_create_table_select_with_and_insert_with(
    spark: SparkSession, broker: Broker, name: str
) -> None:
    """A table created once is read as it is now and written with options in the query."""
    given = clause(options(broker, broker.topic(2)))
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, name STRING) USING `upsert-kafka`")
    try:
        spark.sql(f"INSERT INTO {name} WITH {given} VALUES (1, 'a'), (2, 'b')")
        select = f"SELECT id, name FROM {name} WITH {given}"
        assert rows(spark.sql(select)) == [(1, "a"), (2, "b")]
        spark.sql(f"INSERT INTO {name} WITH {given} SELECT 2L, 'c'")
        assert rows(spark.sql(select)) == [(1, "a"), (2, "c")]
        joined = (
            f"SELECT a.id, b.name FROM {name} WITH {given} AS a JOIN ({select}) AS b USING (id)"
        )
        assert rows(spark.sql(joined)) == [(1, "a"), (2, "c")]
        text = refused(lambda: spark.sql(f"INSERT OVERWRITE {name} WITH {given} VALUES (1, 'x')"))
        assert "OptionError: Mode 'overwrite' is not possible" in text
        text = refused(lambda: spark.sql(f"INSERT INTO {name} WITH {given} VALUES (NULL, 'x')"))
        assert "NOT_NULL_ASSERT_VIOLATION" in text or "NOT NULL" in text
        text = refused(lambda: spark.sql(f"SELECT * FROM {name} WITH ('topik' = 'x')").collect())
        assert "OptionError: " in text
        assert "topik" in text
        for without in (f"SELECT * FROM {name}", f"INSERT INTO {name} VALUES (3, 'd')"):
            text = refused(lambda without=without: spark.sql(without).collect())
            assert "OptionError: " in text
            assert "CREATE TABLE" in text
            assert "WITH (" in text
        assert rows(spark.sql(select)) == [(1, "a"), (2, "c")]
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_changes_and_metadata_in_sql(spark: SparkSession, broker: Broker, name: str) -> None:
    """The change column and metadata columns are columns in SQL too."""
    topic = broker.topic(1)
    given = options(broker, topic)
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v VARCHAR(5), _change_type STRING, _offset BIGINT) "
        "USING `upsert-kafka`"
    )
    try:
        spark.sql(
            f"INSERT INTO {name} WITH {clause(given)} SELECT /*+ COALESCE(1) */ * FROM VALUES "
            "(1, 'a', '+I', NULL), (2, 'b', '+I', 77), (1, NULL, '-D', NULL)"
        )
        changelog = clause({**given, "read.mode": "changelog"})
        assert rows(spark.sql(f"SELECT * FROM {name} WITH {changelog}")) == [
            (1, "a", "upsert", 0), (1, None, "delete", 2), (2, "b", "upsert", 1),
        ]  # fmt: skip
        counted = f"SELECT count(*) FROM {name} WITH {clause(given)}"
        assert rows(spark.sql(counted)) == [(1,)]
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_temporary_views_with_options(spark: SparkSession, broker: Broker, name: str) -> None:
    """A view with OPTIONS is read and written; it shows the table as of its first use."""
    given = clause(options(broker, broker.topic(1)))
    spark.sql(
        f"CREATE TEMPORARY VIEW {name} (id BIGINT, name STRING) USING `upsert-kafka` OPTIONS {given}"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    assert rows(spark.table(name)) == [(1, "a")]
    assert rows(spark.sql(f"SELECT name FROM {name} WHERE id = 1")) == [("a",)]
    spark.catalog.dropTempView(name)
    spark.sql(
        f"CREATE TEMPORARY VIEW {name} (id BIGINT) USING `upsert-kafka` OPTIONS ('topik' = 'x')"
    )
    text = refused(spark.table(name).collect)
    assert "OptionError: " in text
    assert "topik" in text
    spark.catalog.dropTempView(name)


def test_with_and_without_registering(spark: SparkSession, broker: Broker) -> None:
    """Spark finds the format by itself, in any case of its name; registering it does the same.

    PySpark 4.0 registers no name that it has found by itself already, and says so. The session is another one, since all other tests
    are of what Spark has found.
    """
    spark, given = spark.newSession(), options(broker, broker.topic(1))
    reader = spark.read.format("Upsert-KAFKA").schema("id BIGINT").options(**given)
    assert rows(reader.load()) == []
    if spark.version.startswith("4.0"):
        text = refused(lambda: spark.dataSource.register(UpsertKafkaDataSource))
        assert "Data source 'upsert-kafka' already exists" in text
    else:
        spark.dataSource.register(UpsertKafkaDataSource)
    assert rows(load(spark, "id BIGINT", given)) == []
    assert UpsertKafkaDataSource.name() == "upsert-kafka"


def test_the_table_reader_and_writer_of_the_api(
    spark: SparkSession, broker: Broker, name: str
) -> None:
    """``read.options(...).table`` and ``writeTo`` with options work on a created table."""
    given = options(broker, broker.topic(1))
    spark.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING `upsert-kafka`")
    try:
        spark.sql("SELECT 5L AS id, 'e' AS name").writeTo(name).options(**given).append()
        assert rows(spark.read.options(**given).table(name)) == [(5, "e")]
    finally:
        spark.sql(f"DROP TABLE {name}")
