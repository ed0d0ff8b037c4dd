"""Spark's side of a streaming query: what it asks a reader, in which order, and what survives a crash.

As traced on PySpark 4.0 to 4.3 with a source that logs each call.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.planning.stream_reader import (
    ReaderWithLimits,
    ReaderWithoutLimits,
    StreamReader,
)
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, stream_offset
from tests.unit.connector.fake_cluster import SCHEMA, World, table

KNOWS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None

needs_limits = pytest.mark.skipif(not KNOWS_LIMITS, reason="limits need PySpark 4.2")

PROTOCOLS = [ReaderWithLimits, ReaderWithoutLimits] if KNOWS_LIMITS else [ReaderWithoutLimits]


@dataclass
class Query:
    """A query; ``log``, ``done`` and ``read`` are its checkpoint and its sink.

    Args:
        there: The brokers and the clock.
        options: Those of the source.
        protocol: Which of the two forms of a reader Spark talks to.
        columns: The columns of the table.
        log: The text of each planned batch's end.
        done: How many batches are finished.
        read: What finished batches have read.
    """

    there: World
    options: ReadOptions
    protocol: type[StreamReader] | None = None
    columns: StructType = SCHEMA
    log: list[str] = field(default_factory=list)
    done: int = 0
    read: list[Range] = field(default_factory=list)
    reader: Any = field(init=False, repr=False)

    def start(self, *, once: bool = False, available_now: bool = False) -> Query:
        """Starts or restarts the query, which finishes a batch that was planned and not finished."""
        make = self.protocol or PROTOCOLS[0]
        made = make(table(self.options, self.columns), self.options, self.there.clock)
        self.reader = pickle.loads(pickle.dumps(made))
        self.limit = None
        if isinstance(self.reader, ReaderWithLimits):
            from pyspark.sql.streaming.datasource import ReadAllAvailable

            self.limit = ReadAllAvailable() if once else self.reader.getDefaultReadLimit()
            if available_now:
                self.reader.prepareForTriggerAvailableNow()
        elif self.log:
            assert self.reader.partitions(json.loads(self.log[-1]), json.loads(self.log[-1])) == []
        if self.done < len(self.log):
            self.finish()
        return self

    def plan(self) -> bool:
        """Plans a batch, as far as the offset log; False = nothing new."""
        start = self._start(len(self.log))
        end = self._latest(start)
        if self.log and json.dumps(end) == self.log[-1]:
            return False
        offset = stream_offset(end)
        assert offset is not None
        assert json.dumps(offset.to_json()) == json.dumps(end), "one text for one offset"
        self.log.append(json.dumps(end))
        if len(self.log) > 1:
            self.reader.commit(json.loads(self.log[-2]))
        return True

    def ranges(self) -> list[Range]:
        """What the batch planned last reads."""
        return [range_ for each in self.tasks() for range_ in each.value]

    def tasks(self) -> list[InputPartition]:
        """The tasks of the batch planned last; asked for twice, as a self-union does."""
        last = len(self.log) - 1
        start, end = self._start(last), json.loads(self.log[last])
        first, second = (self.reader.partitions(start, end) for _ in range(2))
        assert [each.value for each in first] == [each.value for each in second]
        return list(first)

    def finish(self) -> None:
        """Reads the batch planned last."""
        self.read += self.ranges()
        self.done += 1

    def trigger(self) -> bool:
        """One trigger; False = nothing new."""
        if not self.plan():
            return False
        self.finish()
        return True

    def offsets_read(self) -> dict[TopicPartition, tuple[int, int]]:
        """From where to where each partition was read; each offset was read once, in order."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for range_ in self.read:
            tp = TopicPartition(range_.topic, range_.partition)
            begin, end = found.get(tp, (range_.begin, range_.begin))
            assert range_.begin == end, f"{tp} was read to {end}, then from {range_.begin}"
            found[tp] = (begin, range_.end)
        return found

    def _start(self, batch: int) -> dict[str, Any]:
        return json.loads(self.log[batch - 1]) if batch else self.reader.initialOffset()

    def _latest(self, start: dict[str, Any]) -> dict[str, Any]:
        if self.limit is None:
            return self.reader.latestOffset()
        return self.reader.latestOffset(start, self.limit)
