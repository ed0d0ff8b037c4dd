"""The first law of a stream, under whatever a broker and a machine do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from tests.laws import runs
from tests.unit.connector.fake_cluster import stream_options, world
from tests.unit.connector.fake_spark import KNOWS_LIMITS, PROTOCOLS, Query


class ExactlyOnce(RuleBasedStateMachine):
    """Whatever a broker and a machine do, each offset is planned exactly once."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.there = world(self.patch)
        self.cluster = self.there.cluster
        self.planned: list[Range] | None = None
        self.begins: dict[TopicPartition, int] = {}
        self.stops: dict[TopicPartition, int] = {}

    @initialize(
        protocol=st.sampled_from(PROTOCOLS),
        start=st.sampled_from(["earliest-offset", "latest-offset"]),
        most=st.none() | st.integers(1, 12),
        most_bytes=st.none() | st.integers(1, 2000),
        gaps=st.integers(1, 5),
        least=st.none() | st.integers(1, 3),
        pieces=st.none() | st.integers(1, 5),
        tasks=st.sampled_from([None, 5, 6, "auto"]),
        bounded=st.booleans(),
        early=st.integers(0, 5),
    )
    def begin(
        self, protocol, start, most, most_bytes, gaps, least, pieces, tasks, bounded, early
    ) -> None:
        """Starts a query; of some offsets the first of a few only is a message, of its own size."""
        limited = self.limited = protocol is PROTOCOLS[0] and KNOWS_LIMITS
        self.cluster.sizes = lambda _, at: None if at % gaps else 10 * (at % 7)
        self.bounded = bounded
        self.cluster.create("t-0", 2)
        self.cluster.produce("t-0", 0, early)
        self.query = Query(
            self.there,
            stream_options(
                topic=None,
                topic_pattern="t-.*",
                scan__startup__mode=start,
                maxOffsetsPerTrigger=most if limited else None,
                maxBytesPerTrigger=most_bytes if limited else None,
                minOffsetsPerTrigger=min(least, most or least) if limited and least else None,
                minPartitions=None if tasks == "auto" else pieces,
                scan__parallelism=tasks,
                scan__bounded__mode="latest-offset" if bounded else "unbounded",
            ),
            protocol,
        ).start()

    # What happens on the broker.

    @rule(topic=st.integers(0, 9), partition=st.integers(0, 9), count=st.integers(1, 20))
    def produce(self, topic, partition, count) -> None:
        """Appends messages, behind an open transaction where there is one."""
        tp = self._pick(topic, partition)
        bounds = self._bounds(tp)
        latest = bounds.latest + (count if bounds.latest == bounds.high else 0)
        self.cluster.set(*tp, bounds.earliest, bounds.high + count, latest)

    @rule(topic=st.integers(0, 9), partition=st.integers(0, 9), count=st.integers(1, 20))
    def open_transaction(self, topic, partition, count) -> None:
        """Appends messages that are not committed."""
        tp = self._pick(topic, partition)
        bounds = self._bounds(tp)
        self.cluster.set(*tp, bounds.earliest, bounds.high + count, bounds.latest)

    @rule(topic=st.integers(0, 9), partition=st.integers(0, 9))
    def end_transactions(self, topic, partition) -> None:
        """Commits them."""
        tp = self._pick(topic, partition)
        self.cluster.set(*tp, self._bounds(tp).earliest, self._bounds(tp).high)

    @rule(topic=st.integers(0, 9))
    def add_partition(self, topic) -> None:
        """Gives a topic one more."""
        self.cluster.add_partition(self._pick(topic, 0).topic)

    @rule()
    def add_topic(self) -> None:
        """Creates one of the pattern."""
        self.cluster.create(f"t-{len(self.cluster.topics_there)}", 1)

    @rule(topic=st.integers(0, 9), partition=st.integers(0, 9))
    def retention(self, topic, partition) -> None:
        """Takes away what was read."""
        tp = self._pick(topic, partition)
        bounds = self._bounds(tp)
        _, read = self.query.offsets_read().get(tp, (0, bounds.earliest))
        self.cluster.set(*tp, max(bounds.earliest, read), bounds.high, bounds.latest)

    @rule(seconds=st.sampled_from([0.05, 0.3, 10, 400, 1000]))
    def time_passes(self, seconds) -> None:
        """Views grow old, discovery falls due."""
        self.there.clock.now += seconds

    # What Spark does.

    @precondition(lambda self: self.planned is None)
    @rule()
    def plan(self) -> None:
        """Plans a batch, as far as the offset log."""
        if self.query.plan():
            if len(self.query.log) == 1:
                self._note_beginning()
            self.planned = self.query.ranges()

    @precondition(lambda self: self.planned is not None)
    @rule()
    def finish(self) -> None:
        """Reads it."""
        self.query.finish()
        self._is_as_planned()

    @rule(available_now=st.booleans(), most_bytes=st.none() | st.integers(1, 2000))
    def crash_and_restart(self, available_now, most_bytes) -> None:
        """Loses all but the checkpoint; the next run may have another limit, and may be one with an end."""
        options = self.query.options
        if self.limited:
            limits = replace(options.limits, max_bytes=most_bytes)
            self.query.options = replace(options, limits=limits)
        self.query.start(available_now=available_now)
        self._is_as_planned()
        if available_now:
            self._to_end()
            self.query.start()

    def teardown(self) -> None:
        """A last restart finds all that is left, everywhere."""
        if hasattr(self, "query"):
            self.there.clock.now += 1000
            self.query.start(available_now=True)
            self._is_as_planned()
            self._to_end()
            self.there.clock.now += 1000
            self._to_end()
            ends = self.stops if self.bounded else self.cluster.ends()
            wanted = {tp: (self.begins.get(tp, 0), end) for tp, end in ends.items()}
            assert self.query.offsets_read() == {
                tp: (begin, end) for tp, (begin, end) in wanted.items() if begin < end
            }
        self.patch.undo()

    def _to_end(self) -> None:
        for _ in range(500):
            if not self.query.plan():
                return
            if len(self.query.log) == 1:
                self._note_beginning()
            self.query.finish()
        raise AssertionError("a run with an end does not end")

    def _note_beginning(self) -> None:
        bounds = {tp: self._bounds(tp) for tp in self.cluster.ends()}
        latest = self.query.options.start.mode == "latest-offset"
        self.begins = {tp: b.latest if latest else b.earliest for tp, b in bounds.items()}
        self.stops = self.cluster.ends()

    def _is_as_planned(self) -> None:
        if self.planned:
            assert self.planned == self.query.read[-len(self.planned) :]
        self.planned = None
        self.query.offsets_read()

    def _pick(self, topic: int, partition: int) -> TopicPartition:
        name = f"t-{topic % len(self.cluster.topics_there)}"
        return TopicPartition(name, partition % len(self.cluster.topics_there[name].partitions))

    def _bounds(self, tp: TopicPartition):
        return self.cluster.topics_there[tp.topic].partitions[tp.partition]


