"""Option `ddl`: what stands beside it wins, secrets in it stay secret, and what a reader and a sink make of it."""

from __future__ import annotations

import json
import logging

import pytest
from pyspark.sql.types import LongType, StringType, StructType

from pyspark_upsert_kafka import OptionError, SchemaError, UpsertKafkaDataSource, upsert_sink
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.ddl.spark_columns import columns_as_ddl
from pyspark_upsert_kafka.core.masking import masked
from pyspark_upsert_kafka.core.options.catalog import DDL_COLUMNS, EVENT_TIME, VIRTUAL
from pyspark_upsert_kafka.core.options.given import given_options
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_read

SECRET = "pl4nted"
UPSERT = """
CREATE TABLE users (
  id BIGINT NOT NULL,
  name STRING NOT NULL,
  at TIMESTAMP_LTZ(3) NOT NULL METADATA FROM 'timestamp' VIRTUAL,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'nowhere:9092',
  'properties.request.required.acks' = 'all',
  'key.format' = 'json', 'value.format' = 'json', 'value.json.fail-on-missing-field' = 'true'{more}
)
"""
APPEND = """
CREATE TABLE views (user_id BIGINT NOT NULL, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ('connector' = 'kafka', 'topic' = 'views', 'properties.bootstrap.servers' = 'nowhere:9092',
  'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '5', 'format' = 'json'{more})
"""


def upsert(more: str = "") -> str:
    """The statement of an upsert table with more options."""
    return UPSERT.format(more=more)


def append(more: str = "") -> str:
    """The statement of an append table with more options."""
    return APPEND.format(more=more)


@pytest.mark.parametrize(
    ("ddl", "beside", "gone"),
    [
        (upsert(), {"topic": "other"}, ()),
        (upsert(), {"topic-pattern": "o.*"}, ["topic"]),
        (upsert(), {"path": "other"}, ["topic"]),
        (upsert(), {"paths": '["other"]'}, ["topic"]),
        (upsert(), {"primary-key": "name"}, ()),
        (upsert(), {"key.fields": "name"}, ["primary-key"]),
        (upsert(), {"properties.acks": "1"}, ()),
        (upsert(), {"value.format": "avro"}, ["value.json.fail-on-missing-field"]),
        (upsert(), {"value.format": "json"}, ()),
        (upsert(), {"metadata.at": "none"}, ()),
        (upsert(), {"Value.JSON.fail-on-missing-field": "false"}, ()),
        (append(), {"scan.startup.mode": "earliest-offset"}, ["scan.startup.timestamp-millis"]),
        (append(), {"scan.startup.timestamp-millis": "7"}, ()),
        (append(), {"scan.startup.timestamp": "-1 h"}, ["scan.startup.timestamp-millis"]),
        (
            append(", 'scan.bounded.mode' = 'latest-offset'"),
            {"scan.bounded.timestamp": "-1 h"},
            ["scan.bounded.mode"],
        ),
        (
            append(", 'scan.bounded.timestamp' = '-1 h'"),
            {"scan.bounded.mode": "latest-offset"},
            ["scan.bounded.timestamp"],
        ),
        (append(", 'scan.bounded.timestamp' = '-1 h'"), {"scan.bounded.timestamp": "-2 h"}, ()),
        (append(), {"scan.bounded.mode": "latest-offset"}, ()),
    ],
)
def test_an_option_beside_it_wins(ddl: str, beside: dict[str, str], gone: list[str]) -> None:
    """It replaces that of the statement, and what meant something with that one only."""
    alone = given_options({"ddl": ddl})

    found = given_options({"DDL": ddl, **beside})

    expected = {**alone, **{name.lower(): value for name, value in beside.items()}}
    assert found == {name: value for name, value in expected.items() if name not in gone}


def test_the_place_of_an_unknown_option() -> None:
    """An option that is not known is told with line and column, if it is in the statement."""
    with pytest.raises(OptionError) as error:
        read_options(
            {"ddl": upsert(",\n  'sink.partitioner' = 'fixed'"), "zzz": "1"},
            format_options,
            stream=True,
        )

    assert "'sink.partitioner' (SQL, line 11, column 3), 'zzz'.\n" in str(error.value)


@pytest.mark.parametrize(
    "option",
    [
        "'scan.startup.mode' = 'earliest'",
        "'value.json.map-null-key.mode' = 'x'",
        "'metadata.name' = 'x'",
    ],
)
def test_the_place_of_a_wrong_value(option: str) -> None:
    """A value that is none of its option is told with line and column, unless it is given beside."""
    name, value = option.replace("'", "").split(" = ")

    with pytest.raises(OptionError, match=r" \(SQL, line 11, column 3\)$"):
        read_options({"ddl": upsert(f",\n  {option}")}, format_options, stream=True)
    with pytest.raises(
        OptionError, match=rf"Invalid value for option '{name}': .*, but is '{value}'\.$"
    ):
        read_options({"ddl": upsert(), name: value}, format_options, stream=True)


def test_references_are_looked_up_where_they_are_used() -> None:
    """A statement may hold references that mean nothing where it is read."""
    ddl = upsert(", 'properties.sasl.password' = '${env:NOT_SET_ANYWHERE}'")

    table = read_options({"ddl": ddl}, format_options, stream=True).table

    assert table.properties["sasl.password"] == "${env:NOT_SET_ANYWHERE}"


