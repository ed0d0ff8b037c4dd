"""`read_table`: the table in a topic as Arrow, in this process, without a Spark session and without Java."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.batch_reader import ranges_of_batch
from pyspark_upsert_kafka.connector.planning.first_look import warn_of_no_rows
from pyspark_upsert_kafka.connector.read_request import checked_request, columns_of, past_ms
from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader, read_with
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.given import given_options, option_texts
from pyspark_upsert_kafka.core.options.read import read_options

_OTHER_MODES = {
    "changelog": "every change as a row",
    "append": "every message as a row (in a DDL: 'connector' = 'kafka')",
}


def read_table(
    options: Mapping[str, Any] | None = None,
    *,
    schema: str | StructType | None = None,
    at: datetime | str | None = None,
    **more: Any,
) -> pa.RecordBatchReader:
    """The table in a topic as Arrow: as of now, or of a past time.

    It needs neither Java nor a Spark session. Options, columns, rows and errors are those of
    ``spark.read.format("upsert-kafka")``. What is read is decided by the call; rows are read when they are asked for. At any time
    one partition's part of the table is held in memory, or with ``minPartitions`` a piece of it.

    Args:
        options: The options, by name.
        schema: The columns, as in ``"id BIGINT, name STRING"``; without it they come from ``ddl`` or the schema of a format.
        at: The table as it was before this time (the messages' timestamps count): a ``datetime`` with a zone, a text such as
            ``"2026-01-31T12:00:00Z"``, or how long ago it was: ``"-1 d"``.
        **more: More options, as keyword arguments.

    Returns:
        The rows, once: ``read_all()`` makes a ``pyarrow.Table`` of them, ``read_pandas()`` a DataFrame of pandas,
        ``polars.from_arrow(reader)`` one of polars, and DuckDB queries the reader by the name of its variable.

    Raises:
        OptionError: An option is unknown, missing or malformed, contradicts another, or asks for something else than the table;
            while rows are read: the table does not fit into memory.
        SchemaError: There are no columns, or columns, key or types do not fit.
        BrokerError: No broker or registry answers, or there is no such topic.
        DecodeError: While rows are read: a message cannot be decoded, and ``error-handling.mode`` is ``fail``.
        DataLossError: While rows are read: offsets are gone, and ``failOnDataLoss`` is true.

    Example::

        from pyspark_upsert_kafka import read_table

        users = read_table({
            "topic": "users",
            "properties.bootstrap.servers": "localhost:9092",
            "primary-key": "id",
            "key.format": "json",
            "value.format": "json",
        }, schema="id BIGINT, name STRING")
        print(users.read_all())
    """
    raw = option_texts({**(options or {}), **more})
    if not raw:
        raise OptionError(
            "read_table has no options: give 'topic', 'properties.bootstrap.servers', 'primary-key', 'key.format' and "
            "'value.format', or a 'ddl' that has them."
        )
    if at is not None:
        raw |= _end(at, raw)
    given = given_options(raw)  # a statement is parsed here, and not again
    _check_mode(given)
    columns = columns_of(schema, given)
    request = checked_request(columns, read_options(given, format_options, stream=False))
    with request.open_cluster() as cluster:
        ranges = ranges_of_batch(cluster, request.options)
    warn_of_no_rows(request.table, request.options, ranges)
    reader = ChangeReader(request.table, request.options)
    return pa.RecordBatchReader.from_batches(arrow_schema(columns), read_with(reader, ranges))


def _end(at: datetime | str, raw: Mapping[str, str]) -> dict[str, str]:
    """The options that mean the table of a past time."""
    for name in raw:
        if name.lower().startswith("scan.bounded."):
            raise OptionError(f"at and '{name}' both say where the table ends: leave one out.")
    end_ms = past_ms(at, "at", "For the table as of now, leave at out.")
    return {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": str(end_ms)}


def _check_mode(given: Mapping[str, str]) -> None:
    """Raises OptionError if something else than the table is asked for."""
    mode = OPTIONS["read.mode"].read(given) or "snapshot"
    if mode in _OTHER_MODES:
        raise OptionError(
            f"read_table gives the table only, and 'read.mode' = '{mode}' means {_OTHER_MODES[mode]}. Leave the option out; or "
            "read with Spark, by spark.read.format('upsert-kafka'); or print the rows as JSON lines, by "
            f"python -m pyspark_upsert_kafka show --{mode} --output json."
        )
