"""The options of a read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.catalog import OPTIONS, TABLE_FIRST
from pyspark_upsert_kafka.core.options.cdc_checks import check_names, check_values
from pyspark_upsert_kafka.core.options.checks import (
    check_buffer,
    check_dead_letter_topic,
    check_key_partitioner,
    check_limits,
    check_merging,
    check_no_primary_key,
    check_position,
    check_snapshot,
    check_table_first,
)
from pyspark_upsert_kafka.core.options.given import given_options, secret_warnings
from pyspark_upsert_kafka.core.options.names import FormatOptions, option_values
from pyspark_upsert_kafka.core.options.table import table_options
from pyspark_upsert_kafka.core.options.times import with_times
from pyspark_upsert_kafka.core.options.values import (
    Limits,
    Position,
    ReadMode,
    ReadOptions,
    TableOptions,
)


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
        check_names(given, value_format, mode)
    elif mode == "append":
        check_no_primary_key(given)
    may_lack_key = is_cdc or mode == "append"
    keyed = not (may_lack_key and {"primary-key", "key.fields"}.isdisjoint(given))
    values = option_values(given, formats, keyed=keyed and not is_cdc)
    values = with_times(given, values, now_ms())
    table = table_options(given, values, formats, keyed=keyed)
    end = _end(values, stream=stream)
    _check(values, table, mode, end, stream=stream)
    logs_errors = values["error-handling.mode"] == "log"
    return ReadOptions(
        table=table,
        mode=mode,
        emit_deletes=values["scan.deletes"] == "emit",
        start=_start(values),
        end=end,
        discovery_interval_s=values["scan.topic-partition-discovery.interval"],
        outage_timeout_s=values["scan.outage.timeout"] if stream else 0.0,
        min_partitions=values["minPartitions"],
        max_partitions=values["scan.parallelism"],
        snapshot_bytes=values["scan.snapshot.memory"],
        merges_partitions=values["scan.snapshot.merge-partitions"],
        limits=_limits(values) if stream else Limits(),
        fail_on_data_loss=values["failOnDataLoss"],
        error_mode=values["error-handling.mode"],
        dead_letter_topic=values["error-handling.log.target"] if logs_errors else None,
        read_committed=values["properties.isolation.level"] == "read_committed",
        warnings=tuple(secret_warnings(raw)),
        table_first=values["scan.startup.mode"] == TABLE_FIRST,
        headers=values["scan.headers"] or (),
        takes_filters=values["scan.filter-pushdown"] is not None,
        key_partitioner=values["scan.key-partitioner"],
    )


def _mode(given: Mapping[str, str], *, stream: bool) -> ReadMode:
    mode = OPTIONS["read.mode"].read(given) or ("changelog" if stream else "snapshot")
    if mode == "snapshot" and stream:
        raise OptionError(
            "'read.mode' = 'snapshot' is for batch reads; a stream reads a 'changelog'."
        )
    return cast("ReadMode", mode)


def _check(
    values: Mapping[str, Any], table: TableOptions, mode: ReadMode, end: Position, *, stream: bool
) -> None:
    check_buffer(values)
    if table.is_cdc:
        check_values(values, table)
    check_position(values, table, "startup", values["scan.startup.mode"])
    check_position(values, table, "bounded", end.mode)
    if end.mode == "unbounded" and not stream:
        raise OptionError(
            "'scan.bounded.mode' = 'unbounded' is for streams; a batch read has an end."
        )
    if values["scan.startup.mode"] == TABLE_FIRST:
        check_table_first(values, mode, stream=stream)
    if mode == "snapshot":
        check_snapshot(values)
    check_merging(values, mode)
    check_key_partitioner(values, table, mode)
    check_limits(values)
    check_dead_letter_topic(values, table.topics)


def _start(values: Mapping[str, Any]) -> Position:
    mode = values["scan.startup.mode"]
    return Position(
        "earliest-offset" if mode == TABLE_FIRST else mode,
        values["scan.startup.timestamp-millis"],
        values["scan.startup.specific-offsets"] or (),
        values["properties.auto.offset.reset"],
    )


def _end(values: Mapping[str, Any], *, stream: bool) -> Position:
    return Position(
        values["scan.bounded.mode"] or ("unbounded" if stream else "latest-offset"),
        values["scan.bounded.timestamp-millis"],
        values["scan.bounded.specific-offsets"] or (),
    )


def _limits(values: Mapping[str, Any]) -> Limits:
    return Limits(
        values["maxOffsetsPerTrigger"],
        values["minOffsetsPerTrigger"],
        values["maxTriggerDelay"],
        values["scan.watermark.alignment.max-drift"],
        values["maxBytesPerTrigger"],
    )
