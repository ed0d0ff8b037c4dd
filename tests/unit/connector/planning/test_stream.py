"""The laws of a stream's offsets, against a broker in memory and Spark's side played by hand."""

from __future__ import annotations

import json
import logging
import pickle

import pytest

from pyspark_upsert_kafka.connector.planning import stream_reader
from pyspark_upsert_kafka.connector.planning.stream_reader import ReaderWithLimits
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import BrokerError, CheckpointError, DataLossError
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import INITIAL, Range, StreamOffset, TopicPartition
from tests.unit.connector.fake_cluster import FakeTopic, World, stream_options, table, world
from tests.unit.connector.fake_spark import PROTOCOLS, Query, needs_limits

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker in memory with topic ``t`` of two partitions, and a clock that stands still."""
    found = world(monkeypatch)
    found.cluster.create("t", 2)
    return found


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> type:
    """Each form of a reader that the installed PySpark can play."""
    return request.param


def planned(partition: int, begin: int, end: int) -> Range:
    """A range of the first topic ``t`` that a test creates."""
    return Range("t", partition, begin, end, topic_id="id-1")


def lost_tables(there: World) -> dict[str, object]:
    """What can happen to partition 0 of topic ``t``, read up to offset 10 of 10."""
    cluster = there.cluster

    def recreate(count: int) -> None:
        cluster.delete("t")
        cluster.create("t", 2)
        cluster.produce("t", 0, count)

    return {
        "deleted": lambda: cluster.delete("t"),
        "re-created with fewer messages": lambda: recreate(3),
        "re-created with as many messages": lambda: recreate(10),
        "re-created with more messages": lambda: recreate(12),
        "records deleted past the position": lambda: cluster.set("t", 0, 15, 20),
        "truncated": lambda: cluster.set("t", 0, 0, 7),
    }


LOSSES = {
    "deleted": ("wanted offset 10: the topic was deleted", None),
    "re-created with fewer messages": ("earliest available offset 0: the topic was del", (0, 3)),
    "re-created with as many messages": ("the topic was deleted and created again", (0, 10)),
    "re-created with more messages": ("the topic was deleted and created again", (0, 12)),
    "records deleted past the position": (
        "wanted offset 10, earliest available offset 15",
        (15, 20),
    ),
    "truncated": ("the partition ends at offset 7", None),
}


def test_the_initial_offset_is_the_same_for_ever(there, protocol):
    """It names no position, so it may be asked at any time and by any process."""
    first = Query(there, stream_options(), protocol).start().reader.initialOffset()
    there.cluster.produce("t", 0, 5)

    assert (
        first == Query(there, stream_options(), protocol).start().reader.initialOffset() == INITIAL
    )


def test_a_reader_opens_nothing_before_it_is_asked(there, protocol):
    """Each task unpickles a reader; none of them asks a broker for positions."""
    options = stream_options()
    pickle.loads(pickle.dumps(protocol(table(options), options)))

    assert there.cluster.opened == 0


def test_nothing_new_gives_start_itself(there, protocol):
    """Spark compares texts: the same positions in other words would be a batch."""
    there.cluster.produce("t", 0, 5)
    query = Query(there, stream_options(), protocol).start()

    assert query.trigger()
    assert not query.trigger()
    there.clock.now += 1000
    assert not query.trigger()


def test_offsets_have_one_text(there):
    """The golden text of this version: a checkpoint of it is read by every later one."""
    there.cluster.create("a-topic", 11)
    there.cluster.produce("t", 1, 5)
    query = Query(there, stream_options(topic="t;a-topic")).start()
    query.trigger()
    there.cluster.produce("t", 0, 7)
    there.clock.now += 1
    query.trigger()
    zeros = ", ".join(f'"{number}": 0' for number in range(11))

    assert query.log == [
        '{"version": 1, "topics": {"a-topic": {"id": "id-2", "positions": {' + zeros + '}, "begins": {'
        + zeros + '}}, "t": {"id": "id-1", "positions": {"0": 0, "1": 5}, "begins": {"0": 0, "1": 0}}}}',
        '{"version": 1, "topics": {"a-topic": {"id": "id-2", "positions": {' + zeros + '}}, '
        '"t": {"id": "id-1", "positions": {"0": 7, "1": 5}}}}',
    ]  # fmt: skip


def test_a_latest_start_survives_a_crash_before_the_first_commit(there, protocol):
    """The first batch's end carries where reading began, so messages sent meanwhile are read."""
    there.cluster.produce("t", 0, 5)
    query = Query(there, stream_options(scan__startup__mode="latest-offset"), protocol).start()
    query.plan()
    there.cluster.produce("t", 0, 3)
    query.start()
    query.trigger()

    assert query.offsets_read() == {A: (5, 8)}


