"""The alignment of partitions with markers of transactions, on a broker in memory that answers as Kafka does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pytest

from pyspark_upsert_kafka.connector.planning import batch_ends
from pyspark_upsert_kafka.connector.planning.batch_ends import RecordTimes
from pyspark_upsert_kafka.connector.planning.stream_reader import ReaderWithLimits
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.frozen_options import Position
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import INITIAL, Range, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import Alignment
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.unit.connector.fake_cluster import stream_options, table, world
from tests.unit.connector.fake_spark import needs_limits

COMMIT = 10**9
"""When all was committed: long after all events."""

Log = Sequence[tuple[int, bool]]
"""Of each offset the timestamp, and whether it is a message and no marker."""


class Broker:
    """Partitions of a topic; plays the connection and the reader."""

    def __init__(self, *partitions: Log) -> None:
        self.logs = {TopicPartition("t", n): log for n, log in enumerate(partitions)}
        self.read_ranges: list[tuple[int, int]] = []
        self.asked_for_settings = 0
        self.settings_of = {"t": "CreateTime", "u": "LogAppendTime"}
        bounds = {tp: Bounds(0, len(log), len(log)) for tp, log in self.logs.items()}
        self.view = ClusterView({"t": "id"}, bounds)

    @property
    def reads(self) -> int:
        """How often it was read."""
        return len(self.read_ranges)

    def reader(self, _: object) -> Broker:
        """Plays the client."""
        return self

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """The first offset at or after a time, be it that of a marker; else the latest."""
        found = {}
        for tp in view.bounds:
            times = [time for time, _ in self.logs[tp]]
            at = (n for n, time in enumerate(times) if time >= (position.timestamp_ms or 0))
            found[tp] = next(at, len(times))
        return found

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, dict[str, str]]:
        """Whose timestamps they are."""
        self.asked_for_settings += 1
        return {topic: dict.fromkeys(names, self.settings_of[topic]) for topic in topics}

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of a range, without markers."""
        self.read_ranges.append((range_.begin, range_.end))
        assert not range_.is_checked_after, "tasks see whether the topic is still the same"
        log = self.logs[TopicPartition(range_.topic, range_.partition)]
        found = [at for at in range(range_.begin, range_.end) if log[at][1]]
        nothing = BytesColumn.of([None] * len(found))
        times = [log[at][0] for at in found]
        yield RawBatch("t", range_.partition, nothing, nothing, found, timestamps=times)

    def batches(self, drift: int) -> list[list[int]]:
        """The timestamps that each batch reads."""
        times, alignment = RecordTimes(self, self), Alignment(drift, COMMIT)
        at, found = dict.fromkeys(self.logs, 0), []
        while at != self.view.latest:
            begin = times.start_batch(self.view, at, self.view.latest)
            asks = partial(times.first_after, self.view, begin, self.view.latest)
            ends = alignment.ends(begin, self.view.latest, asks)
            assert ends != at
            read = [
                time for tp, log in self.logs.items() for time, ok in log[at[tp] : ends[tp]] if ok
            ]
            found.append(sorted(read))
            at = ends
        return found


def in_transactions(times: Sequence[int], size: int) -> Log:
    """Messages with a marker after each so many of them."""
    log: list[tuple[int, bool]] = []
    for begin in range(0, len(times), size):
        log += [(time, True) for time in times[begin : begin + size]]
        log.append((COMMIT + begin, False))
    return log


