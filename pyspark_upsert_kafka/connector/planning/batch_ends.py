"""Where the micro-batches of a query end, within the limits of its options.

Tasks cannot tell the driver what they have read. So before a batch is planned, the driver itself reads some messages where the
batch begins, for ``maxBytesPerTrigger``. For ``scan.watermark.alignment.max-drift`` brokers say where a partition gets later
than a time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark_upsert_kafka.connector.planning.topic_observer import Observer
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, UnknownTopicError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.frozen_options import Limits, Position, ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    Range,
    StreamOffset,
    TopicPartition,
)
from pyspark_upsert_kafka.core.positions.planning import Alignment, advanced, rate_limited
from pyspark_upsert_kafka.kafka.clients import RangeReader, ReadSettings, load_client
from pyspark_upsert_kafka.kafka.cluster import Cluster

logger = logging.getLogger("pyspark_upsert_kafka")


class BatchEnds:
    """Where the micro-batches of a query end. What it remembers of messages saves requests, and is seen again after a restart.

    Args:
        observer: The view of the query's topics.
        options: The query's.
    """

    def __init__(self, observer: Observer, options: ReadOptions) -> None:
        self._observer, self._options = observer, options
        self._alignment: Alignment | None = None
        self._times: RecordTimes | None = None
        self._sizes: MessageSizes | None = None

    def end(
        self, now: StreamOffset, view: ClusterView, limits: Limits, target: Positions | None
    ) -> StreamOffset:
        """The end of the next batch.

        Args:
            now: Where reading is.
            view: What the brokers have.
            limits: How much the batch reads.
            target: Nothing past these positions; None = no limit.

        Raises:
            BrokerError: No broker answers.
            OptionError: Timestamps of a topic cannot be compared.
        """
        aligned = self._aligned(now, view, limits, target)
        end = advanced(now, view, max_offsets=limits.max_offsets, target=aligned)
        if limits.max_bytes is None:
            return end
        if self._sizes is None:
            self._sizes = _message_sizes(self._options)
        positions = self._sizes.ends(view, now.positions, end.positions, limits.max_bytes)
        return replace(end, positions=positions)

    def _aligned(
        self, now: StreamOffset, view: ClusterView, limits: Limits, target: Positions | None
    ) -> Positions | None:
        """Nothing past these positions, so that no partition runs ahead in time; None = no limit."""
        if limits.max_drift_s is None:
            return target
        if self._alignment is None or self._times is None:
            self._alignment = Alignment(
                int(limits.max_drift_s * 1000), now_ms(self._observer.clock)
            )
            self._times = _record_times(self._observer.cluster, self._options)
        reachable = advanced(now, view, target=target).positions
        try:
            begin = self._times.start_batch(view, now.positions, reachable)
            asks = partial(self._times.first_after, view, begin, reachable)
            return self._alignment.ends(begin, reachable, asks)
        except UnknownTopicError:  # the next view shows whether it is gone
            return now.positions


_MOST_IN_FIRST = 1000
"""Offsets of a partition in its first batch at most: little is known of its messages."""

_LOOKED_AT_AGAIN = 1000
"""After so many offsets, messages are looked at again."""

_LOOK = 256
"""Messages that are looked at in one partition, about."""

_LOOK_BYTES = 1024 * 1024
"""Bytes of large messages that are looked at in one partition, about."""

_PARTITIONS = 10
"""Partitions that are looked at before a batch: each look takes some milliseconds."""

_GROWTH = 10
"""No look is needed where messages this many times larger would not reach the limit."""


@dataclass(frozen=True)
class _Seen:
    """What was seen of a partition's messages.

    Args:
        mean: Bytes of a message, on average.
        at: The offset of the last look.
        turn: The number of that look.
    """

    mean: float
    at: int
    turn: int


def _message_sizes(options: ReadOptions) -> MessageSizes:
    """The `MessageSizes` of a query: it reads what the query would see. What is lost is for the tasks to say."""
    settings = replace(ReadSettings.of(options, frozenset()), fail_on_data_loss=False)
    return MessageSizes(load_client(options.table.client).reader(settings))


class MessageSizes:
    """Limits the bytes of keys and values in a batch by the sizes of messages that it has seen.

    Every offset counts as a message, as for ``maxOffsetsPerTrigger``; only offsets before the first message do not count.

    Args:
        reader: Reads messages.
    """

    def __init__(self, reader: RangeReader) -> None:
        self._reader = reader
        self._seen: dict[TopicPartition, _Seen] = {}
        self._begun: set[TopicPartition] = set()
        self._turn = 0

    def ends(
        self, view: ClusterView, begin: Positions, reachable: Positions, limit: int
    ) -> dict[TopicPartition, int]:
        """How far a batch reads within about ``limit`` bytes; every partition with anything to read goes forward.

        Args:
            view: What the brokers have.
            begin: Where reading is.
            reachable: Where the batch may end at most.
            limit: Bytes of keys and values.

        Raises:
            BrokerError: No broker answers.
        """
        first = {tp: begin[tp] for tp, end in reachable.items() if end > begin[tp]}
        for tp in self._to_look_at(first, reachable, limit):
            first[tp] = self._look(view, tp, begin[tp], reachable[tp])
        ends = {
            tp: reachable[tp] if tp in self._begun else min(reachable[tp], at + _MOST_IN_FIRST)
            for tp, at in first.items()
        }
        found = rate_limited(first, ends, limit, self._means(first))
        self._begun |= found.keys()
        return {**reachable, **found}

    def _to_look_at(
        self, begin: Positions, reachable: Positions, limit: int
    ) -> list[TopicPartition]:
        """Partitions of whose messages nothing is known, and those that were looked at longest ago."""
        means = self._means(begin)
        expected = sum((reachable[tp] - at) * means[tp] for tp, at in begin.items())
        may_exceed = expected * _GROWTH > limit
        due = [
            tp
            for tp in begin
            if tp not in self._seen
            or (may_exceed and reachable[tp] - self._seen[tp].at >= _LOOKED_AT_AGAIN)
        ]
        return sorted(due, key=self._turn_of)[:_PARTITIONS]

    def _turn_of(self, tp: TopicPartition) -> int:
        return self._seen[tp].turn if tp in self._seen else 0

    def _means(self, partitions: Positions) -> dict[TopicPartition, int]:
        """The bytes of a message in each partition: what was seen there, or on average elsewhere."""
        known = [seen.mean for seen in self._seen.values()]
        elsewhere = sum(known) / len(known) if known else 1
        return {
            tp: max(1, math.ceil(self._seen[tp].mean if tp in self._seen else elsewhere))
            for tp in partitions
        }

    def _look(self, view: ClusterView, tp: TopicPartition, begin: int, end: int) -> int:
        """Looks at the next messages of a partition; the offset of the first of them, or the end where there is none."""
        count = self._offsets_to_look_at(tp)
        at = begin
        while at < end:
            stop = min(at + count, end)
            found = self._first_and_mean(view, tp, at, stop)
            if found is not None:
                first, mean = found
                self._remember(tp, mean, first)
                return first
            at, count = stop, 4 * count
        return end

    def _offsets_to_look_at(self, tp: TopicPartition) -> int:
        seen = self._seen.get(tp)
        return _LOOK if seen is None else max(1, min(_LOOK, int(_LOOK_BYTES / (1 + seen.mean))))

    def _first_and_mean(
        self, view: ClusterView, tp: TopicPartition, begin: int, end: int
    ) -> tuple[int, float] | None:
        """The offset of the first message of some offsets, and how large messages are there; None = there is no message."""
        range_ = Range(*tp, begin, end, view.topic_ids[tp.topic], is_checked_after=False)
        first, count, size = None, 0, 0
        for batch in self._reader.read(range_):
            first = batch.offsets[0] if first is None else first
            count += len(batch)
            size += batch.keys.size + batch.values.size
            if size > _LOOK_BYTES:
                break
        return None if first is None else (first, size / count)

    def _remember(self, tp: TopicPartition, mean: float, at: int) -> None:
        """Larger messages count at once, smaller ones little by little: a batch is rather too small than too large."""
        before = self._seen[tp].mean if tp in self._seen else 0.0
        self._turn += 1
        self._seen[tp] = _Seen(max(mean, (mean + before) / 2), at, self._turn)


_TYPE = "message.timestamp.type"

_CHUNK = 256
"""Offsets that are read at once: few, since most of them are read for one timestamp."""

_MOST_CHECKED = 10_000
"""Offsets that are known to be those of messages: with more of them, all are forgotten."""

_FIRST_STEP = 256

_ReadFrom = Callable[[int], tuple[Sequence[int], Sequence[int]]]
"""Offsets and timestamps of the next messages at or after an offset, of one at least; nothing when none is left."""


def _record_times(cluster: Cluster, options: ReadOptions) -> RecordTimes:
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
        if len(self._messages) > _MOST_CHECKED:
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


def first_later(read_from: _ReadFrom, begin: int, end: int, time_ms: int) -> int:
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
