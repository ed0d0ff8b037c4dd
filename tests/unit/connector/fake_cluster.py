"""A broker in memory for the stream's driver, and the options and the clock that go with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import (
    batch_ends,
    topic_observer,
    unseen_messages,
)
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import BrokerError, UnknownTopicError
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.core.table import Table, table_to_read
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options

_AT_ONCE = 100
"""Messages that a reader gives at once."""

SCHEMA = StructType([StructField("id", LongType()), StructField("_change_type", StringType())])


def stream_options(**more: object) -> ReadOptions:
    """Options of a streaming read of topic ``t``; names as in `table_options`."""
    return read_options(table_options(**more), format_options, stream=True)


def table(options: ReadOptions, columns: StructType = SCHEMA) -> Table:
    """A table, by default of one column and the change column."""
    return table_to_read(columns, options)


class Clock:
    """A clock that a test moves. Pickled, it stays the same one, as all of a machine have one time."""

    def __init__(self) -> None:
        self.now = 1000.0
        _clocks[id(self)] = self

    def __reduce__(self) -> tuple[Callable[[int], Clock], tuple[int]]:
        """Which one it is."""
        return _clock, (id(self),)

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def time(self) -> float:
        """The time of day: the same."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Passes the time."""
        self.now += seconds


_clocks: WeakValueDictionary[int, Clock] = WeakValueDictionary()


def _clock(number: int) -> Clock:
    return _clocks[number]


@dataclass
class FakeTopic:
    """A topic: its id and, per partition, earliest, latest and high offset."""

    id: str
    partitions: list[Bounds]


@dataclass
class FakeCluster:
    """A broker that a test changes as it likes; it counts the questions it is asked.

    Each look takes the first of ``stale`` for what is there, while there is one. ``sizes`` says how many bytes the message of
    an offset has; None = there is none.
    """

    topics_there: dict[str, FakeTopic] = field(default_factory=dict)
    stale: list[dict[str, FakeTopic]] = field(default_factory=list)
    shown: dict[str, FakeTopic] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    sizes: Callable[[TopicPartition, int], int | None] = lambda tp, offset: 100
    topic_settings: dict[str, str] | None = None
    asked_settings: int = 0
    opened: int = 0
    looks: int = 0
    least_looks: int = 0
    created: int = 0
    read_ranges: list[Range] = field(default_factory=list)

    # What a test does.

    def create(self, topic: str, partitions: int = 1) -> None:
        """Creates a topic, with an id that no other ever had."""
        self.created += 1
        bounds = [Bounds(0, 0, 0) for _ in range(partitions)]
        self.topics_there[topic] = FakeTopic(f"id-{self.created}", bounds)

    def delete(self, topic: str) -> None:
        """Deletes a topic."""
        del self.topics_there[topic]

    def add_partition(self, topic: str) -> None:
        """Gives a topic one more partition."""
        self.topics_there[topic].partitions.append(Bounds(0, 0, 0))

    def produce(self, topic: str, partition: int = 0, count: int = 1) -> None:
        """Appends committed messages."""
        bounds = self.topics_there[topic].partitions[partition]
        self.set(topic, partition, bounds.earliest, bounds.high + count)

    def set(
        self, topic: str, partition: int, earliest: int, high: int, latest: int | None = None
    ) -> None:
        """Sets the bounds of a partition."""
        last_stable = high if latest is None else latest
        self.topics_there[topic].partitions[partition] = Bounds(earliest, last_stable, high)

    def ends(self) -> dict[TopicPartition, int]:
        """The latest offset of each partition."""
        return {
            TopicPartition(topic, number): bounds.latest
            for topic, there in self.topics_there.items()
            for number, bounds in enumerate(there.partitions)
        }

    # What the connector asks.

    def topics(self, wanted: Topics) -> dict[str, TopicInfo]:
        """As `Cluster.topics`."""
        names = list(wanted.names)
        if wanted.pattern is not None:
            names = [name for name in self.topics_there if wanted.pattern.fullmatch(name)]
        found = self.existing(names)
        for name in wanted.names:
            if name not in found:
                raise BrokerError(f"Topic {name!r} does not exist.")
        return found

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """As `Cluster.existing`."""
        if not names:
            return {}
        self.shown = self.stale.pop(0) if self.stale else self.topics_there
        found = {name: self.shown[name] for name in names if name in self.shown}
        return {name: TopicInfo(topic.id, len(topic.partitions)) for name, topic in found.items()}

    def view(self, topics: Mapping[str, TopicInfo], *, read_committed: bool) -> ClusterView:
        """As `Cluster.view`."""
        self.looks += 1
        bounds = {
            TopicPartition(name, number): self.shown[name].partitions[number]
            for name, topic in topics.items()
            for number in range(topic.partitions)
        }
        return ClusterView({name: topic.id for name, topic in topics.items()}, bounds)

    def latest(self, view: ClusterView, *, read_committed: bool) -> dict[TopicPartition, int]:
        """As `Cluster.latest`."""
        self.least_looks += 1
        ends = self.ends()
        return {tp: ends[tp] for tp in view.bounds} if view.bounds.keys() <= ends.keys() else {}

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """As `Cluster.positions`."""
        if position.mode == "specific-offsets":
            return {TopicPartition("t", number): at for number, at in position.offsets}
        if position.mode == "earliest-offset":
            return {tp: bounds.earliest for tp, bounds in view.bounds.items()}
        gone = {tp.topic for tp in view.bounds} - self.topics_there.keys()
        if position.mode == "timestamp" and gone:
            raise UnknownTopicError(f"There is no topic {min(gone)!r}.")
        return view.latest

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """As `Cluster.topic_configs`."""
        self.asked_settings += 1
        if self.topic_settings is None:
            raise BrokerError("Topic authorization failed.")
        return {topic: {name: self.topic_settings[name] for name in names} for topic in topics}

    def commit(self, positions: Positions) -> None:
        """As `Cluster.commit`."""
        self.committed.update(positions)

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """As `RangeReader.read`: what is there, a few messages at a time."""
        self.read_ranges.append(range_)
        tp = TopicPartition(range_.topic, range_.partition)
        if tp not in self.ends():
            return
        there = self.topics_there[tp.topic].partitions[tp.partition]
        begin, end = max(range_.begin, there.earliest), min(range_.end, there.latest)
        found = [at for at in range(begin, end) if self.sizes(tp, at) is not None]
        for first in range(0, len(found), _AT_ONCE):
            offsets = found[first : first + _AT_ONCE]
            values = BytesColumn.of([bytes(self.sizes(tp, at) or 0) for at in offsets])
            yield RawBatch(*tp, BytesColumn.of([None] * len(offsets)), values, offsets)

    def wait_out(self, outage_s: float) -> None:
        """As `Cluster.wait_out`."""

    def close(self) -> None:
        """As `Cluster.close`."""


@dataclass
class World:
    """A broker in the place of the real ones, and a clock that readers are given."""

    cluster: FakeCluster
    clock: Clock


def world(patch: pytest.MonkeyPatch) -> World:
    """Puts a broker in memory in the place of the real ones; beside it, a clock that stands still."""
    cluster = FakeCluster()

    class Client:
        def cluster(self, properties: object, role: str) -> FakeCluster:
            cluster.opened += 1
            return cluster

        def reader(self, settings: object) -> FakeCluster:
            return cluster

    for module in (topic_observer, batch_ends, unseen_messages):
        patch.setattr(module, "load_client", lambda name: Client())
    return World(cluster, Clock())
