"""The law of `merge_sink`, for the plan of each batch and the conditions and values of its MERGE.

The MERGE itself is a join here, which Spark runs without Iceberg and Delta Lake; ``lakehouse/test_histories.py`` has real tables.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from pyspark_upsert_kafka import merge_sink
from pyspark_upsert_kafka.connector.lakehouse.changes_by_key import changes_by_key
from pyspark_upsert_kafka.connector.lakehouse.merge_sink import _Batch
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from tests.merge_law import (
    COLUMNS,
    LAWS,
    Histories,
    Merging,
    Row,
    Way,
    by_history,
    check_batches,
    check_order,
    check_partitions,
)

CLAUSE = re.compile(
    r"WHEN (NOT MATCHED BY SOURCE|NOT MATCHED|MATCHED)(?: AND (.*?))? THEN "
    r"(?:(DELETE)|UPDATE SET (.*)|INSERT \((.*)\) VALUES \((.*)\))$"
)


def merged(table: DataFrame, statement: str, changes: str) -> DataFrame:
    """What a MERGE makes of a table."""
    table.createOrReplaceTempView("merged_table")
    begin, *lines = statement.splitlines()
    on = begin.split(" ON ", 1)[1]
    clauses = [clause.groups() for clause in map(CLAUSE.match, lines) if clause]
    assert len(clauses) == len(lines)
    there = {"MATCHED": "t.here AND s.here", "NOT MATCHED": "s.here AND t.here IS NULL", "NOT MATCHED BY SOURCE": "t.here AND s.here IS NULL"}  # fmt: skip
    cases: dict[str, list[str]] = {name: [] for name in [*table.columns, "stays"]}
    for which, condition, deletes, updates, names, values in clauses:
        when = f"WHEN {there[which]} AND {condition or 'true'} THEN"
        new = {name: f"t.`{name}`" for name in table.columns}
        if updates:
            new |= dict(
                re.match(r"t\.`(.*?)` = (.*)", each).groups()  # type: ignore[union-attr]
                for each in re.split(r", (?=t\.`[^`]*` = )", updates)
            )
        elif names:
            new = dict.fromkeys(table.columns, "NULL")
            new |= dict(zip(names.replace("`", "").split(", "), values.split(", "), strict=True))
        for name, value in {**new, "stays": str(not deletes)}.items():
            cases[name].append(f"{when} {value}")
    columns = [
        f"CASE {' '.join(when)} ELSE {'t.here' if name == 'stays' else f't.`{name}`'} END AS `{name}`"
        for name, when in cases.items()
    ]
    found = table.sparkSession.sql(
        f"SELECT {', '.join(columns)} FROM (SELECT *, true AS here FROM merged_table) AS t "
        f"FULL OUTER JOIN (SELECT *, true AS here FROM {changes}) AS s ON {on}"
    )
    return found.where("stays").drop("stays")


@pytest.fixture
def merging(spark: SparkSession) -> Iterator[Merging]:
    """Merges batches in a session that compiles no plans, which takes longer than running these."""
    changed = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield lambda way, batches: table_after(spark, way, batches)
    for name, value in before.items():
        spark.conf.set(name, str(value))


def table_after(spark: SparkSession, way: Way, batches: list[list[Row]]) -> Histories:
    """The rows of each history after some batches, merged as `merge_sink` does it."""
    sink = merge_sink("t", **way.arguments)
    schema = spark_columns(way.table)
    stored = {name: schema[name] for name in spark_columns(COLUMNS).names if name in schema.names}
    rows: list[Any] = []
    for batch in batches:
        given_ = spark.createDataFrame(batch, COLUMNS)
        of = _Batch.of(given_, sink.settings, is_table=False)
        changes = changes_by_key(given_, of.columns, sink.settings, of.flags, is_table=False)
        changes.createOrReplaceTempView("merged_changes")
        statement = of._merge("merged_changes", stored, schema).statement()
        rows = merged(spark.createDataFrame(rows, schema), statement, "merged_changes").collect()
    return by_history(row.asDict() for row in rows)


@pytest.mark.parametrize("check", [check_batches, check_partitions, check_order])
def test_the_table_is_that_of_a_model(merging: Merging, check: Callable[..., None]) -> None:
    """Whatever the batches, the partitions and the order of the changes: of each law the first way."""
    way = next(way for each, way in LAWS if each is check)

    check(merging, way, random.Random(1))


@pytest.mark.long(reason="each way is a dozen plans of Spark")
@pytest.mark.timeout(3600)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(law=st.sampled_from(LAWS), seed=st.integers(0, 2**32))
@example(law=LAWS[1], seed=1)
def test_the_table_is_that_of_a_model_in_every_way(
    merging: Merging, law: tuple[Callable[..., None], Way], seed: int
) -> None:
    """Each law, with each way to merge for which it holds."""
    check, way = law

    check(merging, way, random.Random(seed))
