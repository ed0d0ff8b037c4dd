"""Fetching with librdkafka: how messages and events of a consumer become what a poll has brought."""

from __future__ import annotations

from typing import Any, cast

import confluent_kafka as ck
import pytest
from confluent_kafka import KafkaError, Message

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.failures import explained
from pyspark_upsert_kafka.kafka.librdkafka import reader
from pyspark_upsert_kafka.kafka.librdkafka.errors import ReportedErrors
from pyspark_upsert_kafka.kafka.librdkafka.reader import Connection, LibrdkafkaFetcher

try:
    Message(topic="t")
except TypeError:
    pytest.skip("programs cannot make messages of confluent-kafka 2.10", allow_module_level=True)

EOF, RESET = KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET


class Consumer:
    """A consumer that gives what it has been given, chunk by chunk, and then nothing, for which time passes."""

    def __init__(self, *chunks: list[Message], watermarks: object = None) -> None:
        self.chunks, self.watermarks = list(chunks), watermarks
        self.looked_up: list[str] = []
        self.counts: list[int] = []
        self.now_s = 0.0

    def assign(self, _: object) -> None:
        """Nothing is fetched."""

    def list_topics(self, topic: str, timeout: float) -> None:
        """Notes the topic; no broker answers in time."""
        self.looked_up.append(topic)
        raise ck.KafkaException(KafkaError(KafkaError._TIMED_OUT, f"not within {timeout} s"))

    def poll(self, _: float) -> None:
        """No callback waits."""

    def consume(self, count: int, _: float) -> list[Message]:
        """The next chunk."""
        self.counts.append(count)
        if self.chunks:
            return self.chunks.pop(0)
        self.now_s += 1_000
        return []

    def get_watermark_offsets(self, *_: object, **__: object) -> object:
        """As a leader answers, or not."""
        if isinstance(self.watermarks, Exception):
            raise self.watermarks
        return self.watermarks


def fetching(
    consumer: Consumer, details: frozenset[Detail] = frozenset(), **more: float
) -> LibrdkafkaFetcher:
    """A fetcher with this consumer."""
    connection = Connection(cast("Any", consumer), ReportedErrors())
    return LibrdkafkaFetcher(
        connection,
        Range("t", 0, 0, 100),
        details=details,
        clock=lambda: consumer.now_s,
        **more,
    )


def message(offset: int) -> Message:
    """A message with a value of three bytes."""
    return Message(topic="t", partition=0, offset=offset, key=b"k", value=b"abc")


def event(code: int, offset: int = -1, topic: str | None = "t") -> Message:
    """An event of the consumer; without a topic it is of its group."""
    return Message(topic=topic, partition=0, offset=offset, error=KafkaError(code, "the reason"))


def test_a_consumer_looks_up_each_topic_but_its_first():
    """Once: librdkafka would do so a second later. If no broker answers, it still does."""
    consumer = Consumer()
    connection = Connection(cast("Any", consumer), ReportedErrors())
    for topic in ("a", "a", "b", "c", "b", "a"):
        at = Range(topic, 0, 0, 100)
        reads = LibrdkafkaFetcher(connection, at, details=frozenset())
        reads.seek(0)

    assert consumer.looked_up == ["b", "c"]


@pytest.mark.parametrize(
    ("chunks", "offsets", "position"),
    [
        ([], [], 2),
        ([[message(2), message(3)]], [2, 3], 4),
        ([[message(2)], [message(5)]], [2, 5], 6),
        ([[message(7), message(9), message(10)]], [7, 9], 11),
        ([[message(12)]], [], 13),
        ([[message(2), event(EOF, 8)]], [2], 8),
        ([[event(EOF, 12)]], [], 12),
        ([[message(2)], [event(EOF, 2)]], [2], 3),
    ],
)
def test_a_poll_brings_the_messages_before_the_end(chunks, offsets, position):
    """And a position behind them, behind gaps and, by the event at the end of the log, behind markers."""
    found = fetching(Consumer(*chunks)).poll(2, 10)

    assert ([*found.batch.offsets], found.position) == (offsets, position)
    assert found.size_bytes == 4 * len(offsets)
    assert (found.is_out_of_range, found.fatal_error) == (False, None)


@pytest.mark.parametrize(
    ("given", "details", "count"),
    [
        ({"value": b"x" * 50}, frozenset(), 4),
        ({"key": b"x" * 50}, frozenset(), 4),
        ({"headers": [("h", b"x" * 49)]}, frozenset({Detail.HEADERS}), 4),
        ({"headers": [("h", b"x" * 49)]}, frozenset(), 6),
    ],
)
def test_a_batch_ends_at_a_number_of_bytes(monkeypatch, given, details, count):
    """Those of keys, values and headers that are taken out, with the chunk that reaches it."""
    monkeypatch.setattr(reader, "BATCH_BYTES", 101)
    chunks = [
        [Message(topic="t", partition=0, offset=at, **given) for at in range(begin, begin + 2)]
        for begin in (0, 2, 4)
    ]

    found = fetching(Consumer(*chunks), details).poll(0, 6)

    assert len(found.batch) == count


def test_the_first_messages_are_taken_few_at_once():
    """Until one was seen, each may be large; then as many as may fit are taken. What is queued may be a multiple of a batch."""
    consumer = Consumer([message(0)])
    fetching(consumer).poll(0, 30_000)

    assert consumer.counts[:2] == [17, 2_000]


