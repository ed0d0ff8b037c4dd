"""Options of tables whose format says what it did to a row: which are needed, and which contradict each other."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from pyspark_upsert_kafka.connector.format_catalog import (
    FORMATS,
    check_read_sides,
    format_named,
    format_options,
)
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS, METADATA_OF_FORMATS
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import check_write_options, write_options
from pyspark_upsert_kafka.core.table import table_to_read
from tests.table_options import table_options


def read(*, stream: bool = True, **given: Any) -> Any:
    """The options of a read of Debezium's messages."""
    return read_options(
        table_options(**{"value.format": "debezium-json", **given}), format_options, stream=stream
    )


NO_KEY: dict[str, Any] = {"primary-key": None, "key.format": None}
NO_KEY_FORMAT: dict[str, Any] = {"key.format": None}


def test_every_cdc_format_is_one() -> None:
    """Names in the core are those of the formats that give changes."""
    give_changes = {name for name in FORMATS if format_named(name, "value").changes}
    assert {*CDC_FORMATS} == give_changes, "core/metadata.py: CDC_FORMATS"
    keys = {key for keys in CDC_FORMATS.values() for key in keys}
    assert keys == {*METADATA_OF_FORMATS}, "core/metadata.py: METADATA_OF_FORMATS"


def test_the_key_format_may_be_left_out() -> None:
    """The key columns then come from the row."""
    assert read(**NO_KEY_FORMAT).table.key_format is None
    assert read(**NO_KEY_FORMAT).table.primary_key == ("id",)
    assert read().table.key_format.name == "json"
    assert read(**NO_KEY_FORMAT, stream=False).mode == "snapshot"
    assert not read(**NO_KEY_FORMAT).shows_images


def test_without_a_primary_key_images_are_shown() -> None:
    """Only a CDC format can do without it."""
    assert read(**NO_KEY).shows_images
    assert read(**NO_KEY, **{"read.mode": "changelog"}, stream=False).shows_images
    with pytest.raises(OptionError, match="require to define a PRIMARY KEY"):
        read(**{"primary-key": None, "value.format": "json"})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"read.mode": "append", **NO_KEY},
            "'read.mode' = 'append' reads every message as a new row, but",
        ),
        ({"read.mode": "append"}, "'read.mode' = 'append' reads every message as a new row, but"),
        ({"stream": False, **NO_KEY}, "A snapshot needs a primary key: give 'primary-key'"),
        (
            {"primary-key": None},
            "'key.format' needs 'primary-key': without it the key of messages is not read",
        ),
        ({**NO_KEY, "scan.deletes": "drop"}, "'scan.deletes' = 'drop' needs 'primary-key'"),
        (
            {**NO_KEY, "scan.startup.mode": "full"},
            "'scan.startup.mode' = 'full' needs 'primary-key'",
        ),
        (
            {**NO_KEY_FORMAT, "key.json.ignore-parse-errors": "true"},
            "'key.json.ignore-parse-errors' needs 'key.format'",
        ),
        (
            {**NO_KEY_FORMAT, "value.fields-include": "EXCEPT_KEY"},
            "'EXCEPT_KEY' needs 'key.format'",
        ),
        ({"key.format": "debezium-json"}, "doesn't support 'debezium-json' as key format, because"),
        (
            {"value.debezium-json.fail-on-missing-field": "true"},
            "Unsupported options found for 'upsert-kafka'",
        ),
    ],
)
def test_what_contradicts(given: dict[str, Any], sentence: str) -> None:
    """Each contradiction has its sentence."""
    with pytest.raises(OptionError) as error:
        read(**given)
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", CDC_FORMATS)
def test_nothing_is_written_with_a_cdc_format(name: str) -> None:
    """A sink refuses it with what to use instead."""
    given = table_options(**{"value.format": name})
    for check in (write_options, check_write_options):
        with pytest.raises(
            OptionError,
            match=f"'value.format' = '{name}' is for reading only. Write the table with 'json'",
        ):
            check(given, format_options)
    assert read_options(given, format_options, stream=True).table.is_cdc


@pytest.mark.parametrize("name", ["json", "maxwell-json"])
def test_metadata_of_another_format(name: str) -> None:
    """It is refused when the query is planned, with what the format has."""
    given = table_options(**{"value.format": name, "metadata.at": "value.source.timestamp"})
    options = read_options(given, format_options, stream=True)
    columns = [
        StructField("id", LongType()),
        StructField("at", TimestampType()),
        StructField("_change_type", StringType()),
    ]
    table = table_to_read(StructType(columns), options)
    has = (
        "none of its own"
        if name == "json"
        else "'value.database', 'value.table', 'value.primary-key-columns', "
    )
    with pytest.raises(SchemaError) as error:
        check_read_sides(table, options)
    assert str(error.value).startswith(
        f"Column 'at' shows the metadata 'value.source.timestamp', which the format '{name}' does not have: it has {has}"
    )
