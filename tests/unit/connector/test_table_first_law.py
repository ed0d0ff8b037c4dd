"""A stream that begins with the table, against a model of it: writers, compaction, kills and restarts in any order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from pyspark_upsert_kafka.core.positions.offsets import TopicPartition, stream_offset
from tests.laws import runs
from tests.unit.connector.fake_cluster import stream_options
from tests.unit.connector.fake_spark import KNOWS_LIMITS, PROTOCOLS, Query
from tests.unit.connector.written_topics import COLUMNS, KEYS, WrittenTopics, seeds


class TableFirst(WrittenTopics):
    """After each batch a sink has the table as of the batch's end, whatever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.sink: dict[tuple[TopicPartition, int], int] = {}
        self.read_offsets: set[tuple[TopicPartition, int]] = set()

    @initialize(
        protocol=st.sampled_from(PROTOCOLS),
        most=st.none() | st.integers(1, 12),
        pieces=st.none() | st.integers(1, 7),
        deletes=st.sampled_from(["emit", "drop"]),
        early=st.sampled_from([0, 10, 40]),
        seed=seeds,
    )
    def begin(self, protocol, most, pieces, deletes, early, seed) -> None:
        """Starts a query over a topic that may have messages."""
        limited = protocol is PROTOCOLS[0] and KNOWS_LIMITS
        self._write_before(early, seed)
        self.deletes = deletes
        self.options = stream_options(
            topic=None,
            topic_pattern="t-.*",
            scan__startup__mode="full",
            maxOffsetsPerTrigger=most if limited else None,
            minPartitions=pieces,
            key__format="csv",
            value__format="csv",
            **{"value.fields-include": "EXCEPT_KEY", "scan.deletes": deletes},
        )
        self.query = Query(self.there, self.options, protocol, COLUMNS).start()

    # What Spark and the machine do.

    @rule()
    def plan(self) -> None:
        """Plans a batch, as far as the offset log, unless one is planned."""
        if self.query.done == len(self.query.log):
            self.query.plan()

    @rule(seed=seeds, at_once=st.sampled_from([1, 2, 1000]))
    def read(self, seed, at_once) -> None:
        """Reads the batch while its partitions are written and compacted, and hands it over."""
        self.plan()
        if self.query.done < len(self.query.log):
            self._finish(self._rows(Random(seed), at_once))

    @rule(seed=seeds, at_once=st.sampled_from([1, 2]))
    def read_in_part(self, seed, at_once) -> None:
        """A task that is killed: what it has read is lost, and read again."""
        self.plan()
        if self.query.done < len(self.query.log):
            rows = self._rows(Random(seed), at_once)
            next(rows, None)
            self._calm()

    @rule(pieces=st.none() | st.integers(1, 7))
    def crash_and_restart(self, pieces) -> None:
        """Loses all but the checkpoint; the next run has other options."""
        self._restart(pieces)

    def teardown(self) -> None:
        """A last run reads all that is left: the sink has the table."""
        if hasattr(self, "query"):
            for tp, log in self.logs.items():
                log.open_at = None
                self._show(tp)
            self._restart(3)
            for _ in range(500):
                self.there.clock.now += 1000
                if self.query.done == len(self.query.log) and not self.query.plan():
                    break
                self._finish(self._rows(Random(0), 1000, pace=0.0))
            for tp, log in self.logs.items():
                table, sink = self._table_of(tp, log.length), self._in_sink(tp)
                # A sink that hears of no delete keeps the rows.
                assert table == sink if self.deletes == "emit" else table.items() <= sink.items()
        self.patch.undo()

    # What must hold.

    def _finish(self, rows: Iterator[dict[str, Any]]) -> None:
        batch, found = self.query.done, list(rows)
        self._calm()
        ends = self._ends(batch)
        before = self._ends(batch - 1) if batch else {}
        if batch == 0:
            seen = [(row["_topic"], row["_partition"], row["id"]) for row in found]
            assert len(seen) == len(set(seen)), "a key is there twice"
            assert {row["_change_type"] for row in found} <= {"upsert"}
        for row in found:
            tp, at = TopicPartition(row["_topic"], row["_partition"]), row["_offset"]
            assert before.get(tp, 0) <= at < ends[tp]
            assert (tp, at) not in self.read_offsets, "a message is read twice"
            self.read_offsets.add((tp, at))
            if row["_change_type"] == "delete":
                self.sink.pop((tp, row["id"]), None)
            else:
                self.sink[tp, row["id"]] = row["n"]
        self.query.done += 1
        if self.deletes == "emit" or batch == 0:
            for tp, end in ends.items():
                self._check(tp, end, first=batch == 0)

    def _check(self, tp: TopicPartition, end: int, *, first: bool) -> None:
        """Each key is as of the end, unless compaction took that: then it is as before, and its newer change follows."""
        table, sink = self._table_of(tp, end), self._in_sink(tp)
        for key in range(KEYS):
            if sink.get(key) == table.get(key):
                continue
            changes = [(at, n) for at, found, n in self.logs[tp].history if found == key]
            assert any(at >= end for at, _ in changes), f"key {key} of {tp} is lost"
            earlier = set() if first else {n for at, n in changes if at < end}
            assert sink.get(key) in {None, *earlier}, f"key {key} of {tp} was never so"

    def _table_of(self, tp: TopicPartition, end: int) -> dict[int, int]:
        last = {key: n for at, key, n in self.logs[tp].history if at < end}
        return {key: n for key, n in last.items() if n is not None}

    def _in_sink(self, tp: TopicPartition) -> dict[int, int]:
        return {key: n for (place, key), n in self.sink.items() if place == tp}

    def _ends(self, batch: int) -> dict[TopicPartition, int]:
        offset = stream_offset(json.loads(self.query.log[batch]))
        assert offset is not None
        assert offset.is_table == (batch == 0)
        return dict(offset.positions)

    # How it is done.

    def _rows(self, random: Random, at_once: int, pace: float = 0.4) -> Iterator[dict[str, Any]]:
        """The rows of the batch that is planned; before each request something may happen in its partition."""
        for tp, log in self.logs.items():
            log.at_once = at_once
            log.meanwhile = lambda tp=tp: self._happens(tp, random, pace)
        for part in self.query.tasks():
            for batch in self.query.reader.read(part):
                yield from batch.to_pylist()

    def _restart(self, pieces: int | None) -> None:
        """Without `Query.start`, which would finish the planned batch at once."""
        done, self.query.done = self.query.done, len(self.query.log)
        self.query.options = replace(self.options, min_partitions=pieces)
        self.query.start()
        self.query.done = done


