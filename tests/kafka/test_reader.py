"""Reading ranges: all of it, in order, up to the end by position, whatever lies in the log."""

from __future__ import annotations

import sys
import threading
import time
import uuid

import pytest
from confluent_kafka import KafkaException, Producer

from pyspark_upsert_kafka.core.errors import DataLossError, OptionError
from pyspark_upsert_kafka.core.metadata import ALL_DETAILS, Detail
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.librdkafka.reader import LibrdkafkaFetcher
from pyspark_upsert_kafka.kafka.range_fetch import BATCH_BYTES
from tests.conftest import Broker
from tests.kafka.conftest import (
    WAYS,
    Edge,
    delete_before,
    eventually,
    no_more_than,
    numbered,
    open_things,
    own_messages,
    received,
    turn_off,
)

LARGE = b"x" * 100_000


@pytest.fixture(params=WAYS)
def edge(request: pytest.FixtureRequest, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Edge:
    """The seam over each client, and over librdkafka without an object for each message."""
    turn_off(monkeypatch, request.param)
    client, _, in_batches = request.param.partition(" ")
    details = frozenset({Detail.TIMESTAMP}) if in_batches else ALL_DETAILS
    return Edge(client, broker.servers, details=details)


def values_of(count: int, start: int = 0) -> list[bytes]:
    """The values of `numbered`."""
    return [value for _, value in numbered(count, start)]


def created(broker: Broker, topic: str) -> bool:
    """Creates a topic; False = one of that name is still being deleted."""
    try:
        broker.create(topic)
    except KafkaException:
        return False
    return True


def transactional(broker: Broker) -> Producer:
    """A plain client's producer that has no open transaction."""
    producer = broker.producer(**{"transactional.id": uuid.uuid4().hex})
    producer.init_transactions()
    return producer


def in_transaction(producer: Producer, topic: str, *values: bytes, commit: bool) -> None:
    """Writes the values in one transaction and ends it."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    if commit:
        producer.commit_transaction()
    else:
        producer.flush()
        producer.abort_transaction()


@pytest.mark.every_client
def test_a_range_is_read_in_order_and_no_further(broker, edge):
    """From its begin up to but not with its end, though there is more."""
    topic = broker.topic(2)
    broker.produce(topic, *numbered(100), partition=1)

    batches = list(edge.batches(Range(topic, 1, 10, 90)))

    assert {(batch.topic, batch.partition) for batch in batches} == {(topic, 1)}
    assert [offset for batch in batches for offset in batch.offsets] == list(range(10, 90))
    assert [value for batch in batches for value in batch.values] == values_of(80, 10)
    assert all(len(batch) == len(batch.keys) == len(batch.values) > 0 for batch in batches)


def test_a_long_range_comes_in_bounded_batches(broker, edge):
    """However much there is, a batch fits into memory, and nothing is lost between batches."""
    topic = broker.topic()
    broker.produce(topic, *numbered(50_000))

    batches = list(edge.batches(Range(topic, 0, 0, 50_000)))

    assert max(map(len, batches)) <= 20_000
    assert [offset for batch in batches for offset in batch.offsets] == list(range(50_000))


@pytest.mark.long("writes and reads 60 MB each")
@pytest.mark.parametrize(
    "message",
    [("k", LARGE), (LARGE, "v"), ("k", "v", [("h", LARGE)])],
    ids=["value", "key", "header"],
)
def test_a_batch_of_large_messages_is_bounded_by_bytes(broker, edge, monkeypatch, message):
    """60 MB of messages of 100 KB are never in one batch, whatever part of them is large."""
    seek = LibrdkafkaFetcher.seek

    def seek_and_pause(fetcher, offset):
        seek(fetcher, offset)
        time.sleep(1)  # as a busy machine does: librdkafka fetches all of them meanwhile

    monkeypatch.setattr(LibrdkafkaFetcher, "seek", seek_and_pause)
    topic = broker.topic()
    broker.produce(topic, *[message] * 600)

    # Headers that are not taken out take no room.
    details = ALL_DETAILS if len(message) == 3 else None

    batches = edge.batches(Range(topic, 0, 0, 600), details=details)
    sizes = [100_000 * len(batch) for batch in batches]

    assert sum(sizes) == 60_000_000
    assert max(sizes) <= 2.5 * BATCH_BYTES, "what was taken, and a queue full on top"


@pytest.mark.alone("counts the bytes that come to this process")
@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel")
def test_ranges_are_fetched_about_as_large_as_they_are(broker, edge):
    """Twenty small ranges of a long partition do not cost a megabyte each."""
    topic = broker.topic()
    small_batches = {"batch.size": 4_000, "linger.ms": 0}
    broker.produce(topic, *[("k", b"x" * 1_000)] * 4_000, **small_batches)
    edge.offsets(Range(topic, 0, 0, 10))
    before = received()

    for begin in range(0, 200, 10):
        assert len(edge.offsets(Range(topic, 0, begin, begin + 10))) == 10

    cost = sum(count - before.get(port, 0) for port, count in received().items())
    assert 200_000 <= cost <= 1_500_000


def test_an_empty_range_reads_nothing(broker, edge):
    """Nothing is planned, nothing is waited for."""
    topic = broker.topic()

    assert list(edge.batches(Range(topic, 0, 0, 0))) == []


@pytest.mark.every_client
def test_null_and_empty_are_not_the_same(broker, edge):
    """A null value is a tombstone; a value of no bytes is a value; likewise for keys."""
    topic = broker.topic()
    pairs = [(b"k", None), (b"k", b""), (None, b"v"), (b"", b"v"), (None, None)]
    broker.produce(topic, *pairs)

    (batch,) = edge.batches(Range(topic, 0, 0, 5))

    assert list(zip(batch.keys, batch.values, strict=True)) == pairs


@pytest.mark.every_client
def test_headers_come_as_they_were_written(broker, edge):
    """In their order, with duplicates, null values and empty ones; none is an empty sequence."""
    topic = broker.topic()
    headers = [("a", b"1"), ("b", None), ("a", b"2"), ("ü", b"")]
    broker.produce(topic, ("k", "v", headers), ("k", "v"))

    (batch,) = edge.batches(Range(topic, 0, 0, 2), details=ALL_DETAILS)

    assert [list(each) for each in batch.headers] == [headers, []]


@pytest.mark.every_client
def test_timestamps_are_those_of_the_producer(broker, edge):
    """CreateTime is type 1, with milliseconds; also from before 1970's first second is over."""
    topic = broker.topic()
    producer = broker.producer()
    for ms in (1, 1_767_225_600_123):
        producer.produce(topic, b"v", timestamp=ms)
    producer.flush()

    (batch,) = edge.batches(Range(topic, 0, 0, 2))

    assert list(batch.timestamp_types) == [1, 1]
    assert list(batch.timestamps) == [1, 1_767_225_600_123]


def test_timestamps_are_those_of_the_log(broker, edge):
    """LogAppendTime is type 2, and the broker's clock."""
    topic = broker.topic(message_timestamp_type="LogAppendTime")
    producer = broker.producer()
    producer.produce(topic, b"v", timestamp=1)
    producer.flush()

    (batch,) = edge.batches(Range(topic, 0, 0, 1))

    (ms,) = batch.timestamps
    assert list(batch.timestamp_types) == [2]
    assert abs(ms - time.time() * 1000) < 3_600_000


def test_the_leader_epoch_is_known(broker, edge):
    """A single broker that never failed leads in its first epoch; a client may not tell."""
    topic = broker.topic()
    broker.produce(topic, *numbered(1))

    (batch,) = edge.batches(Range(topic, 0, 0, 1), details=ALL_DETAILS)

    assert batch.leader_epochs == [0 if edge.has_leader_epochs else None]


def test_only_wanted_details_are_taken_out(broker, edge):
    """Without details there are keys, values and offsets only."""
    topic = broker.topic()
    broker.produce(topic, ("k", "v", [("a", b"1")]))

    (batch,) = edge.batches(Range(topic, 0, 0, 1), details=frozenset())

    assert (batch.keys, batch.values, list(batch.offsets)) == ([b"k"], [b"v"], [0])
    assert (list(batch.timestamp_types), list(batch.timestamps)) == ([], [])
    assert (batch.headers, batch.leader_epochs) == ([], [])


@pytest.mark.every_client
def test_the_end_is_reached_over_trailing_transaction_markers(broker, edge):
    """The last offset of the range is a commit marker, which is no message."""
    topic = broker.topic()
    in_transaction(transactional(broker), topic, b"a", b"b", commit=True)
    assert eventually(lambda: [bounds.latest for bounds in edge.bounds(topic)] == [3])

    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1]
    assert edge.offsets(Range(topic, 0, 2, 3)) == []


