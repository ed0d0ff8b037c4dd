"""Flink and Spark on the same topics; not part of ``make test`` but run by ``make test-flink``.

Flink writes rows of every type to a first topic. Spark reads them, writes them on to a second, and
deletes one. Flink reads the second as a table and writes it on to a third.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tests.conftest import Broker, options
from tests.spark.batches import load, save
from tests.spark.conftest import rows, spark  # noqa: F401 - a fixture
from tools.flink.flink import columns_of, run, table

KEYS = "k1 BIGINT, k2 DOUBLE, k3 STRING, k4 TIMESTAMP_NTZ, k5 DECIMAL(20,4), k6 FLOAT, k7 DATE"
SIMPLE = (
    "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e FLOAT, f DECIMAL(38,18), g BINARY, h DATE, i ARRAY<DOUBLE>, "
    "j STRUCT<x: INT, y: STRING>, k TIMESTAMP_NTZ"
)
NESTED = "l MAP<STRING, ARRAY<BIGINT>>, m ARRAY<STRUCT<n: FLOAT, o: STRUCT<p: DATE>>>"
DDL = {
    "json": f"{KEYS}, {SIMPLE}, {NESTED}, z TIMESTAMP",
    "csv": f"{KEYS}, {SIMPLE}, z TIMESTAMP",
    "avro": f"{KEYS}, {SIMPLE}, {NESTED}",
}
ROWS = [
    {"k1": 1, "k2": 1e20, "k3": 'a,b; "c" 😀', "k4": "2020-03-08 13:12:00", "k5": "12345678901.5",
     "k6": 1e10, "k7": "1969-12-31", "a": True, "b": -128, "c": -32768, "d": 2147483647, "e": 0.1,
     "f": "0.000000000000000001", "g": "AAH/", "h": "0001-01-01", "i": [1e-7, 0.1], "j": {"x": 1, "y": "é"},
     "k": "1969-12-31 23:59:59.999", "l": {"x": [1, None]}, "m": [{"n": 0.1, "o": {"p": "2024-02-29"}}],
     "z": "2020-03-08 13:12:00.120Z"},
    {"k1": 2, "k2": 1.5e-5, "k3": "b", "k4": "2020-03-08 13:12:00.1", "k5": "0", "k6": 1e-5, "k7": "2024-02-29",
     "i": [2.5], "j": {"x": 5, "y": "s"}},
    {"k1": 3, "k2": -12345678.9, "k3": "\u2028\t#", "k4": "9999-12-31 23:59:59.123", "k5": "-100", "k6": 16777216.0,
     "k7": "9999-12-31", "i": [1.0], "e": "NaN", "f": "-100", "j": {"x": 7, "y": "z"}},
]  # fmt: skip
DELETED = 2
# Without it Flink writes CSV that it cannot read: an empty field is no number. Nor can it read a NULL struct.
NULLS = {"csv": {"value.csv.null-literal": "NULL"}}


@pytest.fixture(scope="module")
def topics(
    spark: SparkSession,  # noqa: F811
    broker: Broker,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[str]]:
    """The three topics of each format."""
    made = {name: [broker.topic() for _ in range(3)] for name in DDL}
    source = tmp_path_factory.mktemp("rows") / "rows.json"
    source.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    columns = {
        name: columns_of(spark.createDataFrame([], ddl).schema, 3) for name, ddl in DDL.items()
    }
    run(
        statement
        for name, (first, _, _) in made.items()
        for statement in (
            file_table(f"{name} rows", columns[name], source),
            topic_table(f"{name} first", columns[name], broker, first, name),
            f"INSERT INTO `{name} first` SELECT * FROM `{name} rows`",
        )
    )
    for name, (first, second, _) in made.items():
        write_on(spark, broker, name, first, second)
    run(
        statement
        for name, (_, second, third) in made.items()
        for statement in (
            topic_table(f"{name} second", columns[name], broker, second, name),
            topic_table(f"{name} third", columns[name], broker, third, name),
            f"INSERT INTO `{name} third` SELECT * FROM `{name} second`",
        )
    )
    return made


def file_table(name: str, columns: str, file: Path) -> str:
    """Flink's table of a file of JSON objects."""
    given = {"connector": "filesystem", "path": file.as_uri(), "format": "json"}
    return table(name, columns, given)


def topic_table(name: str, columns: str, broker: Broker, topic: str, format_: str) -> str:
    """Flink's table of a topic."""
    given = {
        "connector": "upsert-kafka",
        "topic": topic,
        "properties.bootstrap.servers": broker.servers,
        "key.format": format_,
        "value.format": format_,
        "scan.bounded.mode": "latest-offset",
        **NULLS.get(format_, {}),
    }
    key = ", ".join(f"`{column.split()[0]}`" for column in KEYS.split(", "))
    return table(name, f"{columns}, PRIMARY KEY ({key}) NOT ENFORCED", given)


def given(broker: Broker, topic: str, name: str) -> dict[str, str]:
    """This project's options for the same table."""
    key = ",".join(column.split()[0] for column in KEYS.split(", "))
    formats = {"key.format": name, "value.format": name, **NULLS.get(name, {})}
    return options(broker, topic, primary_key=key, **formats)


def write_on(
    spark: SparkSession,  # noqa: F811
    broker: Broker,
    name: str,
    first: str,
    second: str,
) -> None:
    """Every change of the first topic to the second, then a delete."""
    read = {**given(broker, first, name), "read.mode": "changelog"}
    changes = load(spark, f"{DDL[name]}, _change_type STRING", read)
    save(changes, given(broker, second, name))
    one = changes.where(f"k1 = {DELETED}").withColumn("_change_type", F.lit("delete"))
    save(one, given(broker, second, name))


@pytest.mark.parametrize("name", DDL)
def test_messages_are_the_same(topics: dict[str, list[str]], broker: Broker, name: str) -> None:
    """What Spark writes on has the bytes that Flink wrote, key and value; so has the delete's key."""
    first, second, _ = topics[name]

    flinks = broker.pairs(first)

    assert len(flinks) == len(ROWS)
    assert broker.pairs(second) == [*flinks, (flinks[DELETED - 1][0], None)]


@pytest.mark.parametrize("name", DDL)
def test_flink_reads_the_table(topics: dict[str, list[str]], broker: Broker, name: str) -> None:
    """Flink reads every row that Spark wrote, deletes what it deleted, and writes the same bytes."""
    _, second, third = topics[name]

    assert dict(broker.pairs(third)) == dict(broker.pairs(second))


@pytest.mark.parametrize("name", DDL)
def test_both_tables_are_equal(
    spark: SparkSession,  # noqa: F811
    topics: dict[str, list[str]],
    broker: Broker,
    name: str,
) -> None:
    """The table that Flink made of Spark's is that of its own rows, but for the deleted one."""
    first, _, third = topics[name]

    made = rows(load(spark, DDL[name], given(broker, third, name)))
    wanted = load(spark, DDL[name], given(broker, first, name)).where(f"k1 <> {DELETED}")

    assert repr(made) == repr(rows(wanted))
    assert len(made) == len(ROWS) - 1
