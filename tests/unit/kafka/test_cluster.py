"""A cluster over cluster requests: a topic that is not known yet, and one that is not there."""

from __future__ import annotations

import re

import pytest

from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import BrokerError, UnknownTopicError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.retrying import Timeouts

TOPIC = {"t": TopicInfo("id", 2)}


class LateTopic(Cluster):
    """A cluster in which topic t shows up late: in the metadata, and after that at its leader."""

    names = list_offsets = group_offsets = topic_configs = brokers = commit = close = None  # type: ignore[assignment]
    servers, group, may_create = "here:9092", "", False
    timeouts = Timeouts(30.0, 60.0)

    def __init__(self, *, shown_at: float = 0.0, led_at: float = 0.0) -> None:
        self.now, self.shown_at, self.led_at = 0.0, shown_at, led_at
        self.clock = self

    def monotonic(self) -> float:
        """The time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    def described(self, _):
        """The topic, once it is shown."""
        return TOPIC if self.now >= self.shown_at else {}

    def bounds(self, partitions, **_):
        """Bounds of partitions whose leader knows of them."""
        if partitions and self.now < self.led_at:
            raise UnknownTopicError("unknown")
        return dict.fromkeys(partitions, Bounds(0, 0, 0))


def test_a_topic_that_shows_up_late_is_waited_for():
    """One just created is not known to every broker at once."""
    cluster = LateTopic(shown_at=3.0)

    assert cluster.topics(Topics(("t",))) == TOPIC


def test_a_pattern_that_no_topic_matches_is_told(monkeypatch, caplog):
    """An empty table has a reason; what a pattern is may be what is wrong."""
    monkeypatch.setattr(errors, "_warned", set())
    cluster = LateTopic()
    cluster.names = lambda: ["users-eu"]

    assert cluster.topics(Topics(pattern=re.compile("users-*"))) == {}
    (told,) = caplog.messages
    assert told.startswith(
        "No topic at 'here:9092' matches 'topic-pattern' = 'users-*', so there is"
    )
    assert "as in 'users-.*'" in told


def test_a_topic_that_every_look_misses_does_not_exist():
    """The error comes after a few seconds."""
    cluster = LateTopic(shown_at=1000.0)

    with pytest.raises(BrokerError, match="does not exist"):
        cluster.topics(Topics(("t",)))

    assert 4 < cluster.now < 7


def test_a_partition_that_its_leader_does_not_know_yet_is_waited_for():
    """As long as the metadata shows it: a large cluster needs its time for a new topic."""
    cluster = LateTopic(led_at=45.0)

    assert len(cluster.view(TOPIC, read_committed=True).bounds) == 2


def test_a_partition_that_its_leader_never_knows_is_an_error():
    """When the time for an answer is over."""
    cluster = LateTopic(led_at=1000.0)

    with pytest.raises(UnknownTopicError):
        cluster.view(TOPIC, read_committed=True)

    assert 60 <= cluster.now < 62


def test_a_topic_that_goes_meanwhile_is_not_in_the_view():
    """Whether that is lost data is for the caller to find out by checking again."""
    cluster = LateTopic(shown_at=1000.0, led_at=1000.0)

    view = cluster.view(TOPIC, read_committed=True)

    assert (view.bounds, dict(view.topic_ids)) == ({}, {})