def test_a_batch_has_a_number_of_messages_at_most(monkeypatch):
    """Also where chunks were not full: the last one has room for what is left."""
    monkeypatch.setattr(reader, "_BATCH", 20)
    consumer = Consumer([message(at) for at in range(17)], [message(at) for at in range(17, 20)])
    found = fetching(consumer).poll(0, 30_000)

    assert consumer.counts == [17, 3]
    assert len(found.batch) == 20


def test_a_timestamp_stays_with_its_message():
    """Its type and its milliseconds, before 1970 too; a message without one says so."""
    written = [(1, 1_767_225_600_000), (2, 7), (1, -5)]
    known = [
        Message(topic="t", partition=0, offset=at, value=b"v", timestamp=timestamp)
        for at, timestamp in enumerate(written)
    ]
    consumer = Consumer(known[:2], [known[2], message(3)])

    batch = fetching(consumer, frozenset({Detail.TIMESTAMP})).poll(0, 4).batch

    pairs = [*zip(batch.timestamp_types, batch.timestamps, strict=True)]
    assert pairs == [*written, message(3).timestamp()]


@pytest.mark.parametrize(("topic", "partition"), [("other", 0), ("t", 1)])
def test_the_end_of_another_partition_is_not_this_ones(topic, partition):
    """A consumer from the pool has read other ranges before."""
    other = Message(topic=topic, partition=partition, offset=9, error=KafkaError(EOF))

    found = fetching(Consumer([other, message(2)])).poll(2, 3)

    assert ([*found.batch.offsets], found.position) == ([2], 3)


@pytest.mark.parametrize(
    ("code", "is_out_of_range", "fatal_error"),
    [
        (RESET, True, None),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False, explained(29, "the reason")),
    ],
)
def test_a_poll_ends_where_the_partition_cannot_be_read(code, is_out_of_range, fatal_error):
    """With the messages before; what would follow is left for later."""
    consumer = Consumer([message(0)], [message(1), event(code)], [message(2)])

    found = fetching(consumer).poll(0, 10)

    assert ([*found.batch.offsets], found.position) == ([0, 1], 2)
    assert (found.is_out_of_range, found.fatal_error) == (is_out_of_range, fatal_error)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.UNKNOWN,
    ],
)
def test_errors_that_pass_do_not_end_a_poll(code):
    """The client retries by itself; an unknown topic proves nothing while a broker restarts."""
    found = fetching(Consumer([event(code)], [message(0)])).poll(0, 1)

    assert [*found.batch.offsets] == [0]


@pytest.mark.parametrize(
    "error",
    [
        event(KafkaError.GROUP_AUTHORIZATION_FAILED, topic=None),
        event(KafkaError.INVALID_REQUEST, topic=None),
        event(KafkaError.TOPIC_AUTHORIZATION_FAILED, topic="other"),
        event(KafkaError._BAD_MSG, 0, topic="other"),
    ],
)
def test_only_errors_of_the_partition_end_a_poll(error):
    """Librdkafka looks for its group's coordinator, whom nobody needs here; what was read before is over."""
    found = fetching(Consumer([error], [message(0)])).poll(0, 1)

    assert ([*found.batch.offsets], found.fatal_error, found.damage) == ([0], None, None)


@pytest.mark.parametrize(
    ("chunk", "offsets", "position", "damage"),
    [
        ([message(2), message(3), event(KafkaError._BAD_MSG, 4)], [2, 3], 4, "the reason"),
        ([message(2), event(KafkaError.INVALID_MSG, 6)], [2], 6, "the reason"),
        ([event(KafkaError._BAD_MSG, 0)], [], 2, "the reason"),
        ([message(2), event(KafkaError._BAD_MSG, 10)], [2], 10, None),
        (
            [message(2), event(KafkaError._BAD_MSG, 4), event(KafkaError._BAD_MSG, 8), event(EOF, 9), message(5)],
            [2], 4, "the reason",
        ),
    ],
)  # fmt: skip
def test_a_poll_ends_before_messages_that_came_damaged(chunk, offsets, position, damage):
    """A batch may begin before the position. What came behind it is left out, and damage behind the end is nobody's."""
    found = fetching(Consumer(chunk, [message(7)])).poll(2, 10)

    assert ([*found.batch.offsets], found.position, found.damage) == (offsets, position, damage)


@pytest.mark.parametrize(("offset", "is_told"), [(4, True), (10, False)])
def test_a_batch_that_cannot_be_unpacked_is_told_at_once(offset, is_told):
    """Its checksum is right, so that no other broker helps; it says which property does."""
    events = [message(2), event(KafkaError._BAD_COMPRESSION, offset)]
    found = fetching(Consumer(events, [message(7)])).poll(2, 10)

    assert ([*found.batch.offsets], found.position, found.damage) == ([2], offset, None)
    said = "cannot be unpacked (the reason). librdkafka refuses a batch of zstd that is more than 'properties.receive.message"
    assert (said in (found.fatal_error or "")) is is_told


def test_bounds_are_those_of_the_leader():
    """Without an answer they are an error in the client's words."""
    assert fetching(Consumer(watermarks=(3, 9))).bounds() == Bounds(3, 9, 9)
    refused = ck.KafkaException(KafkaError(KafkaError._TRANSPORT, "gone"))
    for watermarks, reason in ((refused, "gone"), (None, "no answer"), ((0, -1), "no offset")):
        with pytest.raises(BrokerError, match=reason):
            fetching(Consumer(watermarks=watermarks)).bounds()