def test_a_latest_start_survives_a_first_batch_without_rows(there, protocol):
    """The first batch has no rows with this start, and yet it fixes the place."""
    there.cluster.produce("t", 0, 5)
    query = Query(there, stream_options(scan__startup__mode="latest-offset"), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 3)
    query.start()
    query.trigger()

    assert query.offsets_read() == {A: (5, 8)}


def test_an_idle_query_asks_five_times_a_second(there, protocol):
    """Spark asks again at once when it was told that nothing is new; the broker must not notice."""
    query = Query(
        there, stream_options(scan__topic_partition_discovery__interval="1ms"), protocol
    ).start()
    query.trigger()
    before, begin = there.cluster.looks, there.clock.now
    while there.clock.now < begin + 10:
        there.clock.now += 0.01
        query.trigger()

    assert there.cluster.looks + there.cluster.least_looks - before <= 50


def test_a_restarted_idle_query_asks_five_times_a_second(there, protocol):
    """The same when no batch was planned since the start."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    query.start()
    before, begin = there.cluster.looks, there.clock.now
    while there.clock.now < begin + 10:
        there.clock.now += 0.01
        query.trigger()

    assert there.cluster.looks + there.cluster.least_looks - before <= 51


def test_nothing_new_is_said_of_a_look_after_the_question(there, protocol):
    """``processAllAvailable`` waits for it: what was acknowledged before the call is read when it returns."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    for _ in range(5):
        there.clock.now += 0.05
        there.cluster.produce("t", 0, 1)
        while query.trigger():
            pass
        assert query.offsets_read()[A][1] == there.cluster.ends()[A]


@needs_limits
def test_an_idle_query_over_a_thousand_partitions_does_nothing_when_asked(there, monkeypatch):
    """Between two looks, two seconds apart, no JSON is made or read, and Spark has to wait a little."""
    there.cluster.create("big", 1000)
    query = Query(there, stream_options(topic="big")).start()
    query.trigger()
    there.clock.now += 3
    assert not query.trigger()
    start, counts = json.loads(query.log[-1]), {"made": 0, "read": 0, "asked": 0}
    make, read = StreamOffset.to_json, stream_reader.stream_offset

    def counted_make(offset):
        counts["made"] += 1
        return make(offset)

    def counted_read(offset):
        counts["read"] += 1
        return read(offset)

    monkeypatch.setattr(StreamOffset, "to_json", counted_make)
    monkeypatch.setattr(stream_reader, "stream_offset", counted_read)
    begin, looks = there.clock.now, there.cluster.looks
    while there.clock.now < begin + 60:
        there.clock.now += 0.01
        counts["asked"] += 1
        assert query.reader.latestOffset(start, query.limit) is start
        query.reader.reportLatestOffset()

    assert there.cluster.least_looks <= 30, "one kind of offsets, and nothing of the topics"
    assert there.cluster.looks - looks <= 3, "topics and all offsets"
    assert counts["read"] <= 3
    assert counts["made"] <= 1, "the one that is reported"
    assert counts["asked"] <= 330


@needs_limits
def test_waiting_for_min_offsets_over_a_thousand_partitions_asks_no_more_often(there):
    """And it ends when the delay is over, though nothing moves."""
    there.cluster.create("big", 1000)
    query = Query(there, stream_options(topic="big", minOffsetsPerTrigger=5, maxTriggerDelay="60s"))
    query.start().trigger()
    there.cluster.produce("big", 0, 1)
    begin, looks = there.clock.now, there.cluster.looks
    while not query.trigger():
        there.clock.now += 0.01

    assert 60 <= there.clock.now - begin <= 63
    assert there.cluster.looks - looks <= 32


