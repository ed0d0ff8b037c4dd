"""Spark data source reader for batch reads."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.positions.compaction import (
    LAG,
    POLICY,
    TopicConfigs,
    kept_until_ms,
    past_table_warning,
)
from pyspark_upsert_kafka.core.positions.offsets import Range, not_empty
from pyspark_upsert_kafka.core.positions.planning import shared, split, spread
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import Cluster
from pyspark_upsert_kafka.sides import check_read_sides
from pyspark_upsert_kafka.source.bad_messages.error_handling import check_dead_letter_topic
from pyspark_upsert_kafka.source.planning.start import start_offset
from pyspark_upsert_kafka.spark_task import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger("pyspark_upsert_kafka")

_NOTHING = "nothing"
"""The value of the only partition of a read that has nothing to read."""


class BatchReader(DataSourceReader):
    """Reads the table, or its changes, as of the moment when the query is planned."""

    def __init__(self, table: Table, options: ReadOptions) -> None:
        freeze_modules()
        self._table = table
        self._options = options
        check_read_sides(table, options)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each Kafka partition that holds anything to read, unless options want more or fewer."""
        options = self._options
        warn_once(*options.warnings)
        cluster = load_client(options.table.client).cluster(options.table.properties, "driver")
        try:
            ranges = ranges_of_batch(cluster, options)
        finally:
            cluster.close()
        # Without any partition Spark plans one of its own, with a value that depends on its version.
        tasks = spread(ranges, self._options.max_partitions)
        return [InputPartition(each) for each in tasks] or [InputPartition(_NOTHING)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's ranges."""
        if partition.value == _NOTHING:
            return iter(())
        from pyspark_upsert_kafka.source.reading.task import read_ranges

        return read_ranges(cast("tuple[Range, ...]", partition.value), self._table, self._options)


def ranges_of_batch(cluster: Cluster, options: ReadOptions) -> list[Range]:
    """The ranges of a batch read.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
        DataLossError: A wanted start is gone.
    """
    check_dead_letter_topic(cluster, options)
    planned_ms = int(time.time() * 1000)
    start, view = start_offset(cluster, options)
    ends = start.stop or {}
    ranges = [
        Range(*tp, begin, min(ends[tp], view.bounds[tp].latest), view.topic_ids[tp.topic])
        for tp, begin in sorted(start.positions.items())
    ]
    if options.mode != "snapshot":
        return split(not_empty(ranges), options.min_partitions)
    at_ms = options.end.timestamp_ms
    if options.end.mode == "latest-offset" or (at_ms is not None and at_ms >= planned_ms):
        kept = _with_what_is_kept(cluster, not_empty(ranges), planned_ms, options)
        return shared(kept, options.min_partitions)
    # An offset that is the latest now is not when it is read.
    _warn_of_compaction(cluster, list(view.topic_ids), options)
    return shared(not_empty(ranges), options.min_partitions)


def _with_what_is_kept(
    cluster: Cluster, ranges: Sequence[Range], planned_ms: int, options: ReadOptions
) -> list[Range]:
    """The ranges with until when compaction surely takes nothing from them that the table needs."""
    topics = sorted({range_.topic for range_ in ranges})
    configs = _topic_configs(cluster, topics, options)
    return [
        replace(each, kept_until_ms=kept_until_ms(configs, each.topic, planned_ms))
        for each in ranges
    ]


def _warn_of_compaction(cluster: Cluster, topics: Sequence[str], options: ReadOptions) -> None:
    """Warns about a table as of an earlier moment, from which compaction may have removed rows."""
    mode, at_ms = options.end.mode, options.end.timestamp_ms
    now_ms = int(time.time() * 1000)
    configs = _topic_configs(cluster, topics, options)
    option = f"'scan.bounded.mode' = '{mode}'"
    if at_ms is not None:
        option = f"'scan.bounded.timestamp-millis' = '{at_ms}'"
    warning = past_table_warning(configs, at_ms, now_ms, option)
    if warning is not None:
        logger.warning("%s", warning)


def _topic_configs(
    cluster: Cluster, topics: Sequence[str], options: ReadOptions
) -> TopicConfigs | None:
    """What the topics say of compaction; None = the broker does not tell."""
    try:
        return cluster.topic_configs(topics, (POLICY, LAG)) if topics else {}
    except BrokerError as error:
        logger.info("The topic configs of %s cannot be read: %s", options.table.topics, error)
        return None
