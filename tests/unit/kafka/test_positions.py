"""Where a position of the options is in each partition of a view."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.frozen_options import Position
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from pyspark_upsert_kafka.kafka.cluster import group_offsets, specific_offsets, timestamp_offsets

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
VIEW = ClusterView({"t": "id"}, {A: Bounds(10, 20, 25), B: Bounds(0, 0, 0)})


@pytest.mark.parametrize(
    ("answered", "expected"), [(10, 10), (15, 15), (20, 20), (22, 20), (-1, 20)]
)
def test_a_timestamp_is_never_beyond_the_latest_offset(answered, expected):
    """No message so young, or one of an open transaction: both mean the latest offset."""
    assert timestamp_offsets({A: answered, B: -1}, VIEW) == {A: expected, B: 0}


def test_specific_offsets_are_taken_as_they_are():
    """Only for the partitions that are named, which must exist."""
    named = Position("specific-offsets", offsets=((1, 7),))
    assert specific_offsets(named, VIEW) == {B: 7}

    with pytest.raises(OptionError, match=r"partition 2 of topic 't', which has the .* 0 to 1"):
        specific_offsets(Position("specific-offsets", offsets=((2, 0),)), VIEW)
    with pytest.raises(BrokerError, match="deleted"):
        specific_offsets(named, ClusterView({}, {}))


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 10), ("latest", 20)])
def test_a_group_without_an_offset_starts_where_the_reset_says(reset, expected):
    """An offset that is committed is taken as it is, though it may be gone."""
    position = Position("group-offsets", reset=reset)

    assert group_offsets({A: -1001, B: 0}, position, VIEW, "g") == {A: expected, B: 0}
    assert group_offsets({A: 5, B: 9}, position, VIEW, "g") == {A: 5, B: 9}


def test_a_group_without_an_offset_and_without_a_reset_is_an_error():
    """It names the group, the partition and the option."""
    with pytest.raises(OptionError, match=r"'g'.*partition 0.*auto\.offset\.reset"):
        group_offsets({A: -1, B: 0}, Position("group-offsets", reset="none"), VIEW, "g")
