"""A stream that begins with the table: what its first batch reads, what the next ones do, and what a restart changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import LongType, StructType

from pyspark_upsert_kafka.connector.planning.stream_reader import ReaderWithLimits
from pyspark_upsert_kafka.core.errors import CheckpointError, DataLossError
from pyspark_upsert_kafka.core.metadata import METADATA
from pyspark_upsert_kafka.core.positions.offsets import (
    LAST_OFFSET,
    Range,
    Share,
    TopicPartition,
)
from tests.unit.connector.fake_cluster import SCHEMA, World, stream_options, world
from tests.unit.connector.fake_spark import PROTOCOLS, Query, needs_limits

FULL = {"scan.startup.mode": "full"}
COMPACTED = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}
LONG_LAG = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
NEVER_COMPACTED = {"cleanup.policy": "delete", "min.compaction.lag.ms": "0"}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker in memory with topic ``t``, ten offsets in partition 0 and five in 1, and a clock that stands still."""
    found = world(monkeypatch)
    found.cluster.create("t", 2)
    found.cluster.produce("t", 0, 10)
    found.cluster.produce("t", 1, 5)
    found.cluster.topic_settings = COMPACTED
    return found


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> type:
    """Each form of a reader that the installed PySpark can play."""
    return request.param


def of_table(partition: int, begin: int, end: int, **more: object) -> Range:
    """A range of the first batch, which one task reads."""
    known = {"topic_id": "id-1", "kept_until_ms": 0, "followed_to": LAST_OFFSET}
    return Range("t", partition, begin, end, **{**known, **more})


def of_changes(partition: int, begin: int, end: int, topic_id: str = "id-1") -> Range:
    """A range of a later batch."""
    return Range("t", partition, begin, end, topic_id)


def without_shares(ranges: list[Range]) -> list[Range]:
    """The ranges; each must have a share, as all ranges of a table do."""
    assert all(each.share is not None for each in ranges)
    return [replace(each, share=None) for each in ranges]


def first_batch(query: Query) -> list[Range]:
    """What the first batch reads."""
    query.plan()
    return without_shares(query.ranges())


def to_the_end(query: Query, there: World) -> list[Range]:
    """What all further batches read."""
    before = len(query.read)
    while query.trigger():
        there.clock.now += 1000
    return query.read[before:]


def test_the_table_then_its_changes(there, protocol):
    """The first batch is the table up to now, and the next ones are what came after."""
    query = Query(there, stream_options(**FULL), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 3)
    there.clock.now += 1
    query.trigger()

    table, changes = query.read[:2], query.read[2:]
    assert without_shares(table) == [of_table(0, 0, 10), of_table(1, 0, 5)]
    assert [each.share for each in table] == [Share(0, 1, 2, 15)] * 2
    assert changes == [of_changes(0, 10, 13)]


def test_offsets_have_one_text(there, protocol):
    """Only that of the table is of layout 2, which earlier packages reject; they can go on from all others."""
    query = Query(there, stream_options(**FULL), protocol).start()
    query.trigger()
    there.cluster.produce("t", 1, 1)
    there.clock.now += 1
    query.trigger()

    assert query.log == [
        (
            '{"version": 2, "table": true, "topics": {"t": {"id": "id-1", "positions": {"0": 10, "1": 5}, '
            '"begins": {"0": 0, "1": 0}}}}'
        ),
        '{"version": 1, "topics": {"t": {"id": "id-1", "positions": {"0": 10, "1": 6}}}}',
    ]


def test_a_query_without_changes_since_stays_where_it_is(there, protocol):
    """Nothing new gives the text of the table's offset itself, before and after a restart."""
    query = Query(there, stream_options(**FULL), protocol).start()
    assert query.trigger()
    for _ in range(2):
        there.clock.now += 1000
        assert not query.trigger()
        query.start()


