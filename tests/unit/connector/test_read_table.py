"""`read_table`: what is refused before any broker is asked, and in which words."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructType

from pyspark_upsert_kafka import BrokerError, OptionError, SchemaError, read_table
from pyspark_upsert_kafka.core.ddl.definition import TableDefinition, table_definition
from pyspark_upsert_kafka.core.options import given as given_module
from tests.table_options import table_options

COLUMNS = "id BIGINT, name STRING"
NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)

APPEND = """
CREATE TABLE t (id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'nowhere:9092', 'format' = 'json')
"""

TABLE = """
CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = '${env:NO_SUCH_VARIABLE}',
  'key.format' = 'json', 'value.format' = 'json')
"""


def refused(given: dict[str, Any] | None = None, **arguments: Any) -> str:
    """What is said of a call; the options are those of `table_options` with some more."""
    with pytest.raises((OptionError, SchemaError)) as error:
        read_table(table_options(**given or {}), **{"schema": COLUMNS, **arguments})
    return str(error.value)


@pytest.mark.parametrize("mode", ["changelog", "append"])
def test_other_modes_are_refused(mode: str) -> None:
    """The error says what to use, and names no other option that is not wrong."""
    said = refused({"read.mode": mode})

    assert f"read_table gives the table only, and 'read.mode' = '{mode}' means every" in said
    assert "spark.read.format('upsert-kafka')" in said
    assert f"show --{mode} --output json" in said


def test_a_table_of_plain_messages_is_refused() -> None:
    """A DDL with 'connector' = 'kafka' means the mode 'append'."""
    with pytest.raises(OptionError, match=r"'read\.mode' = 'append' means every message as a row"):
        read_table(ddl=APPEND)


def test_a_statement_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode, columns and options are all taken of what was read of it."""
    parsed: list[str] = []

    def counted(statement: str) -> TableDefinition:
        parsed.append(statement)
        return table_definition(statement)

    monkeypatch.setattr(given_module, "table_definition", counted)
    with pytest.raises(OptionError, match="which is not set where it is used"):
        read_table(ddl=TABLE)
    assert len(parsed) == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"primry-key": "id"}, "Did you mean 'primary-key'?"),
        ({"read.mode": "table"}, "read.mode"),
        ({"primary-key": None}, "require to define a PRIMARY KEY"),
        ({"value.format": None}, "value.format"),
        ({"topic": None}, "Either 'topic' or 'topic-pattern' must be set"),
        ({"error-handling.mode": "column"}, "is for 'changelog' and 'append' reads"),
        ({"scan.startup.mode": "latest-offset"}, "is not allowed with 'read.mode' = 'snapshot'"),
        ({"scan.startup.mode": "full"}, "A batch read shows the table anyway"),
        ({"scan.bounded.mode": "unbounded"}, "a batch read has an end"),
        ({"key.format": None, "primary-key": None, "value.format": "debezium-json"},
         "A snapshot needs a primary key"),
    ],
)  # fmt: skip
def test_options_that_are_wrong(given: dict[str, Any], sentence: str) -> None:
    """They are refused by the call, as Spark's reader refuses them."""
    assert sentence in refused(given)


def test_no_options() -> None:
    """The error names those that are needed."""
    for call in (read_table, lambda: read_table({})):
        with pytest.raises(OptionError, match="read_table has no options: give 'topic', "):
            call()


def test_an_option_without_a_value() -> None:
    """None is no value: a variable that was not set is told by the name of its option."""
    with pytest.raises(OptionError, match="Option 'topic' is None"):
        read_table({"topic": None}, schema=COLUMNS)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (None, "The table has no schema"),
        (None, "schema='id BIGINT, name STRING' for read_table"),
        ("id BIGNT", "The columns cannot be read at character 4: expected a type of Spark"),
        ("", "expected a column's name, but found the end"),
        ("name STRING", "Could not find the field 'id' in the table schema"),
        ("id BIGINT, id INT", "The schema has the column 'id' more than once"),
        (f"{COLUMNS}, _offset STRING", "_offset"),
        (["id", "name"], "schema is of the type list: write the columns as a text"),
        (StructType().add("name", LongType()), "Could not find the field 'id'"),
    ],
)
def test_columns_that_are_wrong(schema: Any, sentence: str) -> None:
    """They are missing, malformed, or do not fit."""
    assert sentence in refused(schema=schema)


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        ("2026-01-31T12:00:00", "at: '2026-01-31T12:00:00' has no zone: write 2026-01-31T12:00:00Z"),
        ("yesterday", "at: expected a time such as 2026-01-31T12:00:00Z, but is 'yesterday'."),
        ("", "at: expected a time such as"),
        ("+1 d", "at: '+1 d' is in the future: 1 d ago is '-1 d'."),
        (datetime(2026, 1, 31), "has no zone: give it one, as in tzinfo=timezone.utc."),  # noqa: DTZ001
        (datetime(1969, 1, 31, tzinfo=timezone.utc), "at: expected a time from 1970 on"),
        ("9999-01-01T00:00:00Z", "at: 9999-01-01T00:00:00Z is in the future. For the table as of now, leave at out."),
        (date(2026, 1, 31), "at is of the type date: give a datetime with a zone"),
        (1_769_860_800_000, "at is of the type int: give a datetime with a zone"),
    ],
)  # fmt: skip
def test_times_that_are_wrong(at: Any, sentence: str) -> None:
    """A time has a zone, and has come; a number could be of seconds or of milliseconds."""
    assert sentence in refused(at=at)


@pytest.mark.parametrize(
    "bounded",
    [
        {"scan.bounded.mode": "latest-offset"},
        {"Scan.Bounded.Timestamp-Millis": "1"},
    ],
)
def test_two_ends(bounded: dict[str, str]) -> None:
    """One of them would be forgotten."""
    (name,) = bounded

    assert refused(bounded, at=NOON) == (
        f"at and '{name}' both say where the table ends: leave one out."
    )


def test_options_as_arguments_and_of_any_type() -> None:
    """They are texts for the connector, as Spark makes them; what is no text is told as the text that it becomes."""
    with pytest.raises(OptionError, match=re.escape("'minPartitions'")):
        read_table(table_options(), schema=COLUMNS, minPartitions=0.5)
    with pytest.raises(BrokerError, match="nowhere:9092"):
        read_table(
            table_options(),
            schema=COLUMNS,
            failOnDataLoss=False,
            **{"properties.default.api.timeout.ms": 1000, "properties.request.timeout.ms": 500},
        )
