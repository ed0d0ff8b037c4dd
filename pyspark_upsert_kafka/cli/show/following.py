"""``--follow``: what a topic holds, and then what arrives, in micro-batches as a stream of Spark reads them, without Spark."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from dataclasses import replace

from pyspark_upsert_kafka.cli.show.one_key import OneKey
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.values import Limits, Position
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.source.planning.stream_reader import StreamReader
from pyspark_upsert_kafka.source.reading.rows import Rows
from pyspark_upsert_kafka.source.reading.task import ChangeReader
from pyspark_upsert_kafka.without_spark.request import Request

_NO_LIMITS = Limits()


class Follower:
    """Reads what there is and what arrives, without an end.

    Args:
        request: What is read.
        key: The only key that is wanted; None = all.

    Raises:
        OptionError: The options name an end.
    """

    def __init__(self, request: Request, key: OneKey | None) -> None:
        if request.options.end.mode != "latest-offset":
            raise OptionError("--follow has no end: leave out 'scan.bounded.mode'.")
        options = replace(request.options, end=Position("unbounded"))
        self._key = key
        self._stream = StreamReader(request.table, options)
        self._reader = ChangeReader(request.table, options)

    def changes(self) -> Iterator[tuple[TopicPartition, Rows] | None]:
        """The rows of changes with their partition; None = all that has arrived so far has been read.

        Raises:
            BrokenPipeError: Nobody reads the output any more.
            UpsertKafkaError: As a streaming query would raise it.
        """
        start = self._stream.initialOffset()
        while True:
            end = self._stream.next_offset(start, _NO_LIMITS)
            if end is not start:
                for range_ in self._ranges(start, end):
                    yield from self._rows(range_)
            start = end
            stop_without_reader()
            yield None

    def _ranges(self, start: dict[str, object], end: dict[str, object]) -> Iterator[Range]:
        """The ranges of all partitions, also for one key: another writer may put it elsewhere."""
        for partition in self._stream.partitions(start, end):
            yield from partition.value

    def _rows(self, range_: Range) -> Iterator[tuple[TopicPartition, Rows]]:
        place = TopicPartition(range_.topic, range_.partition)
        changes = self._reader.read(range_)
        for _, rows in changes if self._key is None else self._key.matching(changes):
            if len(rows):
                yield place, rows


def stop_without_reader() -> None:
    """Raises BrokenPipeError when nobody reads the pipe any more; a write would find out only when a change arrives."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise BrokenPipeError
