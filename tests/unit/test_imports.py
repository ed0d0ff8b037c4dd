"""What planning a query, and looking into a topic, imports: Spark starts a process for each plan, and two for each micro-batch that is written."""

from __future__ import annotations

import pytest

from tests.unit.children import run

HEAVY = (
    "polars",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "orjson",
    "confluent_kafka",
    "kafka",
)

SHOW = """
import runpy, sys
sys.argv = [
    "show", "show", "--topic", "t", "--bootstrap-servers", "127.0.0.1:9", "--schema", "id BIGINT",
    "--primary-key", "id", "--option", "properties.default.api.timeout.ms=1000",
    "--option", "properties.request.timeout.ms=1000",
]
try:
    runpy.run_module("pyspark_upsert_kafka", run_name="__main__")
except SystemExit:
    from pyspark import SparkContext
    print([name for name in ("pandas", "sqlglot", "rich") if name in sys.modules], SparkContext._gateway)
"""

PROGRAM = """
import sys
from pyspark.sql.types import LongType, StringType, StructType
from pyspark_upsert_kafka import UpsertKafkaDataSource
from tests.table_options import table_options

schema = StructType().add("id", LongType()).add("name", StringType())
changes = StructType(schema.fields).add("_change_type", StringType())
options = table_options(key__format="{format}", value__format="{format}")
source = UpsertKafkaDataSource(options)
source.reader(schema), source.streamReader(changes), source.streamWriter(changes, False)
print([name for name in {heavy} if name in sys.modules])
"""


@pytest.mark.parametrize("format_", ["avro", "csv", "json"])
def test_a_plan_imports_nothing_that_only_tasks_need(format_: str) -> None:
    """No broker is asked here, so no client either; what checks the columns needs none of the rest."""
    child = run(PROGRAM.format(format=format_, heavy=HEAVY))

    assert child.code == 0, child.wrong
    assert child.said == "[]\n"


def test_show_starts_no_jvm_and_imports_what_it_needs() -> None:
    """A person waits for the first row; pandas alone would cost as much as half of all the rest."""
    child = run(SHOW)

    assert child.code == 0, child.wrong
    assert child.said == "[] None\n"
    assert "127.0.0.1:9" in child.wrong