@pytest.mark.every_client
def test_aborted_messages_are_seen_only_by_those_who_want_them(broker, edge):
    """Under read_committed they are a gap, be it at the end, or it is refused; else they are messages."""
    topic = broker.topic()
    producer = transactional(broker)
    in_transaction(producer, topic, b"a", commit=True)  # 0, marker 1
    in_transaction(producer, topic, b"no", b"no", commit=False)  # 2, 3, marker 4
    in_transaction(producer, topic, b"b", commit=True)  # 5, marker 6
    in_transaction(producer, topic, b"no", commit=False)  # 7, marker 8

    assert edge.offsets(Range(topic, 0, 0, 9), committed=False) == [0, 2, 3, 5, 7]
    if edge.has_transactions:
        assert edge.offsets(Range(topic, 0, 0, 9)) == [0, 5]
        assert edge.offsets(Range(topic, 0, 2, 5)) == []
    else:
        with pytest.raises(OptionError, match=r"isolation\.level' = 'read_uncommitted'"):
            edge.offsets(Range(topic, 0, 0, 9), committed=True)


def test_a_range_ends_before_an_open_transaction(broker, edge):
    """What lies behind the open transaction is not waited for."""
    topic = broker.topic()
    broker.produce(topic, *numbered(2))
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    broker.produce(topic, *numbered(1))
    (bounds,) = edge.bounds(topic)

    assert edge.offsets(Range(topic, 0, 0, bounds.latest)) == (
        [0, 1] if edge.has_transactions else [0, 1, 2, 3]
    )
    assert edge.offsets(Range(topic, 0, 0, 4), committed=False) == [0, 1, 2, 3]
    producer.abort_transaction()


