"""Whether a topic is still the one that was planned, and how often brokers are asked for it, on a clock that the test moves."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka import loss_checks
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks, PlannedTopic
from tests.unit.connector.fake_cluster import Clock

SAME, OTHER = TopicInfo("id", 2), TopicInfo("other", 2)


class World:
    """A broker that tells of one topic, and counts how often it is asked."""

    def __init__(self, topic: TopicInfo | None) -> None:
        self.topic, self.clock, self.asked = topic, Clock(), 0

    def _lookup(self) -> TopicInfo | None:
        self.asked += 1
        return self.topic

    def planned(self, partition: int = 0, id_: str = "id", servers: str = "here") -> PlannedTopic:
        """A range of the topic."""
        range_ = Range("t", partition, 5, 9, id_)
        return PlannedTopic(range_, servers, self._lookup, LossChecks(self.clock))


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has asked for no topic."""
    monkeypatch.setattr(loss_checks, "_confirmed", {})
    monkeypatch.setattr(loss_checks, "_lost", {})


@pytest.mark.parametrize(
    ("topic", "partition", "id_", "reason"),
    [
        (SAME, 0, "id", None),
        (SAME, 1, "id", None),
        (SAME, 2, "id", "the topic was deleted while it was read"),
        (None, 0, "id", "the topic was deleted while it was read"),
        (OTHER, 0, "id", "its id is another"),
        # Brokers before Kafka 2.8 know no ids.
        (TopicInfo("", 2), 0, "id", None),
        (OTHER, 0, "", None),
    ],
)
def test_one_lookup(topic: TopicInfo | None, partition: int, id_: str, reason: str | None) -> None:
    """It names the offset that is wanted."""
    loss = World(topic).planned(partition, id_).check(7)

    if reason is None:
        assert loss is None
    else:
        assert loss is not None
        assert reason in loss.reason
        assert (loss.topic, loss.partition, loss.wanted, loss.earliest) == ("t", partition, 7, None)


def test_before_the_first_message_an_answer_of_the_last_second_is_good() -> None:
    """Many ranges of a topic are read at the same time; after the last message brokers are always asked."""
    world = World(SAME)
    assert world.planned(0).loss_before() is None
    world.clock.now += 0.9
    assert world.planned(1).loss_before() is None
    assert world.asked == 1
    assert world.planned(1).loss_after() is None
    assert world.asked == 2
    world.clock.now += 1.0
    assert world.planned(1).loss_before() is None
    assert world.asked == 3


@pytest.mark.parametrize("other", [{"servers": "there"}, {"id_": "another"}])
def test_an_answer_is_good_for_its_topic_alone(other: dict[str, str]) -> None:
    """Of the same brokers, with the same id."""
    world = World(SAME)
    world.planned().loss_before()
    world.planned(**other).loss_before()

    assert world.asked > 1


def test_without_an_id_nothing_is_asked() -> None:
    """No broker could tell one topic from another."""
    world = World(None)
    planned = world.planned(id_="")

    assert planned.loss_before() is None
    assert planned.loss_after() is None
    assert world.asked == 0


def test_a_loss_is_certain_after_ten_seconds_and_for_the_next_partitions_at_once() -> None:
    """One more lookup goes on with those of before, within a second; then it takes ten seconds again."""
    world = World(None)
    assert world.planned(0).loss_before() is not None
    assert world.asked == 11
    assert world.planned(1).loss_before() is not None
    assert world.asked == 12
    world.clock.now += 1.0
    assert world.planned(1).loss_before() is not None
    assert world.asked == 12 + 11


def test_a_topic_that_is_there_again_is_no_loss() -> None:
    """A lookup that finds it counts, and the next one starts from the beginning."""
    world = World(None)
    world.planned(0).loss_before()
    world.topic = SAME
    assert world.planned(1).loss_before() is None
    world.topic, world.clock.now = None, world.clock.now + 1.0
    asked = world.asked
    assert world.planned(1).loss_before() is not None
    assert world.asked == asked + 11


def test_a_loss_found_while_reading_is_known_to_the_next_partition() -> None:
    """Whoever is certain says so."""
    world = World(None)
    world.planned(0).note_loss()

    assert world.planned(1).loss_before() is not None
    assert world.asked == 1


@pytest.mark.parametrize(("known", "left"), [(998, 999), (999, 1000), (1000, 1)])
def test_what_is_known_of_topics_does_not_grow(
    monkeypatch: pytest.MonkeyPatch, known: int, left: int
) -> None:
    """A process may read any number of them: a thousand are remembered, and then none."""
    names = [f"t{number}" for number in range(known)]
    monkeypatch.setattr(loss_checks, "_confirmed", {("here", each): ("id", 0.0) for each in names})
    monkeypatch.setattr(loss_checks, "_lost", {("here", each, "id"): 0.0 for each in names})
    World(SAME).planned().loss_before()
    World(None).planned().note_loss()

    assert (len(loss_checks._confirmed), len(loss_checks._lost)) == (left, left)
