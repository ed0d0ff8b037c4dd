"""The options of a read: from texts to frozen values, and what contradicts what. A check raises OptionError.

With a primary key a topic in a CDC format, whose messages say what they did to a row, is an upsert table; without one its rows are
shown as before and after each change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark_upsert_kafka.core.error_modes import ERROR_MODES, modes_that
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.catalog import OPTIONS, TABLE_FIRST, FormatOptions
from pyspark_upsert_kafka.core.options.frozen_options import (
    Limits,
    Position,
    ReadMode,
    ReadOptions,
    TableOptions,
)
from pyspark_upsert_kafka.core.options.given import given_options
from pyspark_upsert_kafka.core.options.table import table_options


def read_options(raw: Mapping[str, str], formats: FormatOptions, *, stream: bool) -> ReadOptions:
    """The options of a read.

    Args:
        raw: Options by name; the case of names does not matter.
        formats: Looks up what options a format declares.
        stream: Whether this is a streaming read.

    Raises:
        OptionError: An option is unknown, missing, malformed or contradicts another.
    """
    given = given_options(raw)
    mode = _mode(given, stream=stream)
    value_format = OPTIONS["value.format"].read(given)
    is_cdc = value_format in CDC_FORMATS
    if is_cdc:
        _check_cdc_names(given, value_format, mode)
    elif mode == "append":
        _check_no_primary_key(given)
    may_lack_key = is_cdc or mode == "append"
    keyed = not (may_lack_key and {"primary-key", "key.fields"}.isdisjoint(given))
    end = "unbounded" if stream else "latest-offset"
    table, values = table_options(given, formats, keyed=keyed, end=end, is_cdc=is_cdc)
    _check(values, table, mode, stream=stream)
    mode_of_start = values["scan.startup.mode"]
    limits = Limits(
        values["maxOffsetsPerTrigger"],
        values["minOffsetsPerTrigger"],
        values["maxTriggerDelay"],
        values["scan.watermark.alignment.max-drift"],
        values["maxBytesPerTrigger"],
    )
    logs_errors = values["error-handling.mode"] == "log"
    return ReadOptions(
        table=table,
        mode=mode,
        emit_deletes=values["scan.deletes"] == "emit",
        start=Position(
            "earliest-offset" if mode_of_start == TABLE_FIRST else mode_of_start,
            values["scan.startup.timestamp-millis"],
            values["scan.startup.specific-offsets"] or (),
            values["properties.auto.offset.reset"],
        ),
        end=Position(
            values["scan.bounded.mode"],
            values["scan.bounded.timestamp-millis"],
            values["scan.bounded.specific-offsets"] or (),
        ),
        discovery_interval_s=values["scan.topic-partition-discovery.interval"],
        outage_timeout_s=values["scan.outage.timeout"] if stream else 0.0,
        min_partitions=values["minPartitions"],
        max_partitions=values["scan.parallelism"],
        snapshot_bytes=values["scan.snapshot.memory"],
        merges_partitions=values["scan.snapshot.merge-partitions"],
        limits=limits if stream else Limits(),
        fail_on_data_loss=values["failOnDataLoss"],
        error_mode=values["error-handling.mode"],
        dead_letter_topic=values["error-handling.log.target"] if logs_errors else None,
        read_committed=values["properties.isolation.level"] == "read_committed",
        warnings=given.warnings,
        table_first=mode_of_start == TABLE_FIRST,
        wanted_headers=values["scan.headers"] or (),
        record_names=values["scan.record-names"] or (),
        takes_filters=values["scan.filter-pushdown"] is not None,
        key_partitioner=values["scan.key-partitioner"],
        new_columns=values["scan.schema-changes"],
    )


def _mode(given: Mapping[str, str], *, stream: bool) -> ReadMode:
    mode = OPTIONS["read.mode"].read(given) or ("changelog" if stream else "snapshot")
    if mode == "snapshot" and stream:
        raise OptionError(
            "'read.mode' = 'snapshot' is for batch reads; a stream reads a 'changelog'."
        )
    return cast("ReadMode", mode)


def _check(values: Mapping[str, Any], table: TableOptions, mode: ReadMode, *, stream: bool) -> None:
    if table.is_cdc:
        _check_cdc(values, table)
    if values["scan.bounded.mode"] == "unbounded" and not stream:
        raise OptionError(
            "'scan.bounded.mode' = 'unbounded' is for streams; a batch read has an end."
        )
    if values["scan.startup.mode"] == TABLE_FIRST:
        _check_table_first(values, mode, stream=stream)
    if mode == "snapshot":
        _check_snapshot(values)
    _check_merging(values, mode)
    _check_key_partitioner(values, table, mode)
    _check_schema_changes(values, table, stream=stream)


def _check_no_primary_key(given: Mapping[str, str]) -> None:
    """An append source has no primary key; it reads columns from keys if both options say which and how."""
    reads_key = {"key.fields", "key.format"} <= given.keys()
    for name in given:
        if name == "primary-key" or (name.startswith("key.") and not reads_key):
            raise OptionError(
                "'read.mode' = 'append' reads every message as a row of its own and has no primary key: "
                f"leave out '{name}'. (To read columns from the message key too, give 'key.format' and "
                "'key.fields'.)"
            )


def _check_snapshot(values: Mapping[str, Any]) -> None:
    """A snapshot starts at the earliest offset, and has no rows of errors."""
    start = values["scan.startup.mode"]
    if start != "earliest-offset":
        raise OptionError(
            f"'scan.startup.mode' = '{start}' is not allowed with 'read.mode' = 'snapshot': the "
            "table is the result of all changes since the earliest offset. Use 'read.mode' = "
            "'changelog' to read from elsewhere."
        )
    error_mode = values["error-handling.mode"]
    if ERROR_MODES[error_mode].becomes == "column":
        raise OptionError(
            f"'error-handling.mode' = '{error_mode}' is for 'changelog' and 'append' reads."
        )


def _check_table_first(values: Mapping[str, Any], mode: ReadMode, *, stream: bool) -> None:
    """Only a stream of an upsert table can begin with the table, which has no rows of errors and no order in time."""
    start = f"'scan.startup.mode' = '{values['scan.startup.mode']}'"
    if not stream:
        raise OptionError(
            f"{start} is for streams, which begin with the table and go on with its changes. A batch read shows the table "
            "anyway ('read.mode' = 'snapshot', the default): leave out 'scan.startup.mode'."
        )
    if mode == "append":
        raise OptionError(
            f"{start} is not allowed with 'read.mode' = 'append': a topic that is read so is no table, since its messages "
            "have no primary key. Use 'earliest-offset' to read all of them."
        )
    if values["scan.watermark.alignment.max-drift"] is not None:
        raise OptionError(
            f"{start} is not allowed with 'scan.watermark.alignment.max-drift': the first batch is the whole table, "
            "whatever the times of its rows. Remove one of them."
        )
    error_mode = values["error-handling.mode"]
    if ERROR_MODES[error_mode].becomes == "column":
        raise OptionError(
            f"{start} is not allowed with 'error-handling.mode' = '{error_mode}': a message that cannot be decoded is no row of "
            f"a table. Use {modes_that('fail', 'skip')}."
        )


def _check_key_partitioner(values: Mapping[str, Any], table: TableOptions, mode: ReadMode) -> None:
    """Only of a table whose keys are read is it known what is hashed."""
    given = f"'scan.key-partitioner' = '{values['scan.key-partitioner']}'"
    if values["scan.key-partitioner"] is None:
        return
    if mode == "append":
        raise OptionError(
            f"{given} says in which partition the rows of a primary key are, and with 'read.mode' = 'append' there is "
            "none: leave it out."
        )
    if table.is_cdc:
        raise OptionError(
            f"{given} says in which partition the rows of a primary key are, but what writes "
            f"'{table.value_format.name}' need not choose the partition by the key of the row: leave it out."
        )


def _check_schema_changes(values: Mapping[str, Any], table: TableOptions, *, stream: bool) -> None:
    """Only a stream can lack columns that come later, and only if its columns are not declared."""
    if values["scan.schema-changes"] != "restart":
        return
    if not stream:
        raise OptionError(
            "'scan.schema-changes' = 'restart' is for streams. A batch read has the columns of the newest schema when it begins: "
            "leave the option out."
        )
    if table.ddl_columns is not None:
        raise OptionError(
            "'scan.schema-changes' = 'restart' is for columns that come from a schema: a query that is started again has those of "
            "'ddl' again. Leave one of them out."
        )


def _check_merging(values: Mapping[str, Any], mode: ReadMode) -> None:
    """Partitions are merged in a table only, by tasks each of which reads all of them."""
    if not values["scan.snapshot.merge-partitions"]:
        return
    if mode != "snapshot" and values["scan.startup.mode"] != "full":
        raise OptionError(
            "'scan.snapshot.merge-partitions' is for snapshots, and for 'scan.startup.mode' = 'full'. Of changes, last_changes "
            "finds the last one of each key."
        )
    if values["scan.parallelism"] is not None:
        raise OptionError(
            "'scan.parallelism' is not allowed with 'scan.snapshot.merge-partitions': 'minPartitions' is the number of tasks, "
            "each of which reads all partitions."
        )


def _check_cdc_names(given: Mapping[str, str], name: str, mode: ReadMode) -> None:
    """The read mode fits the format, and options of the key are given only where the key is read.

    Args:
        given: The options as given, names in lower case.
        name: The CDC format.
        mode: The read mode.
    """
    if mode == "append":
        raise OptionError(
            f"'read.mode' = 'append' reads every message as a new row, but messages of '{name}' update and delete rows: use "
            "'read.mode' = 'changelog'."
        )
    has_key = not {"primary-key", "key.fields"}.isdisjoint(given)
    if mode == "snapshot" and not has_key:
        raise OptionError(
            f"A snapshot needs a primary key: give 'primary-key', so that messages of '{name}' are changes of its rows, or read "
            "the rows before and after each change with 'read.mode' = 'changelog'."
        )
    needed = "key.format" if has_key else "primary-key"
    if needed in given:
        return
    for option in sorted(given):
        if option.startswith("key.") and option != "key.fields":
            raise OptionError(
                f"'{option}' needs '{needed}': without it the key of messages is not read, and the columns of '{name}' all come "
                "from the value."
            )


def _check_cdc(values: Mapping[str, Any], table: TableOptions) -> None:
    """Values that need a primary key, or the key of messages, where that is not read."""
    name = table.value_format.name
    if not table.primary_key and values["scan.deletes"] == "drop":
        raise OptionError(
            f"'scan.deletes' = 'drop' needs 'primary-key': without it '{name}' gives rows before and after each change, which "
            "only the column '_change_type' tells apart."
        )
    if not table.primary_key and values["scan.startup.mode"] == TABLE_FIRST:
        raise OptionError(
            f"'scan.startup.mode' = '{TABLE_FIRST}' needs 'primary-key': without it messages of '{name}' are no changes of a "
            "table with which a stream could begin. Use 'earliest-offset' to read all of them."
        )
    if table.primary_key and table.key_format is None and not table.value_holds_key:
        raise OptionError(
            f"'value.fields-include' = 'EXCEPT_KEY' needs 'key.format': without it the key columns of '{name}' come from the "
            "value."
        )