@pytest.mark.long("waits for the cleaner of a broker of its own")
def test_compaction_gaps_are_no_loss_and_no_wait(edge, stoppable_broker):
    """Real compaction took most of the messages, the last of the range too."""
    topic = stoppable_broker.topic(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.001",
        delete_retention_ms="0",
    )  # fmt: skip
    edge = edge.at(stoppable_broker.servers)
    for _ in range(20):
        stoppable_broker.produce(topic, ("a", "1"), ("b", "2"))
    time.sleep(
        0.2
    )  # the next message is in a segment of its own, and lets the cleaner at the others
    stoppable_broker.produce(topic, ("c", "3"))

    assert eventually(lambda: len(edge.offsets(Range(topic, 0, 0, 41))) == 3)
    assert edge.offsets(Range(topic, 0, 0, 41)) == [38, 39, 40]
    assert edge.offsets(Range(topic, 0, 0, 38)) == []
    assert edge.offsets(Range(topic, 0, 5, 39)) == [38]


@pytest.mark.long("waits for the cleaner of a broker of its own")
def test_a_segment_that_compaction_has_emptied_may_be_read_often(edge, stoppable_broker):
    """It holds a batch without a message: librdkafka says of the thirteenth such fetch that a message is too large."""
    topic = stoppable_broker.topic(
        cleanup_policy="compact", segment_ms="100", segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.001",
    )  # fmt: skip
    edge = edge.at(stoppable_broker.servers)
    # Each is in a segment of its own, which the cleaner does not join with the next: both exceed the size of one.
    for _ in range(2):
        stoppable_broker.produce(topic, ("a", "x" * 600_000), **{"enable.idempotence": True})
    time.sleep(0.2)  # as above
    stoppable_broker.produce(topic, ("b", "2"))
    assert eventually(lambda: len(stoppable_broker.messages(topic)) == 2)

    assert [edge.offsets(Range(topic, 0, 0, 3)) for _ in range(30)] == [[1, 2]] * 30
    assert [edge.offsets(Range(topic, 0, 0, 1)) for _ in range(30)] == [[]] * 30


@pytest.mark.every_client
def test_deleted_records_are_lost_data(broker, edge, caplog):
    """The error names topic, partition, wanted and earliest; or reading goes on from the earliest."""
    topic = broker.topic()
    broker.produce(topic, *numbered(10))
    delete_before(broker, topic, 6)

    with pytest.raises(DataLossError) as error:
        edge.offsets(Range(topic, 0, 2, 10))

    assert (error.value.topic, error.value.partition) == (topic, 0)
    assert (error.value.wanted, error.value.earliest) == (2, 6)
    caplog.clear()
    assert edge.offsets(Range(topic, 0, 2, 10), fail_on_data_loss=False) == [6, 7, 8, 9]
    assert edge.offsets(Range(topic, 0, 2, 5), fail_on_data_loss=False) == []
    assert [topic in message for message in own_messages(caplog)] == [True, True]