STORY: list[tuple[str, tuple[Any, ...]]] = [
    ("write", (0, [(0, False), (1, False), (0, False), (1, True), (2, False)])), ("plan", ()), ("write", (0, [(0, False), (2, True)])),
    ("compact", (0, None)), ("read_in_part", (1, 1)), ("crash_and_restart", (3,)), ("open_transaction", (1,)), ("read", (2, 2)), ("add_partition", ()),
    ("write", (2, [(3, False), (3, False)])), ("time_passes", (400,)), ("plan", ()), ("compact", (1, 5)), ("commit_transaction", (1,)), ("crash_and_restart", (None,)),
    ("read", (3, 1)), ("add_topic", ()), ("write", (3, [(0, False), (0, True)])), ("time_passes", (400,)), ("read", (4, 1000)), ("read", (5, 1)),
]  # fmt: skip
"""What may happen to a query, each kind of it: writes, deletes, compaction and transactions before and while the table is
read, a task that is killed, a crash before and behind the table, new partitions and topics."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("deletes", ["emit", "drop"])
@pytest.mark.parametrize("early", [0, 10, 40])
def test_a_story_of_all_that_happens(protocol, deletes, early):
    """The law, for one order of all events, with each way to share the work of a batch."""
    for most, pieces in ((None, None), (1, 3), (12, 7), (None, 2)):
        law = TableFirst()
        law.begin(protocol, most, pieces, deletes, early, seed=early)
        for event, arguments in STORY:
            getattr(law, event)(*arguments)
        law.teardown()


TestTableFirst = TableFirst.TestCase
TestTableFirst.__doc__ = "After each batch a sink has the table as of the batch's end."
TestTableFirst.settings = runs(150, steps=30)
