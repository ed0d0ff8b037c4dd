"""How a stream's driver looks at its topics."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import view_lifetime_s
from pyspark_upsert_kafka.source.planning.observer import Observer
from tests.unit.source.fake_cluster import World, stream_options, world

HERE = StreamOffset({TopicPartition("t", 0): 0})


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker in memory with topic ``t``, and a clock that stands still."""
    found = world(monkeypatch)
    found.cluster.create("t")
    return found


def test_a_view_lives_for_a_fifth_of_a_second(there):
    """Within it the broker is not asked again."""
    observer = Observer(stream_options())
    first = observer.view(HERE)
    there.cluster.produce("t")
    there.clock.now += 0.19

    assert observer.view(HERE) is first
    there.clock.now += 0.02
    assert observer.view(HERE).latest == {TopicPartition("t", 0): 1}
    assert there.cluster.looks == 2


def test_everything_is_asked_for_anew(there):
    """The end of an ``availableNow`` run is what is there at that moment."""
    observer = Observer(stream_options())
    observer.view(HERE)
    there.cluster.produce("t")

    assert observer.current().latest == {TopicPartition("t", 0): 1}


def test_discovery_is_due_at_each_start_and_then_at_intervals(there):
    """However long the interval is."""
    observer = Observer(stream_options())

    assert observer.discovery_is_due
    observer.discover(HERE)
    assert not observer.discovery_is_due
    there.clock.now += 300
    assert observer.discovery_is_due


def test_discovery_interval_0_is_never_due_again(there):
    """After the start."""
    observer = Observer(stream_options(scan__topic_partition_discovery__interval="0"))
    observer.discover(HERE)
    there.clock.now += 1_000_000

    assert not observer.discovery_is_due


def test_a_discovery_shorter_than_a_view_lives_asks_no_more_often(there):
    """The interval is a wish, the broker's peace a must."""
    observer = Observer(stream_options(scan__topic_partition_discovery__interval="1ms"))
    observer.discover(HERE)
    there.clock.now += 0.1

    assert not observer.discovery_is_due


def test_only_a_discovery_looks_for_topics_of_the_pattern(there):
    """Listing all topics of a broker is dear."""
    observer = Observer(stream_options(topic=None, topic_pattern="t.*"))
    there.cluster.create("t2")

    assert set(observer.view(HERE).topic_ids) == {"t"}
    assert set(observer.discover(HERE).topic_ids) == {"t", "t2"}


def test_a_missing_dead_letter_topic_is_told_before_anything_is_read(there):
    """Not when the first message cannot be decoded."""
    options = stream_options(**{"error-handling.mode": "log", "error-handling.log.target": "dead"})

    with pytest.raises(BrokerError, match="dead"):
        Observer(options).begin()


def test_a_view_lives_shorter_than_a_fifth_of_a_second(there):
    """When that has passed it is no longer used, not a moment later."""
    observer = Observer(stream_options())
    there.clock.now = 0.0
    observer.view(HERE)
    there.clock.now += view_lifetime_s(1)

    assert not observer.is_fresh
