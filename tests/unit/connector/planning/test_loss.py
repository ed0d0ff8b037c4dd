"""What is done about lost data."""

from __future__ import annotations

import logging

import pytest

from pyspark_upsert_kafka.connector.planning.query_start import (
    accept_loss,
    checked_start,
    remaining_ranges,
)
from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, StreamOffset, TopicPartition
from tests.unit.connector.fake_cluster import stream_options

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
STRICT, LAX = stream_options(), stream_options(failOnDataLoss="false")


def view(latest: int = 20) -> ClusterView:
    """Topic ``t`` with offsets 10 to 20 in partition 0, committed to ``latest``, and 0 to 20 in 1."""
    return ClusterView({"t": "id"}, {A: Bounds(10, latest, 20), B: Bounds(0, 20, 20)})


def test_nothing_lost_changes_nothing():
    """The very same offset comes back."""
    offset = StreamOffset({A: 10, B: 20}, topic_ids={"t": "id"})

    assert accept_loss(offset, view(), STRICT) is offset


def test_lost_offsets_are_told_by_the_first_partition():
    """With what was wanted and what is there."""
    with pytest.raises(DataLossError) as raised:
        accept_loss(StreamOffset({A: 9, B: 21}), view(), STRICT)

    assert (
        raised.value.topic, raised.value.partition, raised.value.wanted, raised.value.earliest,
    ) == ("t", 0, 9, 10)  # fmt: skip


def test_each_lost_partition_is_one_warning(caplog):
    """And each goes on from what is there."""
    with caplog.at_level(logging.WARNING):
        found = accept_loss(StreamOffset({A: 9, B: 21}), view(), LAX)

    assert found.begins == {A: 10, B: 0}
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert record.getMessage().endswith(" Reading continues with the messages that exist.")


def test_a_start_that_is_not_there_fails():
    """A new query that asks for offsets which are gone."""
    with pytest.raises(DataLossError, match="wanted offset 3, earliest available offset 10"):
        checked_start(StreamOffset({A: 3, B: 0}), view(), STRICT)


def test_a_start_carries_its_own_beginning():
    """For the first batch's end: Spark keeps no initial offset."""
    assert checked_start(StreamOffset({A: 3, B: 7}), view(), LAX).begins == {A: 10, B: 7}


@pytest.mark.parametrize(
    ("range_", "left"),
    [
        (Range("t", 0, 10, 20), [Range("t", 0, 10, 20)]),
        (Range("t", 0, 5, 20), [Range("t", 0, 10, 20)]),
        (Range("t", 0, 5, 9), []),
        (Range("t", 0, 15, 25), [Range("t", 0, 15, 20)]),
        (Range("t", 0, 22, 25), []),
        (Range("t", 2, 0, 5), []),
        (Range("gone", 0, 0, 5), []),
    ],
)
def test_what_is_left_of_a_planned_range(range_, left, caplog):
    """With one warning for what is lost."""
    assert left == remaining_ranges([range_], {"t": "id"}, view(), LAX)
    assert len(caplog.records) == (0 if left == [range_] else 1)


def test_nothing_is_left_of_another_topic_of_the_same_name():
    """Its offsets mean other messages."""
    assert remaining_ranges([Range("t", 0, 10, 20)], {"t": "old"}, view(), LAX) == []


def test_a_planned_range_may_end_past_the_last_stable_offset():
    """A transaction that began after the batch was planned takes nothing away."""
    range_ = Range("t", 0, 10, 20)

    assert [range_] == remaining_ranges([range_], {}, view(latest=15), STRICT)
