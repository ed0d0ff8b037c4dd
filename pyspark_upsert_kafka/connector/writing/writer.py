"""Spark data source writers: a writer per query, a sender per task.

At least once: `write` returns only when the broker has confirmed every message of the task, and a task
that runs again sends them again, which leaves the table as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.format_catalog import check_written_sides, format_options
from pyspark_upsert_kafka.connector.reported_writes import report_batch
from pyspark_upsert_kafka.connector.spark_task import current_task, freeze_modules
from pyspark_upsert_kafka.connector.writing.sink_warnings import gives_times, warn_unless_compacted
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import warn_once
from pyspark_upsert_kafka.core.options.frozen_options import WriteOptions
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_write
from pyspark_upsert_kafka.kafka.clients import load_sending_client

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 hands Arrow to a stream writer that is a batch writer too

    class DataSourceStreamArrowWriter(  # type: ignore[no-redef,misc]
        DataSourceStreamWriter, DataSourceArrowWriter
    ):
        """What PySpark 4.1 calls so."""


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch of changes; checks everything it can before the first row."""

    def __init__(self, schema: StructType, raw: Mapping[str, str]) -> None:
        freeze_modules()
        self._options = write_options(raw, format_options)
        _warn(self._options)
        self._table = table_to_write(schema, self._options)
        check_written_sides(self._table, self._options)
        table = self._options.table
        client = load_sending_client(table.client, "writing a table")
        with closing(client.cluster(table.properties, "driver")) as cluster:
            cluster.topics(table.topics)
        if self._options.order is None:  # else upsert_sink has asked already
            warn_unless_compacted(table, has_times=gives_times(self._table))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes one task's rows."""
        from pyspark_upsert_kafka.connector.writing.delivery import write_rows

        return write_rows(iterator, self._table, self._options, current_task())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Reports what the tasks have written; each of them has waited for the broker."""
        report_batch(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches.

    Spark makes it in a process of its own twice for each batch, so it asks no broker; and Spark shows the
    options to it no earlier than in the first batch, where `write` checks them before any row is sent.
    """

    def __init__(self, schema: StructType, raw: Mapping[str, str]) -> None:
        freeze_modules()
        self._options = write_options(raw, format_options)
        _warn(self._options)
        self._table = table_to_write(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes one task's rows of a micro-batch."""
        from pyspark_upsert_kafka.connector.writing.delivery import write_rows

        task = current_task()
        if task.task == 0:
            warn_unless_compacted(self._options.table, has_times=gives_times(self._table))
        return write_rows(iterator, self._table, self._options, task)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002 - Spark's name
        """Reports what the tasks have written; each of them has waited for the broker."""
        report_batch(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing can be taken back; Spark runs the batch again, which upserts the same rows."""


def _warn(options: WriteOptions) -> None:
    if options.order is None:  # else upsert_sink has warned already
        warn_once(*options.warnings)
