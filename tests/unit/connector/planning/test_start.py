"""Where a new query starts and ends, in streams and batches alike, and what a batch reads."""

from __future__ import annotations

import time

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import batch_reader
from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import Range
from tests.table_options import table_options
from tests.unit.connector.fake_cluster import Clock, FakeCluster, FakeTopic


@pytest.fixture
def cluster() -> FakeCluster:
    """Topic ``t`` with offsets 0 to 10 and 0 to 5."""
    found = FakeCluster()
    found.create("t", 2)
    found.produce("t", 0, 10)
    found.produce("t", 1, 5)
    return found


def batch(**more: str) -> ReadOptions:
    """Options of a batch read of topic ``t``."""
    given = table_options(**{"read.mode": "changelog", **more})
    return read_options(given, format_options, stream=False)


def ranges_of_batch(cluster: FakeCluster, options: ReadOptions) -> list[Range]:
    """The ranges, by a clock on which pauses pass at once."""
    return batch_reader.ranges_of_batch(cluster, options, clock=Clock())


def specific(side: str, offsets: str) -> dict[str, str]:
    """Options that name offsets."""
    return {f"scan.{side}.mode": "specific-offsets", f"scan.{side}.specific-offsets": offsets}


def planned(partition: int, begin: int, end: int) -> Range:
    """A range of the topic that the fixture has created."""
    return Range("t", partition, begin, end, topic_id="id-1")


@pytest.mark.parametrize(
    ("given", "ranges"),
    [
        ({}, [planned(0, 0, 10), planned(1, 0, 5)]),
        (specific("startup", "partition:0,offset:8"), [planned(0, 8, 10), planned(1, 0, 5)]),
        (specific("bounded", "partition:0,offset:8"), [planned(0, 0, 8)]),
        (
            {**specific("startup", "partition:1,offset:2"),
             **specific("bounded", "partition:0,offset:3;partition:1,offset:99")},
            [planned(0, 0, 3), planned(1, 2, 5)],
        ),
    ],
)  # fmt: skip
def test_partitions_that_specific_offsets_do_not_name(cluster, given, ranges):
    """A start that is not named is the earliest offset; without an end nothing is read."""
    assert ranges_of_batch(cluster, batch(**given)) == ranges


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_stale_answer_while_a_batch_is_planned_loses_nothing(cluster, fail, caplog):
    """The offset that the user has named is there, as a later look shows."""
    now = cluster.topics_there["t"]
    cluster.stale = [{"t": FakeTopic(now.id, [Bounds(0, 7, 7), now.partitions[1]])}] * 3
    given = specific("startup", "partition:0,offset:9;partition:1,offset:5")

    assert ranges_of_batch(cluster, batch(failOnDataLoss=fail, **given)) == [planned(0, 9, 10)]
    assert caplog.records == []


def test_a_start_past_the_end_is_an_error(cluster):
    """After ten seconds of looking."""
    with pytest.raises(DataLossError, match="wanted offset 11, earliest available offset 0"):
        ranges_of_batch(cluster, batch(**specific("startup", "partition:0,offset:11")))


def test_a_topic_that_goes_between_two_looks_is_an_error(cluster):
    """Its name was there and its offsets were not: not an empty table, and no error of Python's own."""
    view = cluster.view

    def deleted_meanwhile(topics, *, read_committed):
        cluster.topics_there.clear()
        return view({}, read_committed=read_committed)

    cluster.view = deleted_meanwhile

    for given in ({}, specific("startup", "partition:0,offset:1")):
        cluster.create("t", 2)
        with pytest.raises(BrokerError, match="'t' does not exist"):
            ranges_of_batch(cluster, batch(**given))


PAST, FUTURE = "1000", "9999999999999"
COMPACTED = {"cleanup.policy": "compact", "min.compaction.lag.ms": "60000"}