@pytest.mark.parametrize("what", LOSSES)
def test_a_loss_is_noticed_by_an_idle_query(there, protocol, what):
    """Within seconds, though it mostly asks for latest offsets only, which may be the same."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    while there.cluster.least_looks < 3:
        there.clock.now += 0.05
        assert not query.trigger()
    lost_tables(there)[what]()

    with pytest.raises(DataLossError, match=LOSSES[what][0]):
        trigger_for(15, query, there)


@needs_limits
def test_the_reported_offset_is_made_once_for_what_is_there(there):
    """A look that shows the same makes nothing anew; one that shows more does."""
    query = Query(there, stream_options()).start()
    query.trigger()
    first = query.reader.reportLatestOffset()
    there.clock.now += 1
    query.trigger()

    assert query.reader.reportLatestOffset() is first
    there.cluster.produce("t", 0, 5)
    there.clock.now += 1
    query.trigger()
    assert query.reader.reportLatestOffset()["topics"]["t"]["positions"]["0"] == 5


def test_a_new_partition_is_read_from_its_earliest_offset(there, protocol):
    """It is found when the discovery interval has passed, not before."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.add_partition("t")
    there.cluster.set("t", 2, 4, 9)
    there.clock.now += 299

    assert not query.trigger()
    there.clock.now += 2
    assert query.trigger()
    assert query.offsets_read() == {TopicPartition("t", 2): (4, 9)}


def test_an_empty_new_partition_is_known_at_once(there, protocol):
    """A batch without rows notes where its reading begins: retention may be faster than the next."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.add_partition("t")
    there.clock.now += 301

    assert query.trigger()
    assert json.loads(query.log[-1])["topics"]["t"]["begins"] == {"2": 0}
    assert not query.trigger()


def test_new_topics_of_the_pattern_are_read(there, protocol):
    """A topic that is created while the query runs is found like a new partition."""
    query = Query(there, stream_options(topic=None, topic_pattern="t.*"), protocol).start()
    query.trigger()
    there.cluster.create("t2")
    there.cluster.create("other")
    there.cluster.produce("t2", 0, 5)
    there.clock.now += 301
    query.trigger()

    assert query.offsets_read() == {TopicPartition("t2", 0): (0, 5)}


def test_planning_a_replay_does_not_use_up_the_discovery(there, protocol):
    """After a restart the unfinished batch comes first, and new partitions still come next."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 5)
    there.clock.now += 1
    query.plan()
    there.cluster.add_partition("t")
    there.cluster.produce("t", 2, 5)
    query.start()
    there.clock.now += 1
    query.trigger()

    assert query.offsets_read() == {A: (0, 5), TopicPartition("t", 2): (0, 5)}


def test_discovery_interval_0_never_looks_while_the_query_runs(there, protocol):
    """Only a start looks, as in Flink."""
    query = Query(
        there, stream_options(scan__topic_partition_discovery__interval="0"), protocol
    ).start()
    query.trigger()
    there.cluster.add_partition("t")
    there.cluster.produce("t", 2, 5)
    there.clock.now += 1_000_000

    assert not query.trigger()
    query.start()
    assert query.trigger()
    assert query.offsets_read() == {TopicPartition("t", 2): (0, 5)}


def test_a_topic_that_does_not_exist_fails_a_new_query(there, protocol):
    """Before anything is planned."""
    query = Query(there, stream_options(topic="t;none"), protocol).start()

    with pytest.raises(BrokerError, match="none"):
        query.plan()


def test_specific_offsets_leave_out_no_partition(there, protocol):
    """One that they do not name starts at its earliest offset, as in Flink."""
    there.cluster.produce("t", 0, 5)
    there.cluster.produce("t", 1, 5)
    query = Query(
        there,
        stream_options(
            scan__startup__mode="specific-offsets",
            **{"scan.startup.specific-offsets": "partition:0,offset:3"},
        ),
        protocol,
    ).start()
    query.trigger()

    assert query.offsets_read() == {A: (3, 5), B: (0, 5)}


def test_a_range_is_cut_into_min_partitions(there, protocol):
    """The largest first, in the same way each time it is asked."""
    there.cluster.produce("t", 0, 10)
    there.cluster.produce("t", 1, 1)
    query = Query(there, stream_options(minPartitions=3), protocol).start()
    query.trigger()

    assert query.read == [planned(0, 0, 5), planned(0, 5, 10), planned(1, 0, 1)]


