"""`read_changes` against a model of the table: writers, compaction, transactions, errors and restarts at saved positions."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from pyspark_upsert_kafka.connector.read_changes import TableChanges, _parsed
from pyspark_upsert_kafka.connector.read_request import checked_request
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.laws import runs
from tests.unit.connector.fake_cluster import stream_options
from tests.unit.connector.written_topics import COLUMNS, WrittenTopics, seeds


class Restarts(WrittenTopics):
    """Changes applied in their order, each with the position after it, give the table that a model has."""

    def __init__(self) -> None:
        super().__init__()
        self.sink: dict[tuple[TopicPartition, int], int] = {}
        self.seen: set[tuple[TopicPartition, int]] = set()
        self.position: str | None = None

    @initialize(
        start=st.sampled_from(["full", "earliest-offset"]),
        most=st.none() | st.integers(1, 12),
        pieces=st.none() | st.integers(1, 7),
        early=st.sampled_from([0, 10, 40]),
        seed=seeds,
    )
    def begin(self, start, most, pieces, early, seed) -> None:
        """A topic that may have messages."""
        self._write_before(early, seed)
        options = stream_options(
            topic=None,
            topic_pattern="t-.*",
            scan__startup__mode=start,
            maxOffsetsPerTrigger=most,
            minPartitions=pieces,
            key__format="csv",
            value__format="csv",
            **{"value.fields-include": "EXCEPT_KEY"},
        )
        self.request = checked_request(COLUMNS, options)
        self.restart()

    # What the reader does.

    @rule()
    def restart(self) -> None:
        """Reads on in another process, up to where the topics end by then, from the position that was saved last."""
        if hasattr(self, "changes"):
            self.changes.close()
        at = None if self.position is None else _parsed(self.position)
        self.changes = TableChanges(self.request, at, self.there.clock, stops_at_end=True)
        self.position = self.position or self.changes.position

    @rule(count=st.integers(1, 4), seed=seeds, at_once=st.sampled_from([1, 2, 1000]))
    def read(self, count, seed, at_once) -> None:
        """Some batches, each applied and its position saved, while others write and compact."""
        self._meanwhile(Random(seed), at_once)
        for _ in range(count):
            self._apply()
        self._calm()

    @rule(seed=seeds, at_once=st.sampled_from([1, 2]), after=st.integers(0, 3))
    def fail(self, seed, at_once, after) -> None:
        """An error of a request; the same reader goes on after it."""
        self._meanwhile(Random(seed), at_once, fails_after=after)
        with suppress(BrokerError):
            while self._apply():
                pass
        self._calm()

    @rule()
    def lose(self) -> None:
        """A batch that is never applied, nor its position saved: a kill before that."""
        next(self.changes, None)
        self.restart()

    def teardown(self) -> None:
        """A last run reads all that is left: the sink has the table."""
        if hasattr(self, "changes"):
            for tp, log in self.logs.items():
                log.open_at = None
                self._show(tp)
            self.there.clock.now += 1000
            self.restart()
            while self._apply():
                pass
            assert self.changes.caught_up
            for tp, log in self.logs.items():
                table = {key: n for _, key, n in log.history}
                sink = {key: n for (place, key), n in self.sink.items() if place == tp}
                assert {key: n for key, n in table.items() if n is not None} == sink
        self.patch.undo()

    # How it is done.

    def _apply(self) -> bool:
        """Applies a batch and saves its position; false = there is none left."""
        batch = next(self.changes, None)
        if batch is None:
            return False
        assert batch.num_rows > 0
        was_table = _parsed(self.position or "").is_table
        at = _parsed(self.changes.position)
        for row in batch.to_pylist():
            tp, offset = TopicPartition(row["_topic"], row["_partition"]), row["_offset"]
            # A partition of the table that was left half read is read again.
            assert was_table or (tp, offset) not in self.seen, "a message is given twice"
            assert offset < at.positions[tp]
            self.seen.add((tp, offset))
            if row["_change_type"] == "delete":
                self.sink.pop((tp, row["id"]), None)
            else:
                self.sink[tp, row["id"]] = row["n"]
        self.position = self.changes.position
        return True

    def _meanwhile(self, random: Random, at_once: int, fails_after: int | None = None) -> None:
        left = fails_after

        def happens(tp: TopicPartition) -> None:
            nonlocal left
            if left is not None:
                left -= 1
                if left < 0:
                    raise BrokerError("No broker answers.")
            self._happens(tp, random, 0.3)

        for tp, log in self.logs.items():
            log.at_once = at_once
            log.meanwhile = lambda tp=tp: happens(tp)


STORY: list[tuple[str, tuple[Any, ...]]] = [
    ("write", (0, [(0, False), (1, False), (0, False), (1, True), (2, False)])), ("write", (1, [(3, False), (0, False)])), ("fail", (1, 1, 1)),
    ("compact", (0, None)), ("read", (1, 1, 1)), ("lose", ()), ("restart", ()), ("open_transaction", (1,)), ("read", (2, 2, 1)), ("add_partition", ()),
    ("write", (2, [(3, False), (3, False)])), ("time_passes", (400,)), ("restart", ()), ("fail", (1, 2, 2)), ("read", (4, 3, 2)), ("compact", (1, 5)),
    ("commit_transaction", (1,)), ("restart", ()), ("read", (1, 3, 1)), ("lose", ()), ("add_topic", ()), ("write", (3, [(0, False), (0, True)])),
    ("time_passes", (400,)), ("restart", ()), ("read", (4, 4, 1000)), ("read", (4, 5, 1)),
]  # fmt: skip
"""What may happen, each kind of it: an error before, within and behind the table, a lost batch in each of them."""


@pytest.mark.parametrize("start", ["full", "earliest-offset"])
@pytest.mark.parametrize("early", [0, 10, 40])
def test_a_story_of_all_that_happens(start, early):
    """The law, for one order of all events."""
    for most, pieces in ((None, None), (1, 3), (12, 7), (None, 2)):
        law = Restarts()
        law.begin(start, most, pieces, early, seed=early)
        for event, arguments in STORY:
            getattr(law, event)(*arguments)
        law.teardown()


TestRestarts = Restarts.TestCase
TestRestarts.__doc__ = "Changes applied with the positions after them give the table."
TestRestarts.settings = runs(150, steps=30)


def test_a_position_names_the_partitions_of_the_table_that_are_read():
    """The table is begun again with the partition in which it was left, as of the same ends."""
    law = Restarts()
    law.begin("full", None, None, 10, seed=1)
    law.read(1, 0, 1000)
    at = _parsed(law.position)
    read = [tp for tp, begin in at.begins.items() if begin == at.positions[tp]]

    assert at.is_table
    assert read == [TopicPartition("t-0", 0)]
    law.teardown()
