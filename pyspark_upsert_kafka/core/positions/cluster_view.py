"""What the brokers say about topics: values, as of one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_upsert_kafka.core.positions.offsets import TopicPartition


@dataclass(frozen=True)
class TopicInfo:
    """What a topic lookup returns.

    Args:
        id: The topic's id, which no other topic ever has; empty text = the broker or the client
            knows none.
        partitions: The number of partitions.
    """

    id: str
    partitions: int


@dataclass(frozen=True)
class Bounds:
    """The offsets of a partition on the broker.

    Args:
        earliest: The first one that is there.
        latest: One past the last that may be read (under read_committed the last stable offset).
        high: One past the last that was written (the high watermark).

    >>> Bounds(earliest=2, latest=5, high=8).hidden
    3
    """

    earliest: int
    latest: int
    high: int

    @property
    def hidden(self) -> int:
        """How many offsets wait for transactions that are still open."""
        return self.high - self.latest


@dataclass(frozen=True)
class ClusterView:
    """What the broker said about some topics at one moment.

    Args:
        topic_ids: The id of each topic that exists; empty text = the broker has none.
        bounds: The bounds of each of their partitions.
    """

    topic_ids: Mapping[str, str]
    bounds: Mapping[TopicPartition, Bounds]

    @property
    def latest(self) -> dict[TopicPartition, int]:
        """The latest offset of each partition."""
        return {tp: bounds.latest for tp, bounds in self.bounds.items()}

    @property
    def high(self) -> dict[TopicPartition, int]:
        """The high watermark of each partition."""
        return {tp: bounds.high for tp, bounds in self.bounds.items()}