@pytest.mark.parametrize("size", [1, 3, 20, 1000])
def test_markers_are_no_messages(size):
    """Whatever their times, no partition runs ahead of the slowest message that is left."""
    broker = Broker(
        in_transactions([1000 + n for n in range(60)], size),
        in_transactions([n // 20 * 200 for n in range(100)], size),
        [],
        [(n * 10, True) for n in range(50)],
    )
    read = [each for each in broker.batches(50) if each]

    assert sum(map(len, read)) == 210
    assert all(each[-1] - each[0] <= 50 for each in read)
    assert [each[0] for each in read] == sorted(each[0] for each in read)


def test_small_transactions_are_searched_in_few_reads():
    """A batch of 100,000 transactions costs no read for each."""
    broker = Broker(in_transactions(range(200_000), 1), [(0, True), (200_000, True)])

    batches = broker.batches(100_000)

    assert len(batches) <= 4
    assert broker.reads < 200


def test_offsets_of_messages_are_read_once():
    """Of a topic without transactions a message is read for each partition that has to wait."""
    broker = Broker([(n, True) for n in range(1000)], [(1000 + n, True) for n in range(10)])

    batches = broker.batches(100)

    assert len(batches) <= 12
    assert broker.reads <= 2 * len(batches)


@needs_limits
def test_a_stream_refuses_a_topic_that_it_finds_later(monkeypatch):
    """A query with a pattern looks for topics while it runs."""
    there = world(monkeypatch)
    monkeypatch.setattr(batch_ends, "load_client", lambda _: Broker())
    options = stream_options(
        topic=None, topic_pattern="t.*", scan__watermark__alignment__max_drift="1 min"
    )
    there.cluster.create("t1")
    there.cluster.produce("t1")
    there.cluster.topic_settings = {"message.timestamp.type": "CreateTime"}
    reader = ReaderWithLimits(table(options), options, there.clock)
    end = reader.next_offset(INITIAL, options.limits)
    assert end["topics"]["t1"]["positions"] == {"0": 1}

    there.cluster.create("t2")
    there.cluster.produce("t2")
    there.cluster.topic_settings = {"message.timestamp.type": "LogAppendTime"}
    there.clock.now += 1000
    with pytest.raises(OptionError, match="topic 't2' has"):
        reader.next_offset(end, options.limits)


@needs_limits
def test_a_topic_that_is_gone_while_its_times_are_asked_for_ends_the_batch_where_it_begins(
    monkeypatch,
):
    """Nothing is read unaligned; the next view shows whether the topic is gone."""
    there = world(monkeypatch)
    monkeypatch.setattr(batch_ends, "load_client", lambda _: Broker())
    options = stream_options(topic="t", scan__watermark__alignment__max_drift="1 min")
    there.cluster.create("t", partitions=2)
    there.cluster.produce("t")
    there.cluster.topic_settings = {"message.timestamp.type": "CreateTime"}
    there.cluster.stale = [dict(there.cluster.topics_there)] * 2
    there.cluster.delete("t")
    reader = ReaderWithLimits(table(options), options, there.clock)

    end = reader.next_offset(INITIAL, options.limits)

    assert end["topics"]["t"]["positions"] == {"0": 0, "1": 0}


def test_a_stretch_of_markers_is_read_in_steps_that_grow():
    """However many markers stand before the next message, few reads find it, and the first ones are small."""
    markers = [(COMMIT, False)] * 20_000
    broker = Broker([*markers, (5, True), (6, True)])
    times, end = RecordTimes(broker, broker), broker.view.latest
    begin = times.start_batch(broker.view, dict.fromkeys(end, 0), end)

    assert times.first_after(broker.view, begin, end, 5) == {TopicPartition("t", 0): 20_001}
    # One offset to see that it is a marker, and then each time four times as many.
    assert broker.read_ranges == [(0, 1), (0, 256), (256, 1280), (1280, 5376), (5376, 20_002)]


def test_what_arrives_later_is_seen_by_the_next_batch():
    """What was read stands for the batch that it was read for: its end moves on."""
    tp, log = TopicPartition("t", 0), [(COMMIT, False), (1, True)]
    broker = Broker(log)
    times = RecordTimes(broker, broker)
    begin = times.start_batch(broker.view, {tp: 0}, {tp: 2})
    assert times.first_after(broker.view, begin, {tp: 2}, 5) == {tp: 2}
    log += [(2, True), (9, True)]

    begin = times.start_batch(broker.view, {tp: 0}, {tp: 4})

    assert times.first_after(broker.view, begin, {tp: 4}, 5) == {tp: 3}


def test_a_partition_with_nothing_but_markers_is_read_when_a_message_comes():
    """That there was none is forgotten by the next batch, which may begin at the same place."""
    tp, log = TopicPartition("t", 0), [(1, True), (COMMIT, False)]
    broker = Broker(log)
    times = RecordTimes(broker, broker)
    times.start_batch(broker.view, {tp: 1}, {tp: 2})
    times.first_after(broker.view, {tp: 1}, {tp: 2}, 5)
    assert times.start_batch(broker.view, {tp: 1}, {tp: 2}) == {tp: 2}
    log.append((2, True))

    assert times.start_batch(broker.view, {tp: 1}, {tp: 3}) == {tp: 1}


def test_brokers_are_asked_once_whose_timestamps_a_topic_has():
    """Not for each batch, though topics may come."""
    broker = Broker([])
    times = RecordTimes(broker, broker)
    for _ in range(3):
        times.start_batch(broker.view, {}, {})
    assert broker.asked_for_settings == 1
    broker.settings_of["v"] = "CreateTime"
    times.start_batch(ClusterView({"t": "id", "v": "id-3"}, {}), {}, {})

    assert broker.asked_for_settings == 2


def test_times_of_the_broker_are_refused_whenever_a_topic_is_found():
    """They say nothing of the events."""
    broker = Broker([])
    times = RecordTimes(broker, broker)
    times.start_batch(broker.view, {}, {})

    with pytest.raises(OptionError, match=r"'u' has .* = LogAppendTime"):
        times.start_batch(ClusterView({"t": "id", "u": "id-2"}, {}), {}, {})


def test_an_offset_that_is_a_message_is_known_to_be_one():
    """It is read for once, also where the next batch begins at the same place."""
    tp = TopicPartition("t", 0)
    broker = Broker([(1000, True), (1001, True)])
    times = RecordTimes(broker, broker)
    for _ in range(3):
        begin = times.start_batch(broker.view, {tp: 0}, {tp: 2})
        assert times.first_after(broker.view, begin, {tp: 2}, 5) == {tp: 0}

    assert broker.read_ranges == [(0, 1)]


@pytest.mark.parametrize(("count", "left"), [(10_000, 10_000), (10_001, 0)])
def test_what_is_known_of_messages_does_not_grow(count, left):
    """A stream may run for ever."""
    broker = Broker([])
    times = RecordTimes(broker, broker)
    times._messages = {(TopicPartition("t", 0), at) for at in range(count)}
    times.start_batch(broker.view, {}, {})

    assert len(times._messages) == left
