"""What is read in this process: a table and how it is read, both checked as Spark's reader checks them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import check_read_sides
from pyspark_upsert_kafka.connector.schema_inference import inferred_schema
from pyspark_upsert_kafka.core.clock import epoch_ms_of, now_ms
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.parsers import time_or_ago
from pyspark_upsert_kafka.core.table import Table, table_to_read
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Args:
        table: The table.
        options: How it is read.
    """

    table: Table
    options: ReadOptions

    def open_cluster(self) -> AbstractContextManager[Cluster]:
        """A connection for questions about the topics, which is closed at the end of the ``with``.

        Raises:
            BrokerError: No broker answers.
        """
        table = self.options.table
        return closing(load_client(table.client).cluster(table.properties, "driver"))


def checked_request(columns: StructType, options: ReadOptions) -> Request:
    """A request for a table with these columns.

    Raises:
        SchemaError: Columns, key or types do not fit.
        OptionError: An option contradicts the columns.
    """
    table = table_to_read(columns, options)
    check_read_sides(table, options)
    return Request(table, options)


def columns_of(schema: str | StructType | None, given: Mapping[str, str]) -> StructType:
    """The columns of a table whose user may have given none.

    Raises:
        SchemaError: They are not known from anything else either, or are malformed.
        OptionError: An option is wrong.
        BrokerError: The schema registry does not answer, or refuses the request.
    """
    if schema is None:
        return inferred_schema(given)
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        return spark_columns(schema)
    raise SchemaError(
        f"schema is of the type {type(schema).__name__}: write the columns as a text, as in 'id BIGINT, name STRING'."
    )


def past_ms(time: datetime | str, argument: str, instead: str) -> int:
    """A time that an argument of a function names, in ms since the epoch.

    Args:
        time: The time; a text may say how long ago it was.
        argument: The name of the argument.
        instead: What to do instead of naming a time in the future.

    Raises:
        OptionError: It is no time, has no zone, or is in the future.
    """
    if not isinstance(time, datetime | str):
        raise OptionError(
            f"{argument} is of the type {type(time).__name__}: give a datetime with a zone, or a text such as "
            "'2026-01-31T12:00:00Z' or '-1 d'."
        )
    called_ms = now_ms()
    try:
        found = time_or_ago(time).at(called_ms) if isinstance(time, str) else epoch_ms_of(time)
    except ValueError as why:
        raise OptionError(f"{argument}: {why}.") from None
    if found > called_ms:
        raise OptionError(f"{argument}: {time} is in the future. {instead}")
    return found
