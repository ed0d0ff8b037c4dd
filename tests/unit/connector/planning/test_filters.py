"""Which reader Spark gets, so that no read fails for its setting, and what the reader does with filters."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import (
    Condition,
    FilteredReader,
    _lowest,
    batch_reader,
    conditions,
)
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options
from tests.unit.children import run

needs_filters = pytest.mark.skipif(
    not hasattr(datasource, "Filter"), reason="filters need PySpark 4.1"
)

COLUMNS = StructType().add("id", LongType()).add("_partition", IntegerType())

READER = """
{imported}
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import LongType, StructType
from pyspark_upsert_kafka import UpsertKafkaDataSource
from tests.table_options import table_options

source = UpsertKafkaDataSource(table_options(**{options}))
reader = source.reader(StructType().add("id", LongType()))
print(reader.pushFilters.__func__ is not DataSourceReader.pushFilters)
"""

PUSHES, PLANS = (
    f"import pyspark.sql.worker.{name}"
    for name in ("data_source_pushdown_filters", "plan_data_source_read")
)
ASKED = {"scan.filter-pushdown": "one-filter-per-load"}


def options(**more: str) -> ReadOptions:
    """How a table is read that takes filters."""
    return read_options(table_options(**{**ASKED, **more}), format_options, stream=False)


@needs_filters
@pytest.mark.parametrize(
    ("imported", "asked", "expected"),
    [(PUSHES, ASKED, True), (PUSHES, {}, False), (PLANS, ASKED, False), ("", ASKED, False)],
)
def test_filters_are_taken_only_where_spark_gives_them(
    imported: str, asked: dict[str, str], expected: bool
) -> None:
    """Where its setting is off, Spark plans in another process, and there rejects a reader that could take filters."""
    child = run(READER.format(imported=imported, options=asked))

    assert child.code == 0, child.wrong
    assert child.said == f"{expected}\n"


def test_pyspark_without_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 4.0 cannot do what the option asks for."""
    monkeypatch.delattr(DataSourceReader, "pushFilters", raising=False)

    with pytest.raises(OptionError, match=r"'scan\.filter-pushdown' needs PySpark 4\.1 or newer"):
        batch_reader(COLUMNS, table_options(**ASKED))


@needs_filters
def test_spark_applies_every_filter_again() -> None:
    """All are returned, the very objects: Spark asks which of its own are among them. The reader can still be pickled."""
    reader = FilteredReader(table_to_read(COLUMNS, options()), options())
    given = [datasource.EqualTo(("_partition",), 1), datasource.IsNotNull(("id",))]

    returned = list(reader.pushFilters(given))

    assert [id(each) for each in returned] == [id(each) for each in given]
    assert pickle.loads(pickle.dumps(reader)) is not None


@needs_filters
def test_filters_as_conditions() -> None:
    """A filter on a field of a column says nothing of the column."""
    given = [
        datasource.EqualTo(("a",), 1),
        datasource.Not(datasource.In(("b",), (1, None))),
        datasource.IsNull(("c",)),
        datasource.EqualTo(("d", "e"), 1),
        datasource.StringContains(("f",), "x"),
    ]

    assert conditions(given) == (
        Condition("a", "EqualTo", (1,)),
        Condition("b", "In", (1, None), is_negated=True),
        Condition("c", "IsNull"),
        Condition("f", "StringContains", ("x",)),
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {"read.mode": "append", "primary-key": None, "key.format": None},
            "with 'read.mode' = 'append' there is none: leave it out.",
        ),
        (
            {"value.format": "debezium-json"},
            "what writes 'debezium-json' need not choose the partition by the key of the row: leave it out.",
        ),
        ({"scan.key-partitioner": "crc32"}, "crc32"),
    ],
)
def test_a_partitioner_of_keys_that_are_none(more: dict[str, str], why: str) -> None:
    """The option is about keys whose bytes choose the partition."""
    with pytest.raises(OptionError, match=r"'scan\.key-partitioner'") as error:
        options(**{"scan.key-partitioner": "murmur2", **more})
    assert why in str(error.value)


def test_a_column_cannot_be_key_and_metadata() -> None:
    """So a filter on a column means one of them."""
    with pytest.raises(SchemaError, match="A key field must be a regular, physical column"):
        table_to_read(COLUMNS, options(**{"primary-key": "id,_partition"}))
    columns = StructType().add("id", LongType()).add("name", StringType())
    with pytest.raises(SchemaError, match="A key field must be a regular, physical column"):
        table_to_read(columns, options(**{"primary-key": "id", "metadata.id": "offset"}))


def test_where_partitions_were_added_the_lowest_of_each_topic_tells() -> None:
    """It holds the oldest keys of all partitions that are there, so that keys which belong to others now show up in it."""
    ranges = [
        Range(topic, at, 0, 9) for topic, at in (("t", 2), ("t", 1), ("u", 0), ("t", 3), ("u", 4))
    ]

    assert {(each.topic, each.partition) for each in _lowest(ranges)} == {("t", 1), ("u", 0)}
