"""What is read in this process: a table and how it is read, both checked as Spark's reader checks them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.sides import check_read_sides
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.options.values import ReadOptions
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
