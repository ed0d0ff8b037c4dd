"""Spark data source writers: a writer per query, a sender per task.

At least once: `write` returns only when the broker has confirmed every message of the task, and a task
that runs again sends them again, which leaves the table as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.options import WriteOptions, write_options
from pyspark_upsert_kafka.core.table import Table, table_to_write
from pyspark_upsert_kafka.core.task_identity import TaskIdentity
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.sink.cleanup_policy import warn_unless_compacted
from pyspark_upsert_kafka.sink.delivery import delivering
from pyspark_upsert_kafka.sink.encoding import RowEncoder
from pyspark_upsert_kafka.sink.metadata import sets_metadata
from pyspark_upsert_kafka.sink.preimages import preimages_in
from pyspark_upsert_kafka.sink.spark_task import current_task, warn_of_speculation
from pyspark_upsert_kafka.time_zone import session_time_zone

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 hands Arrow to a stream writer that is a batch writer too

    class DataSourceStreamArrowWriter(  # type: ignore[no-redef,misc]
        DataSourceStreamWriter, DataSourceArrowWriter
    ):
        """What PySpark 4.1 calls so."""


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote."""

    rows: int


class BatchWriter(DataSourceArrowWriter):
    """Writes a batch of changes; checks everything it can before the first row."""

    def __init__(self, schema: StructType, raw: Mapping[str, str]) -> None:
        self._options = write_options(raw, format_options)
        _warn(self._options)
        self._table = table_to_write(schema, self._options)
        RowEncoder(self._table, self._options, "UTC")  # refuses types that a format cannot write
        table = self._options.table
        with closing(load_client(table.client).cluster(table.properties, "driver")) as cluster:
            cluster.topics(table.topics)
        if self._options.order is None:  # else upsert_sink has asked already
            warn_unless_compacted(table)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes one task's rows."""
        return write_rows(iterator, self._table, self._options, current_task())


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches.

    Spark makes it in a process of its own twice for each batch, so it asks no broker; and Spark shows the
    options to it no earlier than in the first batch, where `write` checks them before any row is sent.
    """

    def __init__(self, schema: StructType, raw: Mapping[str, str]) -> None:
        self._options = write_options(raw, format_options)
        _warn(self._options)
        self._table = table_to_write(schema, self._options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes one task's rows of a micro-batch."""
        task = current_task()
        if task.task == 0:
            warn_unless_compacted(self._options.table)
        return write_rows(iterator, self._table, self._options, task)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing is left to do: each task has waited for the broker."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing can be taken back; Spark runs the batch again, which upserts the same rows."""


def _warn(options: WriteOptions) -> None:
    if options.order is None:  # else upsert_sink has warned already
        warn_once(*options.warnings)


def write_rows(
    batches: Iterator[pa.RecordBatch], table: Table, options: WriteOptions, task: TaskIdentity
) -> WriterCommitMessage:
    """Writes the rows of one task and returns when the broker has confirmed them all.

    Raises:
        EncodeError: A row cannot be written.
        DeliveryError: The broker did not take a message.
        BrokerError: No broker answers, or a topic does not exist.
    """
    warn_of_speculation(task, options)
    encoder = RowEncoder(table, options, session_time_zone())
    preimages = preimages_in(options.order or "in-task")
    rows = 0
    with delivering(task, options, with_metadata=sets_metadata(table)) as delivery:
        for part in chain.from_iterable(map(_parts, batches)):
            delivery.send(preimages.settle(encoder.encode(part)))
            rows += part.num_rows
        rest = preimages.rest()
        if rest is not None:
            delivery.send(rest)
    return Written(rows)


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in parts that are not too large to be encoded together.

    Their messages, and the texts on the way, take several times as many bytes.
    """
    if rows.nbytes <= MAX_HELD_BYTES or rows.num_rows < 2:
        # A copy: Arrow converts the whole of what a slice is a part of, or refuses it beyond 2 GiB.
        is_slice = rows.get_total_buffer_size() > MAX_HELD_BYTES
        yield rows.take(pa.array(range(rows.num_rows))) if is_slice else rows
        return
    half = rows.num_rows // 2
    yield from _parts(rows.slice(0, half))
    yield from _parts(rows.slice(half))
