"""How large messages are, as far as the driver has seen them: ``maxBytesPerTrigger`` limits offsets by it.

Tasks cannot tell the driver what they have read. So before a batch is planned, the driver itself reads some messages where
the batch begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import rate_limited
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import RangeReader, ReadSettings

_FIRST = 1000
"""Offsets of a partition in its first batch at most: little is known of its messages."""

_MANY = 1000
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


def message_sizes(options: ReadOptions) -> MessageSizes:
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
            tp: reachable[tp] if tp in self._begun else min(reachable[tp], at + _FIRST)
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
            if tp not in self._seen or (may_exceed and reachable[tp] - self._seen[tp].at >= _MANY)
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
