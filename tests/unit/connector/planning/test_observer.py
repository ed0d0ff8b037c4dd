"""How a stream's driver looks at its topics."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.connector.planning.topic_observer import Observer, view_lifetime_s
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition
from tests.unit.connector.fake_cluster import World, stream_options, world

HERE = StreamOffset({TopicPartition("t", 0): 0})


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker in memory with topic ``t``, and a clock that stands still."""
    found = world(monkeypatch)
    found.cluster.create("t")
    return found


def test_a_view_lives_for_a_fifth_of_a_second(there):
    """Within it the broker is not asked again."""
    observer = Observer(stream_options(), there.clock)
    first = observer.view(HERE)
    there.cluster.produce("t")
    there.clock.now += 0.19

    assert observer.view(HERE) is first
    there.clock.now += 0.02
    assert observer.view(HERE).latest == {TopicPartition("t", 0): 1}
    assert there.cluster.looks == 2


@pytest.mark.parametrize(
    ("partitions", "seconds"),
    [(0, 0.2), (1, 0.2), (100, 0.2), (500, 1.0), (1000, 2.0), (10_000, 20.0)],
)
def test_many_partitions_are_looked_at_less_often(partitions, seconds):
    """A look costs by the partition, so that its share of the time stays the same."""
    assert view_lifetime_s(partitions) == pytest.approx(seconds)


def test_a_look_at_a_moment_is_one_since_it(there):
    """And none since any later one."""
    observer = Observer(stream_options(), there.clock)
    observer.view(HERE)

    assert observer.looked_since(there.clock.now)
    assert not observer.looked_since(there.clock.now + 0.001)


def test_everything_is_asked_for_anew(there):
    """The end of an ``availableNow`` run is what is there at that moment."""
    observer = Observer(stream_options(), there.clock)
    observer.view(HERE)
    there.cluster.produce("t")

    assert observer.current().latest == {TopicPartition("t", 0): 1}


def test_discovery_is_due_at_each_start_and_then_at_intervals(there):
    """However long the interval is."""
    observer = Observer(stream_options(), there.clock)

    assert observer.discovery_is_due
    observer.discover(HERE)
    assert not observer.discovery_is_due
    there.clock.now += 300
    assert observer.discovery_is_due


def test_discovery_interval_0_is_never_due_again(there):
    """After the start."""
    observer = Observer(stream_options(scan__topic_partition_discovery__interval="0"), there.clock)
    observer.discover(HERE)
    there.clock.now += 1_000_000

    assert not observer.discovery_is_due


def test_a_discovery_shorter_than_a_view_lives_asks_no_more_often(there):
    """The interval is a wish, the broker's peace a must."""
    observer = Observer(
        stream_options(scan__topic_partition_discovery__interval="1ms"), there.clock
    )
    observer.discover(HERE)
    there.clock.now += 0.1

    assert not observer.discovery_is_due


def test_only_a_discovery_looks_for_topics_of_the_pattern(there):
    """Listing all topics of a broker is dear."""
    observer = Observer(stream_options(topic=None, topic_pattern="t.*"), there.clock)
    there.cluster.create("t2")

    assert set(observer.view(HERE).topic_ids) == {"t"}
    assert set(observer.discover(HERE).topic_ids) == {"t", "t2"}


def test_a_missing_dead_letter_topic_is_told_before_anything_is_read(there):
    """Not when the first message cannot be decoded."""
    options = stream_options(**{"error-handling.mode": "log", "error-handling.log.target": "dead"})

    with pytest.raises(BrokerError, match="dead"):
        Observer(options, there.clock).begin()


def test_a_view_lives_shorter_than_a_fifth_of_a_second(there):
    """When that has passed it is no longer used, not a moment later."""
    observer = Observer(stream_options(), there.clock)
    there.clock.now = 0.0
    observer.view(HERE)
    there.clock.now += view_lifetime_s(1)

    assert not observer.is_fresh


def test_while_nothing_changes_the_ends_alone_are_looked_up(there):
    """At every tenth life of a view the whole is: a topic may be a new one."""
    observer = Observer(stream_options(), there.clock)
    assert not observer.is_unchanged()
    there.clock.now = 0.0
    observer.view(HERE)
    there.clock.now = 1.9
    assert observer.is_unchanged()
    assert observer.is_fresh
    assert (there.cluster.looks, there.cluster.least_looks) == (1, 1)
    there.clock.now = 10 * view_lifetime_s(1)
    assert not observer.is_unchanged()
    assert (there.cluster.looks, there.cluster.least_looks) == (1, 1)


def test_a_message_is_a_change(there):
    """The view is not made to live longer then."""
    observer = Observer(stream_options(), there.clock)
    observer.view(HERE)
    there.clock.now += 0.3
    there.cluster.produce("t")

    assert not observer.is_unchanged()
    assert not observer.is_fresh


def test_whether_a_view_is_of_a_time_after_a_question(there):
    """One of the same moment is."""
    observer = Observer(stream_options(), there.clock)
    assert not observer.looked_since(there.clock.now)
    observer.view(HERE)

    assert observer.looked_since(there.clock.now)
    assert not observer.looked_since(there.clock.now + 0.001)


@pytest.mark.parametrize(
    ("partitions", "waits", "is_stale"), [(1, 0.2, True), (500, 1.0, True), (1000, 1.0, False)]
)
def test_waiting_for_the_next_view_takes_a_second_at_most(there, partitions, waits, is_stale):
    """Spark asks again: a query over very many partitions can be stopped meanwhile."""
    there.cluster.create("t", partitions)
    begin = there.clock.now
    observer = Observer(stream_options(), there.clock)
    assert observer.wait_until_stale()
    assert there.clock.now == begin
    observer.view(HERE)

    assert observer.wait_until_stale() is is_stale
    assert there.clock.now - begin == pytest.approx(waits)
    assert observer.wait_until_stale()


def test_a_view_that_is_like_the_last_one_is_the_last_one(there):
    """A new object means that something has changed."""
    observer = Observer(stream_options(), there.clock)
    first = observer.current()
    assert observer.current() is first
    there.cluster.produce("t")

    assert observer.current() is not first


def test_topics_that_the_options_no_longer_name_are_not_asked_for(there):
    """A checkpoint may hold some: by name, and by a pattern."""
    there.cluster.create("t2")
    offset = StreamOffset({TopicPartition(topic, 0): 0 for topic in ("t", "t2", "u")})
    asked = []
    existing = there.cluster.existing
    there.cluster.existing = lambda names: asked.append([*names]) or existing(names)
    for options in (stream_options(), stream_options(topic=None, topic_pattern="t.+")):
        Observer(options, there.clock)._existing(offset)

    assert asked == [["t"], ["t2"]]
