"""Batches within a number of bytes, by the sizes of messages that the driver has seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.planning.batch_ends import MessageSizes
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.laws import law
from tests.unit.connector.fake_cluster import FakeCluster, World, stream_options, world
from tests.unit.connector.fake_spark import Query, needs_limits

A, B = TopicPartition("t", 0), TopicPartition("t", 1)

NO_LIMIT = 2**62


class Batches:
    """Batches of a topic, one after the other, as `MessageSizes` ends them."""

    def __init__(self, sizes, *backlogs, limit):
        self.cluster = FakeCluster(sizes=sizes)
        self.cluster.create("t", len(backlogs))
        for partition, count in enumerate(backlogs):
            self.cluster.produce("t", partition, count)
        self.sizes, self.limit = MessageSizes(self.cluster), limit
        self.now = dict.fromkeys(self.cluster.ends(), 0)

    def next(self, limit=None):
        """How many offsets of each partition the next batch has."""
        view = self.cluster.view(self.cluster.existing(["t"]), read_committed=True)
        ends = self.sizes.ends(view, self.now, view.latest, limit or self.limit)
        read = [end - self.now[tp] for tp, end in sorted(ends.items())]
        self.now = ends
        return read

    def bytes_between(self, begin, end):
        """The bytes of the messages of a batch."""
        return sum(
            self.cluster.sizes(tp, at) or 0 for tp in end for at in range(begin[tp], end[tp])
        )


def of_size(size):
    """All messages have this size."""
    return lambda tp, at: size


def test_the_first_batch_has_a_thousand_messages_of_a_partition():
    """Little is known before; the next ones are as large as the limit says."""
    batches = Batches(of_size(10), 5000, 700, limit=40_000)

    assert batches.next() == [1000, 700]
    assert batches.next() == [4000, 0]
    assert batches.next() == [0, 0]


def test_a_new_partition_begins_with_a_thousand_messages():
    """The others go on."""
    batches = Batches(of_size(10), 5000, limit=40_000)
    batches.next()
    batches.cluster.add_partition("t")
    batches.cluster.produce("t", 1, 3000)
    batches.now[B] = 0

    assert batches.next() == [3200, 800]


def test_an_empty_partition_begins_when_it_has_messages():
    """As long as it is empty nothing is known of it."""
    batches = Batches(of_size(10), 5000, 0, limit=40_000)
    batches.next()
    batches.cluster.produce("t", 1, 3000)

    assert batches.next() == [3200, 800]


def test_large_messages_are_seen_before_the_first_batch():
    """A thousand of them would be far too much."""
    batches = Batches(of_size(5000), 5000, limit=40_000)

    assert [batches.next() for _ in range(3)] == [[8], [8], [8]]


def test_bytes_are_shared_by_backlog():
    """In proportion, whatever the sizes of messages are; each partition goes forward."""
    sizes = {A: 10, B: 1000}
    batches = Batches(lambda tp, _: sizes[tp], 1000, 100, limit=11_000)

    assert batches.next() == [100, 10]
    assert batches.next(limit=11_000 // 50) == [2, 1]


@pytest.mark.parametrize("limit", [1, 99])
def test_a_limit_below_one_message_lets_each_partition_go_forward(limit):
    """By one message: the query would stand still for ever."""
    batches = Batches(of_size(100), 3, 2, limit=limit)

    assert [batches.next() for _ in range(4)] == [[1, 1], [1, 1], [1, 0], [0, 0]]


def test_offsets_before_the_first_message_count_nothing():
    """Compaction may have left a few messages behind millions of offsets; a partition may have nothing else."""
    batches = Batches(lambda tp, at: 100 if at >= 90_000 and tp == A else None, 95_000, 80_000, limit=1000)  # fmt: skip

    assert batches.next() == [90_010, 80_000]
    steps = [each.size for each in batches.cluster.read_ranges if each.partition == 0]
    assert steps == [256, 1024, 4096, 16_384, 65_536, 95_000 - 87_296], "each four times as many"
    assert batches.next() == [10, 0]


def test_messages_that_become_larger_are_seen_at_once():
    """A look at the begin of each batch shows them; that they become smaller again is believed little by little."""
    batches = Batches(lambda tp, at: 1000 if 2000 <= at < 2100 else 100, 9000, limit=100_000)

    found = [batches.next()[0] for _ in range(8)]

    assert found == [1000, 1000, 221, 362, 531, 694, 819, 900]


def test_a_lone_large_message_does_not_stop_a_stream():
    """It is larger than the limit, and goes by itself."""
    batches = Batches(lambda tp, at: 50_000 if at == 5 else 10, 1000, limit=1000)
    for _ in range(2000):
        if batches.next() == [0]:
            break

    assert batches.now == {A: 1000}


def test_a_few_partitions_are_looked_at_before_a_batch():
    """A thousand looks would take seconds; the others are taken for similar, until it is their turn."""
    batches = Batches(of_size(100), *[2000] * 25, limit=50_000)

    assert batches.next() == [20] * 25
    looked = [{each.partition for each in batches.cluster.read_ranges}]
    for _ in range(2):
        batches.cluster.read_ranges.clear()
        assert batches.next() == [20] * 25
        looked.append({each.partition for each in batches.cluster.read_ranges})
    assert [len(each) for each in looked] == [10, 10, 10]
    assert set.union(*looked) == set(range(25))


def test_nothing_is_looked_at_without_need():
    """Where ten times as many bytes would do no harm, and before a thousand offsets have come."""
    batches = Batches(of_size(10), 2000, limit=1_000_000)
    batches.next()
    batches.cluster.read_ranges.clear()
    assert batches.next() == [1000]
    assert batches.cluster.read_ranges == []
    batches.cluster.produce("t", 0, 500)
    assert batches.next(limit=4000) == [400]
    assert len(batches.cluster.read_ranges) == 1
    batches.cluster.produce("t", 0, 300)
    assert batches.next(limit=4000) == [400]
    assert len(batches.cluster.read_ranges) == 1


@pytest.mark.parametrize(("limit", "looks"), [(100_000, 0), (99_999, 1)])
def test_what_could_be_ten_times_as_much_is_looked_at(limit, looks):
    """A thousand messages of ten bytes: with more than the limit, and not with as much."""
    batches = Batches(of_size(10), 2000, limit=1_000_000)
    batches.next()
    batches.cluster.read_ranges.clear()
    batches.next(limit)

    assert len(batches.cluster.read_ranges) == looks


def test_few_large_messages_are_read_for_a_look():
    """About a megabyte, and once it is known how large they are, no more offsets than that."""
    batches = Batches(of_size(300_000), 400, limit=3_000_000)
    batches.next()
    batches.cluster.produce("t", 0, 2000)
    batches.cluster.read_ranges.clear()
    batches.next()

    assert [each.size for each in batches.cluster.read_ranges] == [3]


def test_a_topic_that_is_gone_is_for_the_tasks_to_tell():
    """Nothing is seen of it, and nothing raised."""
    batches = Batches(of_size(10), 50, limit=100)
    view = batches.cluster.view(batches.cluster.existing(["t"]), read_committed=True)
    batches.cluster.delete("t")

    assert batches.sizes.ends(view, {A: 0}, {A: 50}, 100) == {A: 50}


messages = st.lists(st.none() | st.integers(0, 200) | st.integers(0, 3000), max_size=60)


@law(200)
@given(st.lists(messages, min_size=1, max_size=12), st.lists(st.integers(1, 5000), min_size=1))
def test_batches_come_to_an_end(partitions, limits):
    """Whatever sizes and gaps there are and however the limit changes, every partition goes forward, to its end and no further."""
    batches = Batches(lambda tp, at: partitions[tp.partition][at], *map(len, partitions), limit=1)
    latest = batches.cluster.ends()
    for number in range(61):
        before = batches.now
        batches.next(limits[number % len(limits)])
        assert all(
            before[tp] < at <= latest[tp] or before[tp] == at == latest[tp]
            for tp, at in batches.now.items()
        )

    assert batches.now == latest


@law(200)
@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 1500)), min_size=1, max_size=9),
    st.integers(1, 50_000),
)
def test_a_batch_has_no_more_bytes_than_the_limit(partitions, limit):
    """But for one message of each partition, if messages of a partition are of one size."""
    batches = Batches(
        lambda tp, at: partitions[tp.partition][0], *(count for _, count in partitions), limit=limit
    )
    for _ in range(5):
        before = batches.now
        batches.next()
        most = max(limit, 0) + sum(size for size, _ in partitions)
        assert batches.bytes_between(before, batches.now) <= most


@needs_limits
def test_a_stream_is_read_within_its_bytes(monkeypatch):
    """The smaller of two bounds counts; a run with an end reads to it, batch by batch; a restart begins anew."""
    there: World = world(monkeypatch)
    there.cluster.create("t")
    there.cluster.produce("t", 0, 3000)
    bytes_alone = stream_options(maxBytesPerTrigger=90_000)
    query = Query(there, bytes_alone).start(available_now=True)
    while query.trigger():
        pass
    assert [each.size for each in query.read] == [900, 900, 900, 300]

    there.cluster.produce("t", 0, 2000)
    query.options = stream_options(maxBytesPerTrigger="64 mb", maxOffsetsPerTrigger=700)
    query.start(available_now=True)
    while query.trigger():
        pass
    assert [each.size for each in query.read[4:]] == [700, 700, 600]
    assert query.offsets_read() == {A: (0, 5000)}


@needs_limits
def test_the_first_batch_of_a_table_is_whole(monkeypatch):
    """It is not cut by bytes either; the changes that follow are."""
    there = world(monkeypatch)
    there.cluster.create("t")
    there.cluster.produce("t", 0, 3000)
    query = Query(
        there, stream_options(maxBytesPerTrigger=1000, scan__startup__mode="full")
    ).start()
    query.trigger()
    there.cluster.produce("t", 0, 20)
    there.clock.now += 1
    query.trigger()

    assert [(each.begin, each.end) for each in query.read] == [(0, 3000), (3000, 3010)]


def test_of_what_nothing_is_known_a_message_has_a_byte():
    """What was seen elsewhere says more, and what was seen of a partition itself the most."""
    sizes = MessageSizes(FakeCluster())
    assert sizes._means({A: 0, B: 0}) == {A: 1, B: 1}
    sizes._remember(A, 10.5, 0)

    assert sizes._means({A: 0, B: 0}) == {A: 11, B: 11}
    sizes._remember(B, 0.5, 0)
    assert sizes._means({A: 0, B: 0, TopicPartition("t", 2): 0}) == {
        A: 11,
        B: 1,
        TopicPartition("t", 2): 6,
    }


@pytest.mark.parametrize(("read", "looked"), [(999, []), (1000, [A])])
def test_a_partition_is_looked_at_again_after_a_thousand_offsets(read, looked):
    """If the next batch could exceed the limit."""
    sizes = MessageSizes(FakeCluster())
    sizes._remember(A, 10.0, 0)

    assert sizes._to_look_at({A: 0}, {A: read}, limit=100) == looked