@needs_limits
def test_limits_hold_for_the_changes_alone(there):
    """The table is neither cut nor held back."""
    given = {"maxOffsetsPerTrigger": 4, "minOffsetsPerTrigger": 3, "maxTriggerDelay": "1h"}
    query = Query(there, stream_options(**FULL, **given)).start()
    query.trigger()
    assert without_shares(query.read) == [of_table(0, 0, 10), of_table(1, 0, 5)]

    there.cluster.produce("t", 0, 2)
    there.clock.now += 1
    assert not query.trigger()
    there.cluster.produce("t", 0, 7)
    there.clock.now += 1
    query.trigger()
    assert query.read[2:] == [of_changes(0, 10, 14)]


@pytest.mark.parametrize("topics", [{}, {"topic": None, "topic_pattern": "e.*"}])
def test_an_empty_topic_gives_an_empty_first_batch(there, protocol, topics):
    """What is written later are changes, and so is a topic that is created later."""
    given = {"topic": "empty", **topics}
    if "topic_pattern" not in topics:
        there.cluster.create("empty")
    query = Query(there, stream_options(**FULL, **given), protocol).start()
    assert query.trigger()
    assert query.read == []
    if "topic_pattern" in topics:
        there.cluster.create("empty")
    there.cluster.produce("empty", 0, 2)
    there.clock.now += 1000

    assert to_the_end(query, there) == [Range("empty", 0, 0, 2, "id-2")]


@pytest.mark.parametrize(
    ("settings", "kept_ms", "kept_after_restart_ms"),
    [
        (COMPACTED, 0, 0),
        (None, 0, 0),
        (NEVER_COMPACTED, None, None),
        # From the planning at second 1000 on; a later run does not know when that was.
        (LONG_LAG, 1_000_000 + 86_400_000 - 300_000, 86_400_000 - 300_000),
    ],
)
def test_a_range_knows_until_when_it_is_whole(
    there, protocol, settings, kept_ms, kept_after_restart_ms
):
    """As in a snapshot; settings are asked for by the first batch alone."""
    there.cluster.topic_settings = settings
    query = Query(there, stream_options(**FULL), protocol).start()
    assert {each.kept_until_ms for each in first_batch(query)} == {kept_ms}

    there.clock.now += 1000
    query.start()
    assert {each.kept_until_ms for each in query.read} == {kept_after_restart_ms}
    asked = there.cluster.asked_settings
    there.cluster.produce("t", 0, 1)
    to_the_end(query, there)
    assert there.cluster.asked_settings == asked


@needs_limits
def test_an_end_that_was_fixed_before_the_beginning_is_not_of_now(there):
    """With ``availableNow``: what came in between is for the next batch, and may have been overwritten by then."""
    there.cluster.topic_settings = LONG_LAG
    query = Query(there, stream_options(**FULL)).start(available_now=True)
    there.cluster.produce("t", 0, 3)
    there.clock.now += 1000

    assert first_batch(query) == [
        of_table(0, 0, 10, kept_until_ms=86_100_000),
        of_table(1, 0, 5, kept_until_ms=86_100_000),
    ]
    query.finish()
    assert to_the_end(query, there) == []
    query.start(available_now=True)
    assert to_the_end(query, there) == [of_changes(0, 10, 13)]


@pytest.mark.parametrize("pieces", [None, 3, 40])
def test_a_first_batch_that_is_done_again_ends_where_it_was_planned_to(there, protocol, pieces):
    """Whatever came since, and by as many tasks as the options want by then."""
    query = Query(there, stream_options(**FULL, minPartitions=5), protocol).start()
    query.plan()
    assert sum(each.share is not None for each in query.ranges()) == 5
    there.cluster.produce("t", 0, 3)
    there.cluster.add_partition("t")
    there.cluster.produce("t", 2, 4)
    there.clock.now += 1000
    query.options = stream_options(**FULL, minPartitions=pieces)
    query.start()

    found = without_shares(query.read)
    assert len(found) == {None: 2, 3: 3, 40: 15}[pieces], "a piece holds an offset at least"
    assert {*found} == {of_table(0, 0, 10), of_table(1, 0, 5)}
    query.options = stream_options(**FULL)
    query.start()
    assert to_the_end(query, there) == [of_changes(0, 10, 13), of_changes(2, 0, 4)]


