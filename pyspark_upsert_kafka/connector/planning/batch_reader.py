"""Spark data source reader for batch reads: what is read, and the filters that Spark gives to it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_upsert_kafka.connector.bad_messages import check_dead_letter_topic
from pyspark_upsert_kafka.connector.planning.open_transactions import (
    Hidden,
    hidden_messages,
    warn_of_hidden,
)
from pyspark_upsert_kafka.connector.planning.query_start import start_offset
from pyspark_upsert_kafka.connector.planning.range_narrowing import Narrowing
from pyspark_upsert_kafka.connector.planning.table_ranges import table_ranges
from pyspark_upsert_kafka.connector.sides import check_read_sides
from pyspark_upsert_kafka.connector.spark_task import freeze_modules
from pyspark_upsert_kafka.core.clock import Clock, now_ms
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range, not_empty
from pyspark_upsert_kafka.core.positions.planning import split, spread
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster

if TYPE_CHECKING:
    import pyarrow as pa

_NOTHING = "nothing"
"""The value of the only partition of a read that has nothing to read."""


class BatchReader(DataSourceReader):
    """Reads the table, or its changes, as of the moment when the query is planned."""

    def __init__(self, table: Table, options: ReadOptions) -> None:
        freeze_modules()
        self._table = table
        self._options = options
        self._narrowing: Narrowing | None = None
        check_read_sides(table, options)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each Kafka partition that holds anything to read, unless options want more or fewer."""
        options = self._options
        warn_once(*options.warnings)
        opened = load_client(options.table.client).cluster(options.table.properties, "driver")
        with closing(opened) as cluster:
            ranges = ranges_of_batch(cluster, options, self._narrowing)
        # Without any partition Spark plans one of its own, with a value that depends on its version.
        tasks = spread(ranges, self._options.max_partitions)
        return [InputPartition(each) for each in tasks] or [InputPartition(_NOTHING)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's ranges."""
        if partition.value == _NOTHING:
            return iter(())
        from pyspark_upsert_kafka.connector.reading.task_reading import read_ranges

        return read_ranges(cast("tuple[Range, ...]", partition.value), self._table, self._options)


def ranges_of_batch(
    cluster: Cluster,
    options: ReadOptions,
    narrowing: Narrowing | None = None,
    tell: Callable[[list[Hidden]], None] = warn_of_hidden,
    clock: Clock = time,
) -> list[Range]:
    """The ranges of a batch read.

    Args:
        cluster: Says what there is.
        options: How it is read.
        narrowing: Leaves out what cannot hold a row that is wanted; None = every row is wanted.
        tell: Called with what open transactions hide, if a read up to the latest offset ends before any.
        clock: For the pauses before something counts as lost.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        DataLossError: A wanted start is gone.
    """
    check_dead_letter_topic(cluster, options)
    planned_ms = now_ms()
    start, view = start_offset(cluster, options, clock)
    ends = start.stop or {}
    if options.end.mode == "latest-offset":
        read = {tp: bounds for tp, bounds in view.bounds.items() if tp in start.positions}
        tell(hidden_messages(replace(view, bounds=read), options))
    ranges = [
        Range(*tp, begin, min(ends[tp], view.bounds[tp].latest), view.topic_ids[tp.topic])
        for tp, begin in sorted(start.positions.items())
    ]
    # Which row of a key is shown, depends on all partitions.
    if narrowing is not None and not options.merges_partitions:
        ranges = narrowing.of(not_empty(ranges), cluster, view)
    if options.mode != "snapshot":
        return split(not_empty(ranges), options.min_partitions)
    return table_ranges(cluster, not_empty(ranges), list(view.topic_ids), options, planned_ms)


_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program of the process that Spark starts to give filters to a reader; it does so only while its setting
``spark.sql.python.filterPushdown.enabled`` is true."""


def batch_reader(table: Table, options: ReadOptions) -> BatchReader:
    """The reader of a batch: one that takes filters, if that is asked and if this process was started for it.

    In every other process Spark plans without filters, and there it rejects a reader that could take them while its setting
    is off.

    Raises:
        OptionError: Filters are asked for, and this PySpark gives none.
    """
    if options.takes_filters and not hasattr(DataSourceReader, "pushFilters"):
        raise OptionError(
            "'scan.filter-pushdown' needs PySpark 4.1 or newer: the Python data source API of 4.0 does not pass filters. "
            "Leave the option out."
        )
    reader = FilteredReader if options.takes_filters and _is_given_filters() else BatchReader
    return reader(table, options)


def _is_given_filters() -> bool:
    """Whether this process was started to give filters to a reader: as a program, or by Spark's daemon for Python."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _WORKER in sys.modules or getattr(spec, "name", None) == _WORKER


class FilteredReader(BatchReader):
    """Reads what the filters of a query leave; Spark applies each of them again."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Notes the filters, and returns all of them: those that Spark has to apply."""
        self._narrowing = Narrowing.by(filters, self._table, self._options)
        return filters
