"""Where a new query starts and ends, in streams and batches alike, and what a batch reads."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import ReadOptions, read_options
from pyspark_upsert_kafka.format_catalog import format_options
from pyspark_upsert_kafka.kafka import rechecking
from pyspark_upsert_kafka.source.batch import plan
from tests.table_options import table_options
from tests.unit.source.fake_cluster import Clock, FakeCluster, FakeTopic


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Topic ``t`` with offsets 0 to 10 and 0 to 5, and a clock that stands still."""
    monkeypatch.setattr(rechecking, "time", Clock())
    found = FakeCluster()
    found.create("t", 2)
    found.produce("t", 0, 10)
    found.produce("t", 1, 5)
    return found


def batch(**more: str) -> ReadOptions:
    """Options of a batch read of topic ``t``."""
    given = table_options(**{"read.mode": "changelog", **more})
    return read_options(given, format_options, stream=False)


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
    assert plan(cluster, batch(**given)) == ranges


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_stale_answer_while_a_batch_is_planned_loses_nothing(cluster, fail, caplog):
    """The offset that the user has named is there, as a later look shows."""
    now = cluster.topics_there["t"]
    cluster.stale = [{"t": FakeTopic(now.id, [Bounds(0, 7, 7), now.partitions[1]])}] * 3
    given = specific("startup", "partition:0,offset:9;partition:1,offset:5")

    assert plan(cluster, batch(failOnDataLoss=fail, **given)) == [planned(0, 9, 10)]
    assert caplog.records == []


def test_a_start_past_the_end_is_an_error(cluster):
    """After ten seconds of looking."""
    with pytest.raises(DataLossError, match="wanted offset 11, earliest available offset 0"):
        plan(cluster, batch(**specific("startup", "partition:0,offset:11")))


def test_a_topic_that_goes_between_two_looks_is_an_error(cluster):
    """Its name was there and its offsets were not: not an empty table, and no error of Python's own."""
    view = cluster.view

    def deleted_meanwhile(topics, *, committed):
        cluster.topics_there.clear()
        return view({}, committed=committed)

    cluster.view = deleted_meanwhile

    for given in ({}, specific("startup", "partition:0,offset:1")):
        cluster.create("t", 2)
        with pytest.raises(BrokerError, match="'t' does not exist"):
            plan(cluster, batch(**given))


PAST, FUTURE = "1000", "9999999999999"
COMPACTED = {"cleanup.policy": "compact", "min.compaction.lag.ms": "60000"}


@pytest.mark.parametrize(
    ("at", "mode", "settings", "told"),
    [
        (PAST, "snapshot", COMPACTED, "min.compaction.lag.ms says, which is shorter for topic 't'"),
        (PAST, "snapshot", None, "which the broker does not tell"),
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

    plan(cluster, batch(**{**given, "read.mode": mode}))

    assert [told in each.getMessage() for each in caplog.records] == (
        [] if told is None else [True]
    )


def test_settings_are_not_asked_for_without_need(cluster):
    """The table as it is now needs none."""
    plan(cluster, batch(**{"read.mode": "snapshot"}))

    assert cluster.asked_settings == 0