@pytest.mark.long("writes and reads 60 MB")
def test_records_deleted_in_the_middle_of_a_read(broker, edge):
    """What retention takes while a range is read is lost data too; or reading goes on behind it."""
    for fail in (True, False):
        topic = broker.topic()
        broker.produce(topic, *[(b"k", b"x" * 1000)] * 60_000)
        batches = edge.batches(Range(topic, 0, 0, 60_000), fail_on_data_loss=fail)
        offsets = list(next(batches).offsets)
        delete_before(broker, topic, 59_990)
        if fail:
            with pytest.raises(DataLossError) as error:
                offsets.extend(offset for batch in batches for offset in batch.offsets)
            assert error.value.earliest == 59_990
            assert offsets == list(range(error.value.wanted))
        else:
            offsets += [offset for batch in batches for offset in batch.offsets]
            assert offsets[-10:] == list(range(59_990, 60_000))
            assert offsets[:-10] == list(range(len(offsets) - 10))
            assert len(offsets) < 60_000


def test_a_log_that_ends_before_the_range_is_lost_data(broker, edge, caplog):
    """The topic was created again, or truncated: it is not waited for messages that never come."""
    edge = edge.impatient()
    topic = broker.topic()
    broker.produce(topic, *numbered(3))

    with pytest.raises(DataLossError, match=r"ends at offset 3, before offset 8"):
        edge.offsets(Range(topic, 0, 0, 8))
    with pytest.raises(DataLossError, match=r"wanted offset 5, earliest available offset 0"):
        edge.offsets(Range(topic, 0, 5, 8))

    caplog.clear()
    assert edge.offsets(Range(topic, 0, 0, 8), fail_on_data_loss=False) == [0, 1, 2]
    assert edge.offsets(Range(topic, 0, 5, 8), fail_on_data_loss=False) == []
    assert len(own_messages(caplog)) == 2


@pytest.mark.every_client
def test_a_topic_deleted_while_it_is_read_is_an_error(broker, edge, caplog):
    """No hang: the error names the topic; or the range ends with a warning. It is not created again."""
    edge = edge.impatient()
    for fail in (True, False):
        topic = broker.topic()
        broker.produce(topic, *numbered(3))
        edge.offsets(Range(topic, 0, 0, 3))
        batches = edge.batches(Range(topic, 0, 0, 5), fail_on_data_loss=fail)
        assert list(next(batches).offsets) == [0, 1, 2]
        broker.delete(topic)
        if fail:
            with pytest.raises(DataLossError, match=topic):
                list(batches)
        else:
            caplog.clear()
            assert list(batches) == []
            assert topic in caplog.text
        assert topic not in broker.admin.list_topics(timeout=30).topics


def test_a_topic_created_again_while_it_is_read_is_an_error(broker, edge, caplog):
    """As long as the range, so that only its id tells; without ids (kafka-python-ng) it is not noticed."""
    edge = edge.impatient()
    topic = broker.topic()
    broker.produce(topic, *numbered(30_000))
    id_ = edge.topic_id(topic)
    strict, going_on = (
        edge.batches(Range(topic, 0, 0, 30_000, topic_id=id_), fail_on_data_loss=fail)
        for fail in (True, False)
    )
    next(strict)
    next(going_on)
    broker.delete(topic)
    assert eventually(lambda: created(broker, topic))
    broker.produce(topic, *numbered(30_000, 30_000))

    if not edge.has_topic_ids:
        assert id_ == ""
        return
    with pytest.raises(DataLossError, match=f"{topic}.*created again while it was read"):
        list(strict)
    caplog.clear()
    list(going_on)
    (told,) = own_messages(caplog)
    assert "created again while it was read" in told
    with pytest.raises(DataLossError, match=f"{topic}.*created again while it was read"):
        next(edge.batches(Range(topic, 0, 0, 30_000, topic_id=id_)))


def test_a_missing_topic_is_an_error(edge):
    """Deleted between planning and reading: no hang."""
    missing = f"missing-{uuid.uuid4().hex[:8]}"

    with pytest.raises(DataLossError, match=missing):
        edge.impatient().offsets(Range(missing, 0, 0, 5))


