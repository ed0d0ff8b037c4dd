"""What is refused when a query is planned, in which words; no broker is asked, as the address leads nowhere."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka import OptionError, SchemaError, UpsertKafkaDataSource
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from tests.table_options import table_options

SECRET = "pl4nted-s3cret"

SIDES = ["reader", "streamReader", "writer", "streamWriter"]
WRITERS = ["writer", "streamWriter"]

ROW = StructType().add("id", LongType()).add("name", StringType())
CHANGE = StructType([*ROW, *StructType().add("_change_type", StringType())])


def plan(side: str, schema: StructType, **more: object) -> None:
    """What Spark does first on a side, for a table with these options; changed ones as in `table_options`."""
    source = UpsertKafkaDataSource(table_options(**more))
    if side in WRITERS:
        getattr(source, side)(schema, overwrite=False)
    else:
        getattr(source, side)(schema)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"value.fields-inclde": "ALL"}, "Did you mean 'value.fields-include'?"),
        ({"topik": "t"}, "topik"),
        ({"value.json.ignore-parse-error": "true"}, "Did you mean 'value.json.ignore-parse-errors'?"),
        ({"value.fields-include": "SOME"}, "Invalid value for option 'value.fields-include'"),
        ({"primary-key": None}, "'upsert-kafka' tables require to define a PRIMARY KEY constraint."),
        ({"value.format": None, "key.format": None}, "key.format, value.format"),
        ({"key.format": "debezium-json"},
         "'upsert-kafka' connector doesn't support 'debezium-json' as key format, because"),
        ({"key.fields-prefix": "k_"},
         "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'."),
        ({"properties.partitioner": "random"}, "properties.partitioner"),
        ({"topic": None}, "Either 'topic' or 'topic-pattern' must be set."),
        # Those of the other side are checked too.
        ({"scan.deletes": "hide"}, "Invalid value for option 'scan.deletes'"),
        ({"sink.parallelism": "many"}, "Invalid value for option 'sink.parallelism'"),
    ],
)  # fmt: skip
def test_options_are_checked_on_both_sides(
    side: str, given: dict[str, str | None], words: str
) -> None:
    """A wrong option is an ``OptionError`` of a batch and of a stream, whoever reads or writes."""
    with pytest.raises(OptionError) as error:
        plan(side, CHANGE, **given)
    assert words in str(error.value)


@pytest.mark.parametrize("side", WRITERS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sink.parallelism": "2"}, ["Option 'sink.parallelism' works with upsert_sink only", "foreachBatch(upsert_sink("]),
        ({"sequence-by": "name"}, ["Option 'sequence-by' works with upsert_sink only", "foreachBatch(upsert_sink("]),
        ({"topic": None, "topic-pattern": "t.*"}, ["'topic-pattern' is for reading"]),
        ({"sink.buffer-flush.max-rows": "10"},
         ["'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set", "to enable sink buffer flushing."]),
    ],
)  # fmt: skip
def test_options_that_a_writer_cannot_have(
    side: str, given: dict[str, str], words: list[str]
) -> None:
    """They are refused with the remedy."""
    with pytest.raises(OptionError) as error:
        plan(side, ROW, **given)
    assert all(each in str(error.value) for each in words)


@pytest.mark.parametrize("side", ["reader", "streamReader"])
@pytest.mark.parametrize(
    ("columns", "given", "words"),
    [
        ("name STRING, _change_type STRING", {},
         "Could not find the field 'id' in the table schema for usage in the key format. A key field"),
        ("id ARRAY<BIGINT>, _change_type STRING", {}, "'id'"),
        ("id BIGINT, _partition STRING, _change_type STRING", {}, "Column '_partition'"),
        ("id BIGINT, h STRING, _change_type STRING", {"metadata.h": "headers"}, "Column 'h'"),
        ("id BIGINT, _change_type STRING", {"metadata.missing": "offset"}, "metadata.missing"),
        ("id BIGINT, name STRING", {"read.mode": "changelog"}, "_change_type"),
        ("id BIGINT, y INTERVAL YEAR TO MONTH, _change_type STRING", {}, "'y'"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_read(
    side: str, columns: str, given: dict[str, str], words: str
) -> None:
    """Columns, key and types that do not fit are a ``SchemaError``."""
    with pytest.raises(SchemaError) as error:
        plan(side, spark_columns(columns), **given)
    assert words in str(error.value)


def test_no_columns_and_no_such_metadata() -> None:
    """Without a schema the error says how to give one; an unknown metadata key names those there are."""
    with pytest.raises(SchemaError) as without:
        UpsertKafkaDataSource(table_options()).schema()
    assert ".schema(" in str(without.value)
    with pytest.raises(OptionError) as unknown:
        plan("reader", ROW, **{"metadata.name": "header"})
    assert "'header-list'" in str(unknown.value)


HEADERS = MapType(StringType(), BinaryType())
HEADER_LIST = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))


@pytest.mark.parametrize("side", WRITERS)
@pytest.mark.parametrize(
    ("schema", "given", "words"),
    [
        (StructType().add("name", StringType()), {}, "Could not find the field 'id'"),
        (StructType().add("id", LongType()).add("h", HEADERS).add("_headers", HEADER_LIST), {"metadata.h": "headers"},
         "The writable metadata is ambiguous."),
        (ROW, {"primary-key": "nowhere"}, "Could not find the field 'nowhere'"),
        (StructType().add("id", LongType()).add("_change_type", IntegerType()), {}, "Column '_change_type'"),
    ],
    ids=["no key", "two sources of headers", "another key", "kinds as numbers"],
)  # fmt: skip
def test_columns_that_cannot_be_written(
    side: str, schema: StructType, given: dict[str, str], words: str
) -> None:
    """A missing key column, two sources of headers, kinds of change that are no text."""
    with pytest.raises(SchemaError) as error:
        plan(side, schema, **given)
    assert words in str(error.value)


@pytest.mark.parametrize("type_", [YearMonthIntervalType(1, 1), NullType()])
def test_types_that_cannot_be_written(type_: DataType) -> None:
    """A batch refuses them when it is planned, a stream in its first batch."""
    with pytest.raises(SchemaError, match="'odd'"):
        plan("writer", StructType().add("id", LongType()).add("odd", type_))


@pytest.mark.parametrize("side", ["reader", "streamReader"])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2026-01-31T12:00:00", "has no zone: write 2026-01-31T12:00:00Z for UTC"),
        ("9998-01-31T12:00:00Z", "is in the future: it is "),
        ("10 min", "is in the future: 10 min ago is '-10 min'"),
        ("yesterday", "expected a time such as 2026-01-31T12:00:00Z, but is 'yesterday'"),
    ],
)
@pytest.mark.parametrize("name", ["scan.startup.timestamp", "scan.bounded.timestamp"])
def test_what_is_no_time_is_refused(side: str, name: str, text: str, sentence: str) -> None:
    """By the name of the option."""
    with pytest.raises(OptionError) as error:
        plan(side, CHANGE, **{name: text, "read.mode": "changelog"})
    assert sentence in str(error.value)
    assert name in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"topik": "t"},
        {"properties.sasl.username": "${env:NO_SUCH_VARIABLE}"},
        {"properties.security.protocol": "SASL_SOMETHING"},
        {
            "properties.sasl.password": None,
            "properties.sasl.jaas.config": f"com.example.Login required password='{SECRET}';",
        },
    ],
)
def test_no_refusal_shows_a_secret(given: dict[str, str | None]) -> None:
    """Whatever is wrong beside it, or with the text in which it stands."""
    with pytest.raises(OptionError) as error:
        plan("writer", CHANGE, **{"properties.sasl.password": SECRET, **given})
    assert SECRET not in str(error.value)
