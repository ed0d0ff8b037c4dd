"""The first offset of each partition that is later than a time, for the alignment of partitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options import Position, ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import Cluster, RangeReader, ReadSettings

logger = logging.getLogger("pyspark_upsert_kafka")

_TYPE = "message.timestamp.type"

_CHUNK = 256
"""Offsets that are read at once: few, since most of them are read for one timestamp."""

_MANY = 10_000


_FIRST_STEP = 256

ReadFrom = Callable[[int], tuple[Sequence[int], Sequence[int]]]
"""Offsets and timestamps of the next messages at or after an offset, of one at least; nothing when none is left."""


def record_times(cluster: Cluster, options: ReadOptions) -> RecordTimes:
    """The `RecordTimes` of a query: it reads what the query would see. What is lost is for the tasks to say.

    Args:
        cluster: The connection.
        options: The query's.
    """
    as_in_tasks = ReadSettings.of(options, frozenset({Detail.TIMESTAMP}))
    settings = replace(as_in_tasks, fail_on_data_loss=False)
    return RecordTimes(cluster, load_client(options.table.client).reader(settings))


class RecordTimes:
    """Finds the first offset of each partition that is later than a time.

    Brokers look it up in their time index, without reading messages. But transactions leave markers in a partition, with
    the time of the commit, and a broker's answer may be the offset of a marker (Kafka's
    ``FileRecords.searchForTimestamp``): for a time before that commit it never is a message after the marker. So an offset
    that would keep a partition from being read is checked: it must be that of a message. Once it is not, the partition is
    searched by reading its messages.

    Args:
        cluster: The connection.
        reader: Reads messages with their timestamps, and none that the query would not see.
    """

    def __init__(self, cluster: Cluster, reader: RangeReader) -> None:
        self._cluster, self._reader = cluster, reader
        self._checked: set[tuple[str, str]] = set()
        self._with_markers: set[TopicPartition] = set()
        self._messages: set[tuple[TopicPartition, int]] = set()
        self._chunks: dict[tuple[TopicPartition, int], tuple[list[int], list[int]]] = {}

    def start_batch(
        self, view: ClusterView, begin: Positions, reachable: Positions
    ) -> dict[TopicPartition, int]:
        """``begin``, with the end of the partition where nothing but markers is left to read.

        Raises:
            OptionError: The broker sets the timestamps of a topic, so they say nothing of its events.
            BrokerError: No broker answers.
        """
        self._refuse_log_append_time(view)
        self._chunks.clear()
        if len(self._messages) > _MANY:
            self._messages.clear()
        return {
            tp: reachable[tp]
            if tp in self._with_markers
            and at < reachable[tp]
            and not self._read(view, reachable, tp, at)[0]
            else at
            for tp, at in begin.items()
        }

    def first_after(
        self, view: ClusterView, begin: Positions, reachable: Positions, time_ms: int
    ) -> dict[TopicPartition, int]:
        """The first offset later than a time in each partition that has something to read.

        Args:
            view: What the brokers have.
            begin: Where reading is.
            reachable: Where it may end at most: the answer where nothing before that is later.
            time_ms: The time, in ms since the epoch.

        Raises:
            BrokerError: No broker answers.
        """
        waiting = {tp for tp, end in reachable.items() if end > begin[tp]}
        asked = {tp: view.bounds[tp] for tp in waiting - self._with_markers}
        position = Position("timestamp", timestamp_ms=time_ms + 1)
        found = (
            self._cluster.positions(position, ClusterView(view.topic_ids, asked)) if asked else {}
        )
        for tp, at in found.items():
            # A marker further on only ends this batch early: the next batch begins at it, and checks it.
            if at <= begin[tp] and not self._is_message(view, tp, at):
                self._with_markers.add(tp)
        for tp in waiting & self._with_markers:
            read_from = partial(self._read, view, reachable, tp)
            found[tp] = first_later(read_from, begin[tp], reachable[tp], time_ms)
        return found

    def _is_message(self, view: ClusterView, tp: TopicPartition, at: int) -> bool:
        if (tp, at) in self._messages:
            return True
        is_message = bool(self._offsets_and_times(view, tp, at, at + 1)[0])
        if is_message:
            self._messages.add((tp, at))
        return is_message

    def _read(
        self, view: ClusterView, reachable: Positions, tp: TopicPartition, at: int
    ) -> tuple[list[int], list[int]]:
        """The next messages at or after an offset, however far the next one is."""
        if (tp, at) not in self._chunks:
            begin, size = at, _CHUNK
            found: tuple[list[int], list[int]] = ([], [])
            while begin < reachable[tp] and not found[0]:
                end = min(begin + size, reachable[tp])
                found = self._offsets_and_times(view, tp, begin, end)
                begin, size = end, 4 * size
            self._chunks[tp, at] = found
        return self._chunks[tp, at]

    def _offsets_and_times(
        self, view: ClusterView, tp: TopicPartition, begin: int, end: int
    ) -> tuple[list[int], list[int]]:
        range_ = Range(*tp, begin, end, view.topic_ids[tp.topic], is_checked_after=False)
        batches = list(self._reader.read(range_))
        return (
            [offset for batch in batches for offset in batch.offsets],
            [time for batch in batches for time in batch.timestamps],
        )

    def _refuse_log_append_time(self, view: ClusterView) -> None:
        new = view.topic_ids.items() - self._checked
        if not new:
            return
        self._checked |= new  # those found while the query runs are asked for then
        try:
            configs = self._cluster.topic_configs(sorted(topic for topic, _ in new), [_TYPE])
        except BrokerError as error:  # reading needs no ACL for the settings of topics
            logger.info("It is not known whose timestamps the messages have: %s", error)
            return
        for topic, each in sorted(configs.items()):
            if each.get(_TYPE) == "LogAppendTime":
                raise OptionError(
                    f"'scan.watermark.alignment.max-drift' compares the times at which messages were made, but topic "
                    f"{topic!r} has {_TYPE} = LogAppendTime: its timestamps are those of the broker. Leave the option out."
                )


def first_later(read_from: ReadFrom, begin: int, end: int, time_ms: int) -> int:
    """The offset up to which messages are no later than a time; ``end`` when none is later.

    It is exact where timestamps rise with offsets. Else it is a place where they pass the time, and the message at
    ``begin`` is always compared. Reads in steps that double, and then between two of them.

    Args:
        read_from: Reads messages.
        begin: Where to begin.
        end: Nothing is looked at from here on.
        time_ms: The time, in ms since the epoch.

    >>> times = [10, 20, 30, 40]
    >>> first_later(lambda at: (range(at, 4), times[at:]), 0, 4, 25)
    2
    """
    low, high, found, step = begin, end, end, 0
    while low < high:
        at = min(low + step, (low + high) // 2)
        offsets, times = read_from(at)
        later = next((n for n, each in enumerate(times) if each > time_ms), None)
        if later:
            return offsets[later]
        if later == 0:
            high = found = at
        elif offsets:
            low = offsets[-1] + 1
        else:
            high = at
        step = 2 * step or _FIRST_STEP
    return found