@pytest.mark.long("restarts a broker")
def test_a_broker_restart_is_survived(edge, stoppable, stoppable_broker):
    """Stopped and started in the middle of a read: it goes on by itself, each offset once."""
    topic = stoppable_broker.topic()
    value = b"x" * 1000
    stoppable_broker.produce(topic, *[(b"k", value)] * 60_000)
    batches = edge.at(stoppable_broker.servers).batches(Range(topic, 0, 0, 60_000))
    offsets = list(next(batches).offsets)
    stoppable.stop()
    starting = threading.Timer(2.0, stoppable.start)
    starting.start()

    for batch in batches:
        offsets += batch.offsets

    starting.join()
    assert offsets == list(range(60_000))


def test_a_message_larger_than_a_fetch_is_read(broker, edge):
    """Ten megabytes, in the middle of small ones."""
    topic = broker.topic(max_message_bytes="12000000")
    large = b"x" * 10_000_000
    broker.produce(
        topic, ("a", "small"), ("b", large), ("c", "small"), **{"message.max.bytes": 12_000_000}
    )

    values = edge.values(Range(topic, 0, 0, 3))

    assert [len(value) for value in values] == [5, 10_000_000, 5]


@pytest.mark.alone("counts threads and descriptors")
def test_reading_again_and_again_leaks_nothing(broker, edge):
    """Connections are used again: no threads and no files are added, over two topics in turn."""
    topics = [broker.topic(), broker.topic()]
    for topic in topics:
        broker.produce(topic, *numbered(10))
        edge.offsets(Range(topic, 0, 0, 10))
    before = open_things()

    for _ in range(15):
        for topic in topics:
            assert edge.values(Range(topic, 0, 0, 10)) == values_of(10)

    assert eventually(lambda: no_more_than(before))


@pytest.mark.alone("counts threads and descriptors")
def test_readers_of_many_settings_leave_few_connections(broker, edge):
    """Each client.id needs a connection of its own; of thirty, those used last are kept."""
    topic = broker.topic()
    broker.produce(topic, *numbered(10))
    found = []
    for number in range(30):
        own = edge.given({"client.id": f"reader {number}"})
        assert own.values(Range(topic, 0, 0, 10)) == values_of(10)
        found.append(open_things())

    full = found[10]  # the pool has as many as it keeps

    assert eventually(lambda: no_more_than(full)), found


def test_a_reader_that_stops_early_breaks_nothing(broker, edge):
    """LIMIT abandons the iterator: the next read is whole."""
    topic = broker.topic()
    broker.produce(topic, *numbered(30_000))
    for _ in range(2):
        batches = edge.batches(Range(topic, 0, 0, 30_000))
        next(batches)
        batches.close()

    assert edge.offsets(Range(topic, 0, 5, 30_000)) == list(range(5, 30_000))


@pytest.mark.alone("counts threads and descriptors")
def test_a_reader_that_stops_early_leaves_nothing_open(broker, edge):
    """However often one was left before its end."""
    topic = broker.topic()
    broker.produce(topic, *numbered(30_000))
    for _ in range(2):  # one connection for a first guess, one for what was learned of the topic
        edge.offsets(Range(topic, 0, 0, 30_000))
    before = open_things()

    for _ in range(5):
        batches = edge.batches(Range(topic, 0, 0, 30_000))
        next(batches)
        batches.close()

    assert eventually(lambda: no_more_than(before))


def test_two_ranges_may_be_read_at_once(broker, edge):
    """Whoever reads has a connection of their own."""
    topic = broker.topic(2)
    for partition in (0, 1):
        broker.produce(topic, *numbered(25_000), partition=partition)

    pairs = zip(
        edge.batches(Range(topic, 0, 0, 25_000)),
        edge.batches(Range(topic, 1, 0, 25_000)),
        strict=False,
    )

    assert all((a.partition, b.partition) == (0, 1) for a, b in pairs)


def test_the_reset_of_a_group_start_hides_no_loss(broker, edge):
    """auto.offset.reset decides where a query starts, and never over records that are gone."""
    topic = broker.topic()
    broker.produce(topic, *numbered(10))
    delete_before(broker, topic, 6)

    for reset in ("earliest", "latest", "none"):
        with pytest.raises(DataLossError):
            edge.given({"auto.offset.reset": reset}).offsets(Range(topic, 0, 2, 10))
