"""What is gone, when that is certain, and where to go on: pure functions of an offset and a view."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.positions.data_loss import (
    is_certain,
    is_other_topic,
    lost_data,
    missing_since,
    recovered,
    unconfirmed_losses,
)
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.unit.core.positions.test_planning import T0, T1, U0, bounds, offset, view

# What is lost, and where to go on

LOSSES = [
    ("nothing is lost", offset({T0: 5}), view(t0=bounds(0, 9)), None, offset({T0: 5})),
    ("all has been read", offset({T0: 9}), view(t0=bounds(0, 9)), None, offset({T0: 9})),
    ("all that is left", offset({T0: 5}), view(t0=bounds(5, 9)), None, offset({T0: 5})),
    ("an empty topic", offset({T0: 0}), view(t0=bounds(0, 0)), None, offset({T0: 0})),
    (
        "an open transaction ends what may be read",
        offset({T0: 9}),
        view(t0=bounds(0, 5, high=9)),
        None,
        offset({T0: 9}),
    ),
    (
        "retention",
        offset({T0: 5, T1: 5}),
        view(t0=bounds(6, 9), t1=bounds(0, 9)),
        DataLossError(
            "t", 0, 5, 6, "the offsets were removed by retention, or by a deletion of records"
        ),
        offset({T0: 6, T1: 5}, begins={T0: 6}),
    ),
    (
        "all records deleted",
        offset({T0: 5}),
        view(t0=bounds(9, 9)),
        DataLossError(
            "t", 0, 5, 9, "the offsets were removed by retention, or by a deletion of records"
        ),
        offset({T0: 9}, begins={T0: 9}),
    ),
    (
        "a deleted topic",
        offset({T0: 5, U0: 1}),
        view(u0=bounds(0, 1)),
        DataLossError(
            "t",
            0,
            5,
            None,
            "the topic was deleted, or the options no longer name it (a checkpoint of another query, perhaps: "
            "then start with a new one)",
        ),
        offset({U0: 1}),
    ),
    (
        "a bounded stream that has all it wants",
        offset({T0: 5, U0: 1}, stop={T0: 5}),
        view({}),
        None,
        offset({T0: 5, U0: 1}, stop={T0: 5}),
    ),
    (
        "a bounded stream that wants more",
        offset({T0: 4}, stop={T0: 5}),
        view(t0=bounds(6, 9)),
        DataLossError(
            "t", 0, 4, 6, "the offsets were removed by retention, or by a deletion of records"
        ),
        offset({T0: 6}, begins={T0: 6}, stop={T0: 5}),
    ),
    (
        "a topic created anew, which is longer by now",
        offset({T0: 5}),
        view({"t": "2"}, t0=bounds(0, 9)),
        DataLossError("t", 0, 5, 0, "the topic was deleted and created again (its id is another)"),
        offset({T0: 0}, begins={T0: 0}, topic_ids={"t": "2"}),
    ),
    (
        "a topic created anew, which is shorter",
        offset({T0: 5}),
        view({"t": "2"}, t0=bounds(0, 3)),
        DataLossError("t", 0, 5, 0, "the topic was deleted and created again (its id is another)"),
        offset({T0: 0}, begins={T0: 0}, topic_ids={"t": "2"}),
    ),
    (
        "a topic created anew with fewer partitions",
        offset({T1: 5}),
        view({"t": "1"}, t0=bounds(0, 9)),
        DataLossError("t", 1, 5, None, "the partition is gone; was the topic created again?"),
        offset({}, topic_ids={}),
    ),
    (
        "a truncated partition: what it has was read already",
        offset({T0: 5}),
        view(t0=bounds(0, 3)),
        DataLossError(
            "t",
            0,
            5,
            0,
            "the partition ends at offset 3; was the topic created again, or the partition truncated?",
        ),
        offset({T0: 3}, begins={T0: 3}),
    ),
    (
        "a shorter partition on a broker that has no ids: it may be another topic",
        offset({T0: 5}, topic_ids={"t": ""}),
        view({"t": ""}, t0=bounds(0, 3)),
        DataLossError(
            "t",
            0,
            5,
            0,
            "the partition ends at offset 3; was the topic created again, or the partition truncated?",
        ),
        offset({T0: 0}, begins={T0: 0}, topic_ids={"t": ""}),
    ),
]
TABLE = pytest.mark.parametrize(
    ("wanted", "there", "loss", "going_on"),
    [case[1:] for case in LOSSES],
    ids=[case[0] for case in LOSSES],
)


@TABLE
def test_lost_data(wanted, there, loss, going_on):
    """What the offset wants and the broker no longer has is told with partition and reason."""
    lost = lost_data(wanted, there)

    expected = {} if loss is None else {TopicPartition(loss.topic, loss.partition): loss.args}
    assert {tp: error.args for tp, error in lost.items()} == expected


@TABLE
def test_where_to_go_on(wanted, there, loss, going_on):
    """What is gone is forgotten or begun anew; what was read is not read again."""
    assert recovered(wanted, there) == going_on


@TABLE
def test_what_is_recovered_is_not_lost(wanted, there, loss, going_on):
    """Where a query goes on, nothing is missing any more."""
    assert lost_data(recovered(wanted, there), there) == {}


def test_every_lost_partition_is_told():
    """Losses are found for each partition, in the order of topic and number."""
    lost = lost_data(offset({U0: 1, T1: 1, T0: 1}), view({}))

    assert list(lost) == [T0, T1, U0]


@pytest.mark.parametrize(
    ("known", "seen", "other"),
    [("1", "2", True), ("1", "1", False), ("", "2", False), ("1", "", False), ("", "", False)],
)
def test_a_topic_is_known_by_its_id(known, seen, other):
    """Two ids are two topics; a broker without ids proves nothing."""
    assert is_other_topic(known, seen) is other


# When it is certain


@TABLE
def test_only_retention_is_believed_at_once(wanted, there, loss, going_on):
    """A broker with stale metadata, or one that lags, may say all else; an earliest offset only rises."""
    lost = set() if loss is None else {TopicPartition(loss.topic, loss.partition)}
    by_retention = loss is not None and "retention" in loss.reason

    assert {tp for tp, _ in unconfirmed_losses(wanted, there)} == (set() if by_retention else lost)


@pytest.mark.parametrize(
    ("looks", "certain_at"),
    [
        ([(0, ""), (60, "")], 0),
        ([(0, "a"), (9, "a")], None),
        ([(0, "a"), (10, "a")], 10),
        ([(0, "a"), (5, ""), (10, "a"), (19, "a")], 5),
        ([(0, "a"), (5, "ab"), (10, "ab"), (15, "ab")], 15),
        ([(0, "a"), (9, "b"), (18, "b"), (19, "b")], 19),
    ],
)
def test_what_every_look_over_ten_seconds_misses_is_gone(looks, certain_at):
    """Each look is a time and what it misses; one look that finds it starts the time anew."""
    since = {}
    found = None
    for now, missing in looks:
        since = missing_since(since, missing, now)
        if found is None and is_certain(since, now, 10.0):
            found = now

    assert found == certain_at


def test_another_topic_is_another_doubt():
    """First no topic, then one with another id: the second must be seen for as long as the first."""
    gone, other = view({}), view({"t": "2"}, t0=bounds(0, 9))

    assert unconfirmed_losses(offset({T0: 5}), gone) == {(T0, None)}
    assert unconfirmed_losses(offset({T0: 5}), other) == {(T0, "2")}