@pytest.mark.parametrize("tasks", [1, "auto"])
def test_a_task_reads_several_ranges_with_scan_parallelism(there, protocol, tasks):
    """There are no more tasks than wanted, and they have about as much to read."""
    for partition, count in enumerate((5, 9)):
        there.cluster.produce("t", partition, count)
    query = Query(there, stream_options(scan__parallelism=tasks), protocol).start()
    query.trigger()

    (task,) = query.reader.partitions(INITIAL, json.loads(query.log[0]))
    assert task.value == (planned(0, 0, 5), planned(1, 0, 9))


def test_an_empty_batch_asks_no_broker(there, protocol):
    """Spark 4.0 and 4.1 plan one at each start, also where no batch has ended yet."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 5)
    reader, end = query.start().reader, json.loads(query.log[-1])
    looks = there.cluster.looks

    for at in (INITIAL, end):
        assert reader.partitions(at, at) == []
    assert reader.partitions(end, INITIAL) == []
    assert there.cluster.looks == looks


def test_a_checkpoint_that_runs_backwards_is_refused(there, protocol):
    """It belongs to another query, or somebody changed it."""
    query = Query(there, stream_options(), protocol).start()
    start = {"version": 1, "topics": {"t": {"id": "id-1", "positions": {"0": 7}}}}
    end = {"version": 1, "topics": {"t": {"id": "id-1", "positions": {"0": 1}}}}

    with pytest.raises(CheckpointError, match="from offset 7 to 1"):
        query.reader.partitions(start, end)


# Limits.


@needs_limits
def test_max_offsets_per_trigger_limits_each_batch(there):
    """Shared by backlog; a lone message is never starved."""
    there.cluster.produce("t", 0, 18)
    there.cluster.produce("t", 1, 1)
    query = Query(there, stream_options(maxOffsetsPerTrigger=10)).start()
    while query.trigger():
        there.clock.now += 1

    assert query.read == [planned(0, 0, 9), planned(1, 0, 1), planned(0, 9, 18)]


@needs_limits
def test_after_nothing_new_each_batch_of_what_came_is_planned(there):
    """That nothing was new at one place says nothing of the next, though the view is the same."""
    query = Query(there, stream_options(maxOffsetsPerTrigger=5)).start()
    query.trigger()
    assert not query.trigger()
    there.cluster.produce("t", 0, 10)
    there.clock.now += 1

    assert [query.trigger() for _ in range(3)] == [True, True, False]
    assert query.offsets_read() == {A: (0, 10)}


@needs_limits
def test_trigger_once_ignores_limits(there):
    """It is one batch with all that is there, however little or much that is."""
    there.cluster.produce("t", 0, 30)
    query = Query(there, stream_options(maxOffsetsPerTrigger=10, minOffsetsPerTrigger=5))
    query.start(once=True).trigger()
    there.cluster.produce("t", 1, 1)
    query.start(once=True).trigger()

    assert query.read == [planned(0, 0, 30), planned(1, 0, 1)]


@needs_limits
def test_trigger_once_does_not_wait_for_min_offsets(there):
    """Not even when there is no other limit."""
    query = Query(there, stream_options(minOffsetsPerTrigger=5)).start()
    query.trigger()
    there.cluster.produce("t", 1, 1)
    query.start(once=True)

    assert query.trigger()


@needs_limits
def test_min_offsets_per_trigger_waits(there):
    """Until so many are there; a query that just started reads what there is, as Spark's source."""
    there.cluster.produce("t", 0, 3)
    query = Query(there, stream_options(minOffsetsPerTrigger=5)).start()

    assert query.trigger()
    there.cluster.produce("t", 0, 4)
    there.clock.now += 1
    assert not query.trigger()
    there.cluster.produce("t", 1, 1)
    there.clock.now += 1
    assert query.trigger()
    assert query.offsets_read() == {A: (0, 7), B: (0, 1)}


@needs_limits
def test_min_offsets_per_trigger_waits_no_longer_than_max_trigger_delay(there):
    """Then even one offset makes a batch."""
    query = Query(there, stream_options(minOffsetsPerTrigger=5, maxTriggerDelay="10s")).start()
    query.trigger()
    there.cluster.produce("t", 0, 1)
    there.clock.now += 9

    assert not query.trigger()
    there.clock.now += 1
    assert query.trigger()


