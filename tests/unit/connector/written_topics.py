"""Topics that are written, compacted and grow in any order, with a model of what stands in them: for laws about readers."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from pyspark_upsert_kafka.connector.reading import task_reading
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.unit.connector.fake_cluster import world
from tests.unit.connector.memory_log import Log, LogReader, nothing

KEYS = 5

COLUMNS = (
    StructType()
    .add("id", LongType())
    .add("n", LongType())
    .add("_change_type", StringType())
    .add("_topic", StringType())
    .add("_partition", IntegerType())
    .add("_offset", LongType())
)

keys = st.integers(0, KEYS - 1)
places = st.integers(0, 9)
seeds = st.integers(0, 2**32)


class WrittenTopics(RuleBasedStateMachine):
    """What happens on the broker; a law adds its reader."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.there = world(self.patch)
        self.cluster = self.there.cluster
        self.logs: dict[TopicPartition, Log] = {}
        self.patch.setattr(task_reading, "load_client", lambda _: LogReader(self.logs))
        self.number = 0

    def _write_before(self, count: int, seed: int) -> None:
        """A topic that may have messages before it is read."""
        self._create("t-0", 2)
        random = Random(seed)
        for _ in range(count):
            self.write(random.randrange(2), [(random.randrange(KEYS), random.random() < 0.2)])

    @rule(place=places, changes=st.lists(st.tuples(keys, st.booleans()), min_size=1, max_size=8))
    def write(self, place, changes) -> None:
        """Upserts and deletes."""
        self._write(self._pick(place), changes)

    @rule(place=places)
    def open_transaction(self, place) -> None:
        """What stands behind its first message is not read before it ends."""
        tp = self._pick(place)
        if self.logs[tp].open_at is None:
            self.logs[tp].open_at = self.logs[tp].length
        self._write(tp, [(0, False)])

    @rule(place=places)
    def commit_transaction(self, place) -> None:
        """It leaves an offset without a message."""
        tp = self._pick(place)
        if self.logs[tp].open_at is not None:
            self.logs[tp].open_at = None
            self.logs[tp].skip()
        self._show(tp)

    @rule(place=places, below=st.none() | st.integers(1, 60))
    def compact(self, place, below) -> None:
        """Takes what was overwritten, as far as it got."""
        self.logs[self._pick(place)].compact(below)

    @rule()
    def add_partition(self) -> None:
        """Gives the first topic one more."""
        self.cluster.add_partition("t-0")
        number = len(self.cluster.topics_there["t-0"].partitions) - 1
        self.logs[TopicPartition("t-0", number)] = Log()

    @rule()
    def add_topic(self) -> None:
        """Creates one of the pattern."""
        if len(self.cluster.topics_there) < 3:
            self._create(f"t-{len(self.cluster.topics_there)}", 1)

    @rule(seconds=st.sampled_from([0.3, 10, 400]))
    def time_passes(self, seconds) -> None:
        """Views grow old, discovery falls due."""
        self.there.clock.now += seconds

    def _happens(self, tp: TopicPartition, random: Random, pace: float) -> None:
        """What others do in a partition while it is read."""
        while random.random() < pace:
            self._write(tp, [(random.randrange(KEYS), random.random() < 0.2)])
        if random.random() < pace:
            self.logs[tp].compact(random.choice([None, random.randrange(1, 60)]))

    def _calm(self) -> None:
        for log in self.logs.values():
            log.meanwhile = nothing

    def _create(self, topic: str, partitions: int) -> None:
        self.cluster.create(topic, partitions)
        self.logs.update((TopicPartition(topic, number), Log()) for number in range(partitions))

    def _pick(self, place: int) -> TopicPartition:
        return list(self.logs)[place % len(self.logs)]

    def _write(self, tp: TopicPartition, changes: list[tuple[int, bool]]) -> None:
        for key, is_delete in changes:
            self.number += 1
            self.logs[tp].append((key, None if is_delete else self.number))
        self._show(tp)

    def _show(self, tp: TopicPartition) -> None:
        self.cluster.set(*tp, 0, self.logs[tp].length, self.logs[tp].latest)
