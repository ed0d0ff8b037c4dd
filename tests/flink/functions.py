"""Each function that `run_sql` takes, evaluated by Flink and by Spark; run by ``make test-flink``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker
from tests.flink.function_cases import CASES, COLUMNS, ROWS
from tests.flink.sql_scripts import both, clause
from tests.spark.conftest import spark  # noqa: F401 - a fixture

_AT_ONCE = 60
"""Calls of one statement: Flink takes a few seconds for each statement, however many calls it has."""


def parts() -> Iterator[list[tuple[str, str]]]:
    """The calls with their types, some at once."""
    calls = [
        (call, kind)
        for by_type in CASES.values()
        for kind, calls in by_type.items()
        for call in calls
    ]
    for at in range(0, len(calls), _AT_ONCE):
        yield calls[at : at + _AT_ONCE]


def is_same(flink: object, other: object) -> bool:
    """Whether two values are the same, but for the last digit of a number with a point."""
    if isinstance(flink, float) and isinstance(other, float):
        return math.isclose(flink, other, rel_tol=1e-14)
    return flink == other


@pytest.fixture(scope="module")
def values(broker: Broker) -> str:
    """The table of values, as an append table."""
    topic = broker.topic()
    broker.produce(topic, *((None, json.dumps(row)) for row in ROWS))
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return f"CREATE TABLE vals ({columns}) {clause(broker, topic, is_append=True)};\n"


@pytest.mark.parametrize("calls", list(parts()), ids=lambda calls: f"{calls[0][0]} and on")
def test_functions_give_the_same(
    spark: SparkSession,  # noqa: F811
    broker: Broker,
    values: str,
    calls: list[tuple[str, str]],
) -> None:
    """Each call gives in Spark what it gives in Flink, for each of the rows."""
    columns = ", ".join(f"e{at} {kind}" for at, (_, kind) in enumerate(calls))
    script = (
        f"{values}CREATE TABLE results (id INT, {columns}, PRIMARY KEY (id) NOT ENFORCED) "
        f"{clause(broker, '{target}')};\nINSERT INTO results SELECT id, {', '.join(call for call, _ in calls)} FROM vals;\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert len(flinks) == len(ROWS)
    differing = {
        (key, call): (row[f"e{at}"], sparks[key][f"e{at}"])
        for key, row in flinks.items()
        for at, (call, _) in enumerate(calls)
        if not is_same(row[f"e{at}"], sparks[key][f"e{at}"])
    }
    assert differing == {}