STORY: list[tuple[str, tuple[Any, ...]]] = [
    ("produce", (0, 0, 7)), ("plan", ()), ("finish", ()), ("add_partition", (0,)), ("produce", (0, 2, 5)), ("open_transaction", (0, 1, 3)),
    ("time_passes", (1000,)), ("plan", ()), ("crash_and_restart", (False, None)), ("end_transactions", (0, 1)), ("add_topic", ()),
    ("produce", (1, 0, 4)), ("time_passes", (0.05,)), ("plan", ()), ("finish", ()), ("time_passes", (400,)), ("plan", ()), ("retention", (0, 0)),
    ("crash_and_restart", (False, 500)), ("retention", (0, 0)), ("produce", (0, 0, 9)), ("plan", ()), ("crash_and_restart", (True, None)),
    ("add_topic", ()), ("add_partition", (2,)), ("produce", (2, 1, 3)), ("time_passes", (1000,)), ("plan", ()), ("finish", ()),
]  # fmt: skip
"""What may happen to a query, each kind of it: a crash with a batch that is planned, new partitions and topics before and
after discovery, transactions that stay open, retention, and a run with an end."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("start", ["earliest-offset", "latest-offset"])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("early", [0, 5])
def test_a_story_of_all_that_happens(protocol, start, bounded, early):
    """The law, for one order of all events, with each limit and each way to share the work of a batch."""
    limits: list[tuple[Any, ...]] = [
        (None, None, 1, None, None, None), (1, None, 3, None, None, 5), (7, None, 1, 3, 4, None), (None, 60, 1, None, None, 6),
        (12, 500, 4, 2, None, "auto"), (None, 2000, 5, None, 5, None),
    ]  # fmt: skip
    for most, most_bytes, gaps, least, pieces, tasks in limits:
        law = ExactlyOnce()
        law.begin(protocol, start, most, most_bytes, gaps, least, pieces, tasks, bounded, early)
        for event, arguments in STORY:
            if event not in ("plan", "finish") or (law.planned is None) == (event == "plan"):
                getattr(law, event)(*arguments)
        law.teardown()


TestExactlyOnce = ExactlyOnce.TestCase
TestExactlyOnce.__doc__ = "Each offset is planned exactly once, whatever fails in between."
TestExactlyOnce.settings = runs(200, steps=30)
