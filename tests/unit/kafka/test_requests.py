"""What is made of the requests of each client."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest
from kafka.errors import KafkaError

from pyspark_upsert_kafka.core.options.frozen_options import Position
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.cluster import (
    EARLIEST,
    LATEST,
    BackgroundCommits,
    Cluster,
    OffsetLookup,
    answered_offset,
    answered_topic,
)
from pyspark_upsert_kafka.kafka.failures import AttemptError, FailureKind

TP = TopicPartition("t", 0)


class Answers(Cluster):
    """Answers offset lookups from a table."""

    names = described = create = group_offsets = topic_configs = brokers = commit = close = None  # type: ignore[assignment]

    def __init__(self, answers: dict[OffsetLookup, int]) -> None:
        self.answers = answers
        self.lookups: list[OffsetLookup] = []

    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        """The answer of the table, for every partition."""
        self.lookups += lookups
        return [dict.fromkeys(partitions, self.answers[lookup]) for lookup in lookups]


@pytest.mark.parametrize(
    ("earliest", "high", "stable", "committed", "expected"),
    [
        (3, 9, 7, True, Bounds(3, 7, 9)),
        (3, 9, 7, False, Bounds(3, 9, 9)),
        (3, 9, 11, True, Bounds(3, 11, 11)),  # others wrote between the two answers
    ],
)
def test_bounds_are_of_three_lookups(earliest, high, stable, committed, expected):
    """The latest offset is never beyond the last written one; uncommitted messages count where they may."""
    first, last = OffsetLookup(EARLIEST), OffsetLookup(LATEST)
    last_stable = OffsetLookup(LATEST, read_committed=True)
    cluster = Answers({first: earliest, last: high, last_stable: stable})

    assert cluster.bounds([TP], read_committed=committed) == {TP: expected}
    assert cluster.lookups == ([first, last, last_stable] if committed else [first, last])


def test_the_latest_offset_and_a_time_are_one_lookup_each():
    """The cheapest request there is, since an idle query sends it again and again."""
    cluster = Answers({OffsetLookup(LATEST, read_committed=True): 7, OffsetLookup(1_000): 5})

    assert cluster.latest_offsets([TP], read_committed=True) == {TP: 7}
    position, view = Position("timestamp", 1_000), ClusterView({"t": ""}, {TP: Bounds(0, 9, 9)})
    assert cluster.positions(position, view) == {TP: 5}
    assert len(cluster.lookups) == 2


def test_a_failed_commit_is_one_warning(caplog):
    """It names the group and the reason of the first failure."""
    reasons = ["not allowed", "gone"]

    def commit(_: Positions) -> None:
        raise KafkaError(reasons.pop(0))

    commits = BackgroundCommits("g", commit, (KafkaError,))
    for offset in (1, 2):
        commits.add({TP: offset})
        assert commits.wait()

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "group 'g'" in record.getMessage()
    assert "not allowed" in record.getMessage()


def test_commits_in_the_background_are_in_order_and_the_last_one_counts():
    """While one is under way the next ones are joined; a failure does not end them."""
    committed: list[Positions] = []
    first_began, may_go_on, last_done = (threading.Event() for _ in range(3))

    def commit(positions: Positions) -> None:
        committed.append(positions)
        if positions == {TP: 3}:
            last_done.set()
        if len(committed) == 1:
            first_began.set()
            may_go_on.wait()
            raise KafkaError("no")

    commits = BackgroundCommits("g", commit, (KafkaError,))
    commits.add({TP: 1})
    first_began.wait()
    commits.add({TP: 2})
    commits.add({TP: 3})
    may_go_on.set()
    last_done.wait()

    assert committed == [{TP: 1}, {TP: 3}]


BY_TIME, LAST = OffsetLookup(1_700_000_000_000), OffsetLookup(LATEST)


@pytest.mark.parametrize(
    ("offset", "lookup", "is_believed"),
    [
        (0, LAST, True),
        (42, BY_TIME, True),
        (-1, BY_TIME, True),
        (-1, LAST, False),
        (-1, OffsetLookup(EARLIEST), False),
        (-1001, BY_TIME, False),
        (None, BY_TIME, False),
    ],
)
def test_an_answer_without_an_offset_is_asked_again(offset, lookup, is_believed):
    """It comes without an error, as after a lost connection. Only that no message is as late as a time is an answer."""
    if is_believed:
        assert answered_offset(offset, lookup) == offset
        return
    with pytest.raises(AttemptError) as error:
        answered_offset(offset, lookup)
    assert error.value.failure.kind is FailureKind.RETRIABLE


def test_a_topic_without_partitions_is_asked_again():
    """There is none: to believe it would lose all of the topic's data."""
    assert answered_topic("t", "id", 2) == TopicInfo("id", 2)
    with pytest.raises(AttemptError, match="'t'") as error:
        answered_topic("t", "id", 0)
    assert error.value.failure.kind is FailureKind.RETRIABLE