@needs_limits
@pytest.mark.parametrize("delay_ms", [10_000, 10_500, 11_000, 11_500])
def test_max_trigger_delay_is_over_though_nothing_moves(there, delay_ms):
    """At the next look, and not when the whole topic is looked at again, which may be two seconds later."""
    query = Query(there, stream_options(minOffsetsPerTrigger=5, maxTriggerDelay=f"{delay_ms} ms"))
    query.start().trigger()
    there.cluster.produce("t", 0, 1)
    begin = there.clock.now
    while not query.trigger():
        there.clock.now += 0.01

    assert delay_ms <= round((there.clock.now - begin) * 1000) <= delay_ms + 300


@needs_limits
def test_min_offsets_count_all_that_is_there(there):
    """Not what maxOffsetsPerTrigger lets through, which rounding may make less."""
    query = Query(there, stream_options(minOffsetsPerTrigger=10, maxOffsetsPerTrigger=10)).start()
    query.trigger()
    there.cluster.produce("t", 0, 10)
    there.cluster.produce("t", 1, 5)
    there.clock.now += 1

    assert query.trigger()


@needs_limits
def test_a_latest_start_survives_min_offsets_per_trigger(there):
    """A first batch that waited would not be in the checkpoint, and neither would the start."""
    there.cluster.produce("t", 0, 5)
    query = Query(
        there, stream_options(scan__startup__mode="latest-offset", minOffsetsPerTrigger=5)
    ).start()
    query.trigger()
    there.cluster.produce("t", 0, 3)
    query.start().trigger()

    assert query.offsets_read() == {A: (5, 8)}


@needs_limits
def test_new_partitions_do_not_wait_for_min_offsets(there):
    """They are found now and then only; a batch must note them."""
    query = Query(there, stream_options(minOffsetsPerTrigger=5)).start()
    query.trigger()
    there.cluster.add_partition("t")
    there.clock.now += 301

    assert query.trigger()


@needs_limits
def test_available_now_fixes_the_end_once(there):
    """What comes later, new partitions too, is for the next run; limits hold, but no waiting."""
    there.cluster.produce("t", 0, 25)
    query = Query(there, stream_options(maxOffsetsPerTrigger=10, minOffsetsPerTrigger=8))
    query.start(available_now=True)
    there.cluster.produce("t", 0, 5)
    query.trigger()
    there.cluster.add_partition("t")
    there.cluster.produce("t", 2, 5)
    while query.trigger():
        there.clock.now += 400

    assert [range_.size for range_ in query.read] == [10, 10, 5]
    query.start(available_now=True)
    while query.trigger():
        there.clock.now += 400
    assert query.offsets_read() == {A: (0, 30), TopicPartition("t", 2): (0, 5)}


@needs_limits
def test_available_now_ends_on_an_empty_topic(there):
    """After one batch, which fixes the start."""
    query = Query(there, stream_options()).start(available_now=True)

    assert query.trigger()
    assert not query.trigger()
    assert query.read == []


# Bounded streams.


def test_a_bounded_stream_stops_where_the_topic_ended_when_it_began(there, protocol):
    """The end is fixed once and kept in the checkpoint: neither time nor a restart moves it."""
    there.cluster.produce("t", 0, 25)
    limit = {"maxOffsetsPerTrigger": 10} if protocol is ReaderWithLimits else {}
    options = stream_options(scan__bounded__mode="latest-offset", **limit)
    query = Query(there, options, protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 5)
    there.cluster.add_partition("t")
    there.cluster.produce("t", 2, 5)
    there.clock.now += 1000
    query.start()
    while query.trigger():
        there.clock.now += 1000

    assert query.offsets_read() == {A: (0, 25)}
    assert json.loads(query.log[0])["topics"]["t"]["stop"] == {"0": 25, "1": 0}
    assert json.loads(query.log[-1])["topics"]["t"]["stop"] == {"0": 25, "1": 0}


def test_a_bounded_stream_reads_only_partitions_with_an_end(there, protocol):
    """Specific offsets name them, as in Flink."""
    there.cluster.produce("t", 0, 5)
    there.cluster.produce("t", 1, 5)
    query = Query(
        there,
        stream_options(
            scan__bounded__mode="specific-offsets",
            **{"scan.bounded.specific-offsets": "partition:1,offset:3"},
        ),
        protocol,
    ).start()
    while query.trigger():
        there.clock.now += 1000

    assert query.offsets_read() == {B: (0, 3)}


