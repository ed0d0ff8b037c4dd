"""One history of a stream that begins with the table, while that is changed and compacted all the time.

The first batch is read again and again, each time as by a query that was killed and started again with another number of tasks.
Three rules are checked for each reading of it: no key is there twice; each row is the row of its key at the end of the batch; and
each key that existed then is there, or has a newer change. The batches after it must bring each change once, and lead to the table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning.stream_reader import StreamReader
from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader, shown_rows
from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns
from pyspark_upsert_kafka.core.options.frozen_options import Limits
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import Range, stream_offset
from pyspark_upsert_kafka.core.table import table_to_read
from tools.faults import BrokenRuleError
from tools.histories.history import (
    Counts,
    create_topic,
    slowly,
    snapshot_options,
)
from tools.histories.writer import Model, Writer

COLUMNS = "id BIGINT, n BIGINT, _partition INT, _offset BIGINT, _change_type STRING"


@dataclass(frozen=True)
class Batch:
    """A micro-batch.

    Args:
        ends: Per partition: one past the last offset that it may hold.
        rows: Its rows; each has the columns above.
    """

    ends: dict[int, int]
    rows: list[dict[str, Any]]

    def of(self, partition: int) -> list[dict[str, Any]]:
        """The rows of a partition, by their offsets."""
        rows = [row for row in self.rows if row["_partition"] == partition]
        return sorted(rows, key=lambda row: int(row["_offset"]))


class Stream:
    """A streaming query without Spark: it plans micro-batches and reads them, slowly now and then.

    Args:
        given: The options.
        random: Where all choices come from.
    """

    def __init__(self, given: dict[str, str], random: Random) -> None:
        self._given, self._random = {**given, "scan.startup.mode": "full"}, random
        self._restart()
        self._start = self._stream.initialOffset()
        self._end = self._stream.next_offset(self._start, Limits())

    def first(self) -> Batch:
        """The first batch, which is read after a restart."""
        self._restart()
        return self._read()

    def further(self) -> Iterator[Batch]:
        """The batches after it, up to now."""
        self._start = self._end
        while (end := self._stream.next_offset(self._start, Limits())) != self._start:
            self._end = end
            yield self._read()
            self._start = self._end

    def _restart(self) -> None:
        pieces = self._random.choice([{}, {"minPartitions": "5"}])
        self._options = read_options({**self._given, **pieces}, format_options, stream=True)
        self._columns = table_to_read(spark_columns(COLUMNS), self._options)
        self._stream = StreamReader(self._columns, self._options)

    def _read(self) -> Batch:
        offset = stream_offset(self._end)
        if offset is None:
            raise BrokenRuleError("A batch ends where the query begins.")
        tasks = self._stream.partitions(self._start, self._end)
        rows = [row for task in tasks for range_ in task.value for row in self._rows(range_)]
        return Batch({place.partition: end for place, end in offset.positions.items()}, rows)

    def _rows(self, range_: Range) -> Iterator[dict[str, Any]]:
        """As `StreamReader.read`, with pauses in which much is written and compacted."""
        is_table = range_.share is not None
        options = replace(self._options, mode="snapshot") if is_table else self._options
        reader = ChangeReader(self._columns, options)
        time.sleep(self._random.choice([0.0, 0.0, 0.3]))
        names = self._columns.schema.names
        for rows in shown_rows(slowly(reader.read(range_), self._random), range_, reader):
            columns = (column.to_pylist() for column in rows.columns)
            yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def table_first(servers: str, random: Random, counts: Counts) -> None:
    """A topic, its writer, and a stream that begins with its table.

    Args:
        servers: The bootstrap servers.
        random: Where all choices come from.
        counts: What is seen is added to these.

    Raises:
        BrokenRuleError: A batch is wrong.
    """
    topic = create_topic(servers, random.choice([1, 2, 3]))
    keys, transactional = random.choice([50, 500, 3000]), random.random() < 0.4
    writer = Writer(servers, topic, keys, random, transactional=transactional)
    writer.fill()
    writer.start()
    try:
        stream = Stream(snapshot_options(servers, topic, random, committed=transactional), random)
        readings = [stream.first() for _ in range(random.choice([1, 2, 3]))]
        time.sleep(random.random())
    finally:
        model = writer.stop()
    for each in readings:
        check_first(model, each, counts)
    check_changes(model, [random.choice(readings), *stream.further()])


def check_first(model: Model, found: Batch, counts: Counts) -> None:
    """Whether a first batch is the table as of its end, but for keys with a newer change.

    Raises:
        BrokenRuleError: It is not.
    """
    counts.first_batches += 1
    counts.rows += len(found.rows)
    for partition, end in found.ends.items():
        rows = {row["id"]: row["n"] for row in found.of(partition)}
        if len(rows) < len(found.of(partition)):
            raise BrokenRuleError("A key is there twice.")
        table = {key: n for key, n in model.at(partition, end).items() if n is not None}
        wrong = sorted(rows.items() - table.items())
        if wrong:
            raise BrokenRuleError(
                f"The row {wrong[0]} of partition {partition} is not that of its end."
            )
        changed = {change.key for change in model.between(partition, end, 2**63)}
        missing = table.keys() - rows.keys()
        if missing - changed:
            raise BrokenRuleError(
                f"{len(missing - changed)} keys of partition {partition} are missing and have no newer change."
            )
        counts.left_out += len(missing)


def check_changes(model: Model, batches: list[Batch]) -> None:
    """Whether the batches bring each change once, and lead to the table.

    Raises:
        BrokenRuleError: They do not.
    """
    for partition, last in batches[-1].ends.items():
        begin, sink = 0, dict[int, int]()
        for batch in batches:
            offsets = [row["_offset"] for row in batch.of(partition)]
            if len(set(offsets)) < len(offsets) or any(
                not begin <= at < batch.ends[partition] for at in offsets
            ):
                raise BrokenRuleError(
                    f"A batch of partition {partition} holds a change of another one."
                )
            begin = batch.ends[partition]
            for row in batch.of(partition):
                if row["_change_type"] == "delete":
                    sink.pop(row["id"], None)
                else:
                    sink[row["id"]] = row["n"]
        table = {key: n for key, n in model.at(partition, last).items() if n is not None}
        if sink != table:
            differ = sorted(dict(sink.items() ^ table.items()))
            raise BrokenRuleError(f"In the end {len(differ)} keys of partition {partition} differ.")
