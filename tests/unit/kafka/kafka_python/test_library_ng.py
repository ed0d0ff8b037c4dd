"""Single requests over kafka-python-ng: what becomes of nodes, answers and leaders that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.kafka.failures import AttemptError, FailureKind
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from tests.unit.connector.fake_cluster import Clock

if IS_KAFKA_PYTHON_3:
    pytest.skip("kafka-python 3 has an admin client", allow_module_level=True)

from pyspark_upsert_kafka.kafka.kafka_python import library_ng

NODE = 1
UNKNOWN, NOT_ALLOWED = 3, 29


class Connections:
    """A client of kafka-python-ng whose node answers as planned; time passes only while it polls.

    Args:
        clock: The time.
        topics: The answer to a metadata request: (error code, name, leaders of the partitions).
        ready: Whether the node is connected.
        answers: Whether an answer ever comes.
    """

    def __init__(
        self,
        clock: Clock,
        topics: Sequence[tuple[int, str, Sequence[int]]] = (),
        *,
        ready: bool = True,
        answers: bool = True,
    ) -> None:
        self.clock, self.is_connected, self.answers = clock, ready, answers
        self.cluster = SimpleNamespace(broker_metadata=lambda node: node)
        self.answer = SimpleNamespace(
            topics=[
                (code, name, False, [(0, number, leader) for number, leader in enumerate(leaders)])
                for code, name, leaders in topics
            ]
        )

    def least_loaded_node(self) -> int:
        """The only node."""
        return NODE

    def ready(self, *_: object, **__: object) -> bool:
        """Whether the node is connected."""
        return self.is_connected

    def is_disconnected(self, _: int) -> bool:
        """Whether nobody listens there."""
        return not self.is_connected

    def poll(self, timeout_ms: int) -> None:
        """Time passes."""
        self.clock.sleep(timeout_ms / 1000)

    def send(self, *_: object) -> Any:
        """The answer."""
        return SimpleNamespace(is_done=self.answers, failed=lambda: False, value=self.answer)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves only while a client polls."""
    clock = Clock()
    monkeypatch.setattr(library_ng, "time", clock)
    return clock


def test_a_node_that_cannot_be_reached_is_an_error_at_once(clock):
    """Another node may answer the next attempt."""
    with pytest.raises(kafka_errors.KafkaConnectionError, match="node 1"):
        library_ng.send_to_any(Connections(clock, ready=False), "request", 5.0)

    assert clock.now == Clock().now


def test_an_answer_is_waited_for_as_long_as_the_timeout(clock):
    """A broker that hangs keeps its connections open."""
    with pytest.raises(kafka_errors.KafkaTimeoutError):
        library_ng.send_to_any(Connections(clock, answers=False), "request", 5.0)

    assert clock.now - Clock().now == pytest.approx(5.0, abs=0.2)


def test_topics_that_do_not_exist_are_left_out(clock):
    """Any other error of one is the error of the request."""
    client = Connections(clock, [(0, "t", [NODE, NODE]), (UNKNOWN, "gone", [])])
    assert library_ng.topic_leaders(client, None, 5.0) == {
        "t": {TopicPartition("t", 0): NODE, TopicPartition("t", 1): NODE}
    }

    with pytest.raises(AttemptError) as error:
        library_ng.topic_leaders(Connections(clock, [(NOT_ALLOWED, "t", [])]), ["t"], 5.0)
    assert error.value.failure.kind is FailureKind.FATAL


@pytest.mark.parametrize(
    ("leaders", "error"),
    [
        ([NODE], kafka_errors.UnknownTopicOrPartitionError),
        ([NODE, -1], kafka_errors.LeaderNotAvailableError),
    ],
)
def test_a_partition_without_a_leader_is_an_error(clock, leaders, error):
    """It is not known at all, or an election is under way."""
    client = Connections(clock, [(0, "t", leaders)])

    with pytest.raises(error, match="1"):
        library_ng.partition_leaders(client, [TopicPartition("t", 1)], 5.0)