def test_a_bounded_stream_without_topics_stays_empty(there, protocol):
    """A pattern that matched nothing when the end was fixed."""
    query = Query(
        there,
        stream_options(topic=None, topic_pattern="x.*", scan__bounded__mode="latest-offset"),
        protocol,
    ).start()
    query.trigger()
    there.cluster.create("x1")
    there.cluster.produce("x1", 0, 5)
    there.clock.now += 1000

    assert not query.start().trigger()


def test_a_bounded_stream_misses_nothing_that_it_has_read(there, protocol):
    """Retention behind its end, even the deletion of the topic, is no data loss."""
    there.cluster.produce("t", 0, 5)
    query = Query(there, stream_options(scan__bounded__mode="latest-offset"), protocol).start()
    query.trigger()
    there.cluster.set("t", 0, 20, 30)
    there.clock.now += 1

    assert not query.trigger()
    there.cluster.delete("t")
    there.clock.now += 1
    assert not query.trigger()


def test_an_end_added_to_a_checkpoint_is_told_once(there, protocol, caplog):
    """It has no effect, since an end is fixed when a query begins."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    query.options = stream_options(scan__bounded__mode="latest-offset")
    for _ in range(2):
        query.start()
        for _ in range(3):
            there.cluster.produce("t", 0, 5)
            there.clock.now += 1
            assert query.trigger(), "the stream goes on"

    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, "once for each start"
    assert "'scan.bounded.mode' = 'latest-offset' has no effect" in told[0]


def test_an_end_taken_from_a_checkpoint_is_told_once(there, protocol, caplog):
    """The stream still ends there."""
    query = Query(there, stream_options(scan__bounded__mode="latest-offset"), protocol).start()
    query.trigger()
    query.options = stream_options()
    query.start()
    for _ in range(3):
        there.cluster.produce("t", 0, 5)
        there.clock.now += 1
        assert not query.trigger()

    (told,) = caplog.records
    assert "with 'scan.bounded.mode', which the options no longer have" in told.getMessage()


@pytest.mark.parametrize("end", ["unbounded", "latest-offset"])
def test_an_end_that_is_as_it_was_is_not_told(there, protocol, caplog, end):
    """In a new query and in one that goes on."""
    query = Query(there, stream_options(scan__bounded__mode=end), protocol).start()
    query.trigger()
    query.start().trigger()

    assert caplog.records == []


# Data loss.


@pytest.mark.parametrize("what", LOSSES)
def test_lost_data_fails_the_query(there, protocol, what):
    """Running or restarted, with topic, partition, wanted and earliest offset."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    lost_tables(there)[what]()
    there.clock.now += 1
    message, _ = LOSSES[what]

    with pytest.raises(DataLossError, match=message) as running:
        query.trigger()
    query.start()
    with pytest.raises(DataLossError, match=message):
        query.trigger()
    assert "topic 't', partition 0, wanted offset 10" in str(running.value)
    assert "failOnDataLoss" in str(running.value)


@pytest.mark.parametrize("what", LOSSES)
def test_without_fail_on_data_loss_it_goes_on_from_what_is_there(there, protocol, what, caplog):
    """With one warning; what is read then is read once."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(failOnDataLoss="false"), protocol).start()
    query.trigger()
    query.read.clear()
    lost_tables(there)[what]()
    there.clock.now += 1
    with caplog.at_level(logging.WARNING):
        while query.trigger():
            there.clock.now += 1
    _, left = LOSSES[what]

    assert {tp: at for tp, at in query.offsets_read().items() if tp == A} == (
        {} if left is None else {A: left}
    )
    assert len([r for r in caplog.records if "partition 0" in r.getMessage()]) == 1
    assert not query.trigger()


def trigger_for(seconds: float, query: Query, there: World) -> None:
    """Triggers as long, twenty times a second."""
    begin = there.clock.now
    while there.clock.now < begin + seconds:
        there.clock.now += 0.05
        query.trigger()


def stale_answers(there: World) -> dict[str, dict[str, FakeTopic]]:
    """What a broker with old metadata, or one that lags, may say of topic ``t`` with 10 messages."""
    now = there.cluster.topics_there["t"]
    return {
        "no such topic": {},
        "fewer partitions": {"t": FakeTopic(now.id, now.partitions[:1])},
        "no partition": {"t": FakeTopic(now.id, [])},
        "the topic that had this name before": {"t": FakeTopic("id-0", [Bounds(0, 2, 2)] * 2)},
        "an earlier end": {"t": FakeTopic(now.id, [Bounds(0, 7, 7), now.partitions[1]])},
    }


STALE = ["no such topic", "fewer partitions", "no partition", "an earlier end",
         "the topic that had this name before"]  # fmt: skip


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("looks", [1, 3, 9])
@pytest.mark.parametrize("what", STALE)
def test_stale_answers_lose_nothing(there, protocol, what, looks, fail, caplog):
    """A topic that comes back within ten seconds goes on as if nothing had been."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(failOnDataLoss=fail), protocol).start()
    query.trigger()
    there.cluster.stale = [stale_answers(there)[what]] * looks
    there.cluster.produce("t", 0, 5)
    there.clock.now += 1

    assert query.trigger()
    assert query.offsets_read() == {A: (0, 15)}
    assert json.loads(query.log[-1])["topics"]["t"] == {
        "id": "id-1",
        "positions": {"0": 15, "1": 0},
    }
    assert caplog.records == []