def test_a_first_batch_is_the_table_whatever_the_next_run_says(there, protocol):
    """Start options are those of a new query; the checkpoint says what the batch is."""
    query = Query(there, stream_options(**FULL), protocol).start()
    query.plan()
    query.options = stream_options(scan__startup__mode="latest-offset")
    query.start()
    assert without_shares(query.read) == [of_table(0, 0, 10), of_table(1, 0, 5)]

    changes = Query(there, stream_options(), protocol).start()
    changes.plan()
    changes.options = stream_options(**FULL)
    changes.start()
    assert changes.read == [of_changes(0, 0, 10), of_changes(1, 0, 5)]


@pytest.mark.parametrize(
    ("more", "columns"),
    [
        (
            {"read.mode": "append", "primary-key": None, "key.format": None},
            StructType().add("id", LongType()),
        ),
        (
            {"error-handling.mode": "column"},
            StructType([*SCHEMA]).add("_error", METADATA["error"].types[0]),
        ),
        ({"value.format": "debezium-json", "primary-key": None, "key.format": None}, SCHEMA),
    ],
)
def test_a_first_batch_cannot_be_read_in_another_way(there, protocol, more, columns):
    """Options that are refused with the table are refused as long as its batch is not finished."""
    query = Query(there, stream_options(**FULL), protocol).start()
    query.plan()
    again = Query(there, stream_options(**more), protocol, columns, log=query.log)

    with pytest.raises(
        CheckpointError, match=r"first batch of this checkpoint is the table.*'full'"
    ):
        again.start()


def test_messages_of_an_open_transaction_are_changes(there, protocol):
    """The table ends before the first of them, and what stands behind it comes later."""
    there.cluster.set("t", 0, 0, 14, latest=8)
    query = Query(there, stream_options(**FULL), protocol).start()
    query.trigger()
    there.cluster.set("t", 0, 0, 15)
    there.clock.now += 1

    assert without_shares(query.read) == [of_table(0, 0, 8), of_table(1, 0, 5)]
    assert to_the_end(query, there) == [of_changes(0, 8, 15)]


def test_retention_has_no_part_in_a_table_that_is_planned_after_it(there, protocol):
    """It begins at the earliest offset."""
    there.cluster.set("t", 0, 4, 10)
    query = Query(there, stream_options(**FULL), protocol).start()

    assert first_batch(query) == [of_table(0, 4, 10), of_table(1, 0, 5)]


@pytest.mark.parametrize(
    ("what", "told", "left"),
    [
        (lambda cluster: cluster.set("t", 0, 4, 10), "wanted offset 0, earliest available offset 4", [(4, 10), (0, 5)]),
        (lambda cluster: cluster.set("t", 0, 10, 10), "wanted offset 0, earliest available offset 10", [(0, 5)]),
        (lambda cluster: cluster.set("t", 1, 0, 3), "the partition ends at offset 3", [(0, 10), (0, 3)]),
    ],
    ids=["retention", "all of it", "truncated"],
)  # fmt: skip
def test_what_was_lost_before_the_first_batch_is_done_again(there, protocol, what, told, left):
    """An error that names it, or the table without it."""
    query = Query(there, stream_options(**FULL), protocol).start()
    query.plan()
    what(there.cluster)
    there.clock.now += 1000
    with pytest.raises(DataLossError, match=told):
        query.start()
    query.options = stream_options(**FULL, failOnDataLoss="false")
    query.start()

    assert [(each.begin, each.end) for each in without_shares(query.read)] == left


def test_a_topic_created_again_before_the_first_batch_is_done_again(there, protocol):
    """Its messages are no part of the table; they are read as changes, where lost data is no error."""
    query = Query(there, stream_options(**FULL), protocol).start()
    query.plan()
    there.cluster.delete("t")
    there.cluster.create("t", 2)
    there.cluster.produce("t", 0, 12)
    there.clock.now += 1000
    with pytest.raises(DataLossError, match="created again"):
        query.start()
    query.options = stream_options(**FULL, failOnDataLoss="false")
    query.start()

    assert query.read == []
    assert to_the_end(query, there) == [of_changes(0, 0, 12, "id-2")]