@pytest.mark.parametrize(
    ("more", "is_warned"),
    [
        ("", False),
        (f", 'properties.ssl.key.pem' = '{SECRET}'", True),
        (", 'properties.ssl.key.pem' = '${env:KEY}'", False),
        # Spark redacts a value that holds one of its words.
        (f", 'properties.sasl.password' = '{SECRET}'", False),
    ],
)
def test_the_warning_of_a_literal_secret(more: str, is_warned: bool) -> None:
    """It names the statement where Spark would show it with a secret in it, and never the secret."""
    for options in (
        read_options({"ddl": upsert(more)}, format_options, stream=True),
        write_options({"ddl": upsert(more)}, format_options),
    ):
        assert any("hold a secret: 'ddl'" in text for text in options.warnings) == is_warned
        assert SECRET not in repr(options)
        assert SECRET not in str(options.warnings)


def test_a_statement_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Neither with other options, nor by `upsert_sink`, which reads it at once and keeps what it says."""
    ddl = upsert(
        f", 'properties.ssl.key.pem' = '{SECRET}', 'sink.parallelism' = '2', 'sequence-by' = 'name'"
    )

    with caplog.at_level(logging.WARNING):
        sink = upsert_sink({"DDL": ddl, "topic": "other"})

    assert masked({"ddl": ddl}) == {"ddl": "***"}
    assert SECRET not in repr(sink)
    assert SECRET not in caplog.text
    assert "'topic': 'other'" in repr(sink)
    assert "CREATE TABLE" not in repr(sink.raw)
    assert sink.raw["sink.parallelism"] == "2"


@pytest.mark.parametrize(
    ("ddl", "beside", "columns"),
    [
        # In a changelog only the key keeps its NOT NULL, and there is a change column.
        (upsert(), {}, "id BIGINT NOT NULL, name STRING, at TIMESTAMP, _change_type STRING"),
        (upsert(), {"read.mode": "changelog"}, "id BIGINT NOT NULL, name STRING, at TIMESTAMP, _change_type STRING"),
        (upsert(), {"scan.deletes": "drop"}, "id BIGINT NOT NULL, name STRING, at TIMESTAMP"),
        (upsert(", 'scan.deletes' = 'drop'"), {}, "id BIGINT NOT NULL, name STRING, at TIMESTAMP"),
        (upsert(), {"read.mode": "snapshot"}, "id BIGINT NOT NULL, name STRING NOT NULL, at TIMESTAMP"),
        (upsert(), {"metadata.at": "none"}, "id BIGINT NOT NULL, name STRING, at TIMESTAMP, _change_type STRING"),
        # withWatermark takes no TIMESTAMP_NTZ.
        (append(), {}, "user_id BIGINT NOT NULL, at TIMESTAMP"),
    ],
)  # fmt: skip
def test_columns_of_a_reader(ddl: str, beside: dict[str, str], columns: str) -> None:
    """Without `.schema(...)` the columns are those of the statement; no broker is asked."""
    source = UpsertKafkaDataSource({"ddl": ddl, **beside})

    found = source.schema()

    assert columns_as_ddl(found) == columns
    source.streamReader(found) if "snapshot" not in beside.values() else source.reader(found)


def test_a_change_column_of_its_own() -> None:
    """A table that shows the change type already gets no second column for it."""
    ddl = upsert().replace(
        "name STRING NOT NULL", "op STRING METADATA FROM 'change-type', name STRING"
    )

    assert UpsertKafkaDataSource({"ddl": ddl}).schema().names == ["id", "op", "name", "at"]


def test_a_schema_beside_the_statement() -> None:
    """Columns that are given win: a part of them is read, and metadata that is left out is not missed."""
    schema = (
        StructType()
        .add("name", StringType())
        .add("_change_type", StringType())
        .add("id", LongType())
    )
    options = read_options({"ddl": upsert()}, format_options, stream=True)

    table = table_to_read(schema, options)

    assert [field.name for field in table.value] == ["name", "id"]
    assert table.key_names == ("id",)
    assert [column.key for column in table.metadata] == ["change-type"]


def test_a_sink_needs_a_key() -> None:
    """A table of the connector `kafka` is for reading, and says so."""
    for update_mode in (False, True):
        with pytest.raises(
            OptionError, match=r"a sink needs a primary key.*'connector' = 'kafka' means 'append'"
        ):
            write_options({"ddl": append()}, format_options, update_mode=update_mode)
    with pytest.raises(OptionError, match="a sink needs a primary key"):
        upsert_sink(ddl=append())


def test_an_upsert_table_without_a_key() -> None:
    """The rule is Flink's; the key may also stand beside the statement."""
    ddl = upsert().replace("PRIMARY KEY (id) NOT ENFORCED", "x INT")

    with pytest.raises(OptionError, match="tables require to define a PRIMARY KEY constraint"):
        UpsertKafkaDataSource({"ddl": ddl}).schema()
    assert given_options({"ddl": ddl, "primary-key": "x"})["primary-key"] == "x"


def test_a_metadata_column_of_another_type() -> None:
    """A type that cannot hold its metadata is refused, as in a schema."""
    ddl = upsert().replace("TIMESTAMP_LTZ(3) NOT NULL METADATA", "STRING METADATA")

    with pytest.raises(
        SchemaError, match="Column 'at' shows the metadata 'timestamp', which is TIMESTAMP or"
    ):
        UpsertKafkaDataSource({"ddl": ddl}).schema()


def test_a_virtual_column_and_that_of_the_watermark_are_marked() -> None:
    """Spark passes the columns on as text, and the tasks of a sink ask whether a column is virtual."""
    marks = {
        field.name: field.metadata
        for ddl in (
            upsert(),
            append()
            .replace("at TIMESTAMP", "seen TIMESTAMP")
            .replace("FOR at AS at", "FOR seen AS seen"),
        )
        for field in StructType.fromJson(json.loads(given_options({"ddl": ddl})[DDL_COLUMNS.name]))
    }

    assert marks == {
        "id": {},
        "name": {},
        "at": {VIRTUAL: True},
        "user_id": {},
        "seen": {EVENT_TIME: True},
    }