@pytest.mark.parametrize("what", STALE)
def test_a_planned_batch_outlives_stale_answers(there, protocol, what):
    """A restarted query looks again before it says that its unfinished batch is lost."""
    query = Query(there, stream_options(), protocol).start()
    there.cluster.produce("t", 0, 10)
    query.plan()
    there.cluster.stale = [stale_answers(there)[what]] * 5
    query.start()

    assert query.offsets_read() == {A: (0, 10)}


@needs_limits
@pytest.mark.parametrize("what", STALE)
@pytest.mark.parametrize("named", [True, False])
def test_a_stale_answer_to_available_now_leaves_nothing_out(there, what, named):
    """What the checkpoint knows is read to its end, though the look that fixed the end missed it."""
    there.cluster.produce("t", 0, 10)
    wanted = {} if named else {"topic": None, "topic_pattern": "t.*"}
    query = Query(there, stream_options(**wanted)).start()
    query.trigger()
    there.cluster.produce("t", 0, 5)
    there.cluster.stale = [stale_answers(there)[what]]
    query.start(available_now=True)
    while query.trigger():
        there.clock.now += 1

    read_to = 10 if what in ("an earlier end", "the topic that had this name before") else 15
    assert query.offsets_read() == {A: (0, read_to)}


@needs_limits
@pytest.mark.parametrize("what", ["no such topic", "fewer partitions", "no partition"])
@pytest.mark.parametrize("named", [True, False])
def test_a_stale_answer_to_a_first_available_now_leaves_nothing_out(there, what, named):
    """A new query reads every partition that it starts with, though the look that fixed the end missed it."""
    there.cluster.produce("t", 0, 10)
    there.cluster.produce("t", 1, 5)
    wanted = {} if named else {"topic": None, "topic_pattern": "t.*"}
    query = Query(there, stream_options(**wanted))
    there.cluster.stale = [stale_answers(there)[what]]
    query.start(available_now=True)
    while query.trigger():
        there.clock.now += 1

    assert query.offsets_read() == {A: (0, 10), TopicPartition("t", 1): (0, 5)}


def test_a_loss_is_certain_after_ten_seconds(there, protocol):
    """Not before, and the brokers are asked all the time."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.delete("t")
    there.clock.now += 1
    begin, looks = there.clock.now, there.cluster.looks

    with pytest.raises(DataLossError):
        query.trigger()
    assert there.clock.now - begin >= 10
    assert there.cluster.looks - looks >= 10


@needs_limits
def test_a_loss_is_told_once_while_min_offsets_are_waited_for(there, caplog):
    """It is noted in a batch at once instead of being found again at each question."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(failOnDataLoss="false", minOffsetsPerTrigger=100)).start()
    query.trigger()
    there.cluster.set("t", 0, 15, 20)
    for _ in range(50):
        there.clock.now += 1
        query.trigger()

    assert len(caplog.records) == 1


