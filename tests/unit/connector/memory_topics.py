"""Topics in memory whose messages have times, the cluster that has them, and their reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.options.frozen_options import Position
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.cluster import timestamp_offsets
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.unit.connector.fake_cluster import FakeCluster

NO_TIME = -1


@dataclass(frozen=True)
class Message:
    """A message; its time is in ms since the epoch."""

    key: bytes | None
    value: bytes | None
    time_ms: int = 1000


@dataclass
class MemoryTopics(FakeCluster):
    """Topics; plays cluster, client and reader, and notes which partitions are read."""

    messages: dict[TopicPartition, Sequence[Message]] = field(default_factory=dict)
    read_of: set[TopicPartition] = field(default_factory=set)
    at_once: int = 3

    def fill(self, topic: str, *partitions: Sequence[Message]) -> None:
        """Creates a topic with these messages in its partitions."""
        self.create(topic, len(partitions))
        for number, messages in enumerate(partitions):
            self.messages[TopicPartition(topic, number)] = messages
            self.produce(topic, number, len(messages))

    def positions(self, position: Position, view: ClusterView) -> Mapping[TopicPartition, int]:  # type: ignore[override]
        """As `Cluster.positions`: of a time, the first message that is at least as late."""
        if position.mode != "timestamp":
            return super().positions(position, view)
        found = {
            tp: next(
                (
                    at
                    for at, each in enumerate(self.messages[tp])
                    if each.time_ms >= (position.timestamp_ms or 0)
                ),
                -1,
            )
            for tp in view.bounds
        }
        return timestamp_offsets(found, view)

    def reader(self, settings: ReadSettings) -> MemoryTopics:
        """As `Client.reader`."""
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """As `RangeReader.read`."""
        place = TopicPartition(range_.topic, range_.partition)
        self.read_of.add(place)
        for begin in range(range_.begin, range_.end, self.at_once):
            offsets = [*range(begin, min(begin + self.at_once, range_.end))]
            found = [self.messages[place][at] for at in offsets]
            yield RawBatch(
                *place,
                BytesColumn.of([each.key for each in found]),
                BytesColumn.of([each.value for each in found]),
                offsets,
                [int(each.time_ms != NO_TIME) for each in found],
                [each.time_ms for each in found],
            )

    def end(self, range_: Range) -> int:
        """As `RangeReader.end`."""
        return len(self.messages[TopicPartition(range_.topic, range_.partition)])