@pytest.mark.parametrize(
    ("at", "mode", "settings", "told"),
    [
        (
            PAST,
            "snapshot",
            COMPACTED,
            "only for min.compaction.lag.ms of topic 't'",
        ),
        (PAST, "snapshot", None, "which cannot be read (the ACL operation DescribeConfigs"),
        (PAST, "snapshot", {**COMPACTED, "min.compaction.lag.ms": str(2**62)}, None),
        (PAST, "snapshot", {**COMPACTED, "cleanup.policy": "delete"}, None),
        (PAST, "changelog", COMPACTED, None),
        (FUTURE, "snapshot", COMPACTED, None),
    ],
)
def test_a_snapshot_at_a_time_beyond_the_compaction_lag_is_told(
    cluster, caplog, at, mode, settings, told
):
    """One warning that names the topics, or says that their settings are not known."""
    cluster.create("u")
    cluster.topic_settings = settings
    given = {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": at}

    ranges_of_batch(cluster, batch(**{**given, "read.mode": mode}))

    assert [told in each.getMessage() for each in caplog.records] == (
        [] if told is None else [True]
    )


@pytest.mark.parametrize(
    ("offset", "settings", "told"),
    [
        (9, COMPACTED, "(60000 ms). The table is complete only if that time is not longer ago."),
        (9, None, "which cannot be read (the ACL operation DescribeConfigs"),
        (9, {**COMPACTED, "min.compaction.lag.ms": str(2**62)}, None),
        (9, {**COMPACTED, "cleanup.policy": "delete"}, None),
        (10, COMPACTED, "(60000 ms). The table is complete only if that time is not longer ago."),
        (99, COMPACTED, "(60000 ms). The table is complete only if that time is not longer ago."),
    ],
)
def test_a_snapshot_that_ends_at_a_named_offset_is_told(cluster, caplog, offset, settings, told):
    """When that was is not known, so it may be beyond any lag; the latest offset may be an earlier one when it is read."""
    cluster.topic_settings = settings
    given = {**specific("bounded", f"partition:0,offset:{offset}"), "read.mode": "snapshot"}

    (range_,) = ranges_of_batch(cluster, batch(**given))

    assert (range_.end, range_.kept_until_ms) == (min(offset, 10), None)
    assert [told in each.getMessage() for each in caplog.records] == (
        [] if told is None else [True]
    )


LONG_LAG = {**COMPACTED, "min.compaction.lag.ms": "86400000"}


@pytest.mark.parametrize(
    ("mode", "settings", "kept_ms"),
    [
        ("snapshot", COMPACTED, 0),
        ("snapshot", None, 0),
        ("snapshot", LONG_LAG, 86_100_000),
        ("snapshot", {**LONG_LAG, "cleanup.policy": "delete"}, None),
        ("snapshot", {**LONG_LAG, "cleanup.policy": "compact,delete"}, 86_100_000),
        ("changelog", COMPACTED, None),
    ],
)
def test_a_range_of_a_snapshot_knows_until_when_it_is_whole(cluster, mode, settings, kept_ms):
    """As long as the topic's lag says, less what clocks may differ; a lag that is not known is none."""
    cluster.topic_settings = settings
    before = int(time.time() * 1000)

    ranges = ranges_of_batch(cluster, batch(**{"read.mode": mode, "minPartitions": "4"}))

    after = int(time.time() * 1000)
    kept = {range_.kept_until_ms for range_ in ranges}
    assert len(ranges) == 4
    assert len(kept) == 1
    if kept_ms:
        assert before + kept_ms <= kept.pop() <= after + kept_ms
    else:
        assert kept == {kept_ms}


def test_a_snapshot_that_ends_in_the_future_is_one_of_now(cluster):
    """Its time is later than all messages, those that come while it is read too: it is read as one without an end."""
    cluster.topic_settings = COMPACTED
    future = {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": FUTURE}

    ranges = ranges_of_batch(cluster, batch(**{**future, "read.mode": "snapshot"}))

    assert {range_.kept_until_ms for range_ in ranges} == {0}


def test_settings_are_asked_for_once_and_not_without_need(cluster):
    """By a snapshot that reads anything, for all of its topics."""
    ranges_of_batch(cluster, batch())
    assert cluster.asked_settings == 0

    cluster.create("u")
    cluster.produce("u")
    ranges_of_batch(cluster, batch(**{"read.mode": "snapshot", "topic": "t;u"}))
    assert cluster.asked_settings == 1

    cluster.create("empty")
    ranges_of_batch(cluster, batch(**{"read.mode": "snapshot", "topic": "empty"}))
    assert cluster.asked_settings == 1