def test_a_recreated_topic_is_read_with_its_new_partitions(there, protocol):
    """It may have more of them than the one before."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(failOnDataLoss="false"), protocol).start()
    query.trigger()
    query.read.clear()
    there.cluster.delete("t")
    there.cluster.create("t", 3)
    there.cluster.produce("t", 2, 4)
    there.clock.now += 1
    query.trigger()

    assert query.offsets_read() == {TopicPartition("t", 2): (0, 4)}


def test_a_deleted_topic_that_comes_again_is_read(there, protocol, caplog):
    """As a new one, when the discovery finds it; its loss is told once for each partition."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(failOnDataLoss="false"), protocol).start()
    query.trigger()
    query.read.clear()
    there.cluster.delete("t")
    there.clock.now += 1
    query.trigger()
    there.cluster.create("t", 1)
    there.cluster.produce("t", 0, 4)
    there.clock.now += 301
    query.trigger()

    assert query.offsets_read() == {A: (0, 4)}
    assert len(caplog.records) == 2


@pytest.mark.parametrize("what", ["deleted", "re-created with more messages", "truncated"])
def test_a_planned_batch_whose_data_is_lost_fails(there, protocol, what):
    """Between the crash and the restart much can happen to the batch that waits in the log."""
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 10)
    there.clock.now += 1
    query.plan()
    lost_tables(there)[what]()

    with pytest.raises(DataLossError, match="topic 't', partition 0"):
        query.start()


def test_without_fail_on_data_loss_a_planned_batch_reads_what_is_left(there, protocol):
    """And the next one goes on where it ended."""
    query = Query(there, stream_options(failOnDataLoss="false"), protocol).start()
    query.trigger()
    there.cluster.produce("t", 0, 10)
    there.clock.now += 1
    query.plan()
    there.cluster.set("t", 0, 4, 12)
    query.start()
    query.trigger()

    assert query.offsets_read() == {A: (4, 12)}


def test_a_finished_batch_may_be_gone(there, protocol):
    """What was read needs not be there at the next start, even if nothing was read since."""
    there.cluster.produce("t", 0, 10)
    query = Query(there, stream_options(), protocol).start()
    query.trigger()
    there.cluster.set("t", 0, 10, 10)
    query.start()

    assert not query.trigger()


def test_a_topic_left_out_of_the_options_is_not_read_on(there, protocol):
    """The checkpoint wants it, the options do not: that must not pass in silence."""
    there.cluster.create("u")
    query = Query(there, stream_options(topic="t;u"), protocol).start()
    query.trigger()
    query.options = stream_options(topic="t")
    query.start()

    with pytest.raises(DataLossError, match=r"'u'.*no longer name it"):
        query.trigger()


def test_a_topic_added_to_the_options_is_read_from_its_earliest_offset(there, protocol):
    """Like any that is new."""
    query = Query(there, stream_options(scan__startup__mode="latest-offset"), protocol).start()
    query.trigger()
    there.cluster.create("u")
    there.cluster.produce("u", 0, 3)
    query.options = stream_options(topic="t;u", scan__startup__mode="latest-offset")
    query.start().trigger()

    assert query.offsets_read() == {TopicPartition("u", 0): (0, 3)}


# Offsets in Kafka's group.


def test_finished_batches_are_committed_to_the_group(there, protocol):
    """One batch behind, because Spark says so when it plans the next."""
    query = Query(there, stream_options(properties__group__id="g"), protocol).start()
    for _ in range(3):
        there.cluster.produce("t", 0, 5)
        there.clock.now += 1
        query.trigger()

    assert there.cluster.committed == {A: 10, B: 0}


def test_without_a_group_nothing_is_committed(there, protocol):
    """The checkpoint alone decides where a query resumes."""
    query = Query(there, stream_options(), protocol).start()
    for _ in range(3):
        there.cluster.produce("t", 0, 5)
        there.clock.now += 1
        query.trigger()

    assert there.cluster.committed == {}


def test_a_literal_secret_in_a_stream_is_told_once(there, protocol, caplog, monkeypatch):
    """The process that plans the batches tells it, and no other one, such as that of a task."""
    monkeypatch.setattr(errors, "_warned", set())
    options = stream_options(properties__ssl__key__pem="geheim")
    query = Query(there, options, protocol).start()
    assert caplog.records == []
    for _ in range(3):
        there.cluster.produce("t", 0, 5)
        query.trigger()

    (told,) = [each.getMessage() for each in caplog.records]
    assert "'properties.ssl.key.pem'" in told
    assert "geheim" not in told