def bounded(mode: str, **more: object) -> dict[str, object]:
    """Options of a stream with an end."""
    return {**FULL, "scan.bounded.mode": mode, **more}


def test_a_table_that_ends_with_the_stream_is_read_as_by_a_batch(there, protocol, caplog):
    """No later batch shows what compaction takes meanwhile, so the table does; and nothing follows."""
    query = Query(there, stream_options(**bounded("latest-offset")), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 3)

    assert without_shares(query.read) == [
        of_table(0, 0, 10, followed_to=10),
        of_table(1, 0, 5, followed_to=5),
    ]
    assert not any(each.is_followed for each in query.read)
    assert to_the_end(query, there) == []
    assert caplog.records == []


def test_a_table_that_ends_with_the_stream_is_whole_as_long_as_since_its_planning(there, protocol):
    """A later run does not know when that was, so it reads on, as a batch does that was planned long ago."""
    there.cluster.topic_settings = LONG_LAG
    query = Query(there, stream_options(**bounded("latest-offset")), protocol).start()
    assert {each.kept_until_ms for each in first_batch(query)} == {87_100_000}
    query.start()

    assert {each.kept_until_ms for each in query.read} == {86_100_000}


def test_a_stream_that_ends_before_its_start_reads_the_table_as_of_its_end(there, protocol, caplog):
    """As a batch does, and with its warning: compaction may have removed rows; a later end is reached by changes."""
    ends = {"scan.bounded.specific-offsets": "partition:0,offset:7;partition:1,offset:8"}
    query = Query(there, stream_options(**bounded("specific-offsets", **ends)), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 3)
    there.cluster.produce("t", 1, 9)
    there.clock.now += 1

    assert {*without_shares(query.read)} == {
        of_table(0, 0, 7, followed_to=7, kept_until_ms=None),
        of_table(1, 0, 5, followed_to=8),
    }
    assert "'scan.bounded.mode' = 'specific-offsets') may lack rows" in caplog.text
    assert to_the_end(query, there) == [of_changes(1, 5, 8)]


def test_the_table_is_read_by_few_tasks_where_that_is_wanted(there):
    """A task reads one table after another."""
    query = Query(there, stream_options(**FULL, scan__parallelism="auto")).start()
    query.plan()

    (task,) = query.tasks()
    assert without_shares(list(task.value)) == [of_table(0, 0, 10), of_table(1, 0, 5)]


def test_finished_batches_are_committed_to_the_group(there):
    """The end of the table like any other."""
    query = Query(there, stream_options(**FULL, **{"properties.group.id": "g"})).start()
    query.trigger()
    there.cluster.produce("t", 0, 1)
    there.clock.now += 1
    query.trigger()

    assert there.cluster.committed == {TopicPartition("t", 0): 10, TopicPartition("t", 1): 5}


@needs_limits
def test_trigger_once_reads_the_table_alone(there):
    """Changes are for the next run."""
    query = Query(there, stream_options(**FULL), ReaderWithLimits).start(once=True)
    query.trigger()

    assert without_shares(query.read) == [of_table(0, 0, 10), of_table(1, 0, 5)]


def test_tasks_that_merge_partitions_read_all_of_them(there, protocol):
    """A key may lie in several partitions: each task keeps a share of the keys; the changes since are read as ever."""
    merging = {"scan.snapshot.merge-partitions": "true", "minPartitions": "2"}
    query = Query(there, stream_options(**FULL, **merging), protocol).start()
    query.plan()
    tasks = [task.value for task in query.tasks()]

    assert [
        [(each.partition, each.share.index, each.share.count) for each in task] for task in tasks
    ] == [
        [(0, 0, 2), (1, 0, 2)],
        [(0, 1, 2), (1, 1, 2)],
    ]
