"""What planning a query, reading, and looking into a topic imports: Spark starts a process for each plan, and two for each micro-batch that is written."""

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

READ_TABLE = """
import sys
from pyspark_upsert_kafka import BrokerError, read_table
from tests.table_options import table_options

quickly = {"properties.default.api.timeout.ms": 1000, "properties.request.timeout.ms": 1000}
try:
    read_table(table_options(**{"properties.bootstrap.servers": "127.0.0.1:9"}), schema="id BIGINT", **quickly)
except BrokerError:
    from pyspark import SparkContext
    heavy = ("polars", "sqlglot", "rich", "pyspark_upsert_kafka.cli")
    print([name for name in heavy if name in sys.modules], SparkContext._gateway)
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


COMMIT = """
import sys
import pyspark.sql.worker.commit_data_source_write
import pyspark.sql.worker.python_streaming_sink_runner
from pyspark.sql.types import LongType, StringType, StructType
from pyspark_upsert_kafka import UpsertKafkaDataSource
from pyspark_upsert_kafka.connector.writing.writer import BatchWriter
from tests.table_options import table_options

schema = StructType().add("id", LongType()).add("name", StringType())
writer = UpsertKafkaDataSource(table_options()).streamWriter(schema, False)
writer.commit([], 0)
BatchWriter.commit(None, [])
print([name for name in ("numpy", "pyarrow", "confluent_kafka") if name in sys.modules])
"""

TASK = """
import sys
from pyspark.sql.types import LongType, StringType, StructType
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.table import table_to_read
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.connector.reading.task_reading import RangeDecoder
from tests.table_options import table_options

given = table_options(key__format="{format}", value__format="{format}")
options = read_options(given, format_options, stream=True)
schema = StructType().add("id", LongType()).add("name", StringType()).add("_change_type", StringType())
decoder = RangeDecoder(table_to_read(schema, options), options)
messages = RawBatch("t", 0, BytesColumn.of([{key}] * 100), BytesColumn.of([{value}] * 100), list(range(100)))
((_, rows),) = decoder.decode(messages, None)
print([column[99].as_py() for column in rows.columns], "polars" in sys.modules)
"""


@pytest.mark.parametrize(
    ("format_", "key", "value"),
    [
        ("avro", b"\2", b"\2\2\2a"),
        ("json", b'{"id": 1}', b'{"id": 1, "name": "a"}'),
    ],
)
def test_a_task_that_reads_imports_no_polars(format_: str, key: bytes, value: bytes) -> None:
    """A new worker has enough to import; polars is there for what few reading tasks need."""
    child = run(TASK.format(format=format_, key=key, value=value))

    assert child.code == 0, child.wrong
    assert child.said == "[1, 'a', 'upsert'] False\n"


@pytest.mark.parametrize("format_", ["avro", "csv", "json"])
def test_a_plan_imports_nothing_that_only_tasks_need(format_: str) -> None:
    """No broker is asked here, so no client either; what checks the columns needs none of the rest."""
    child = run(PROGRAM.format(format=format_, heavy=HEAVY))

    assert child.code == 0, child.wrong
    assert child.said == "[]\n"


def test_what_commits_a_write_imports_no_arrow() -> None:
    """Spark starts a process of its own for it, which imports neither Arrow nor NumPy, and our commit does nothing."""
    child = run(COMMIT)

    assert child.code == 0, child.wrong
    assert child.said == "[]\n"


def test_show_starts_no_jvm_and_imports_what_it_needs() -> None:
    """A person waits for the first row; pandas alone would cost as much as half of all the rest."""
    child = run(SHOW)

    assert child.code == 0, child.wrong
    assert child.said == "[] None\n"
    assert "127.0.0.1:9" in child.wrong


def test_read_table_starts_no_jvm_and_imports_what_it_needs() -> None:
    """Its first row is there in under a second, most of which are imports: pandas, too, where pyarrow finds it."""
    child = run(READ_TABLE)

    assert child.code == 0, child.wrong
    assert child.said == "[] None\n"
