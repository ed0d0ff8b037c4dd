"""What kafka-python-ng unpacks of a fetch, without transaction markers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import kafka
import pytest
from kafka.consumer.fetcher import CompletedFetch, Fetcher
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from pyspark_upsert_kafka.kafka.kafka_python.reader import (
    lenient,
    with_null_records,
    without_markers,
)

pytestmark = pytest.mark.skipif(
    kafka.__version__.startswith("3."), reason="kafka-python 3 hands out no markers"
)

TP = kafka.TopicPartition("t", 0)


class Record(NamedTuple):
    """A message as kafka-python-ng takes it out of a batch."""

    offset: int
    key: bytes = b"k"
    value: bytes = b"v"
    headers: tuple[Any, ...] = ()
    timestamp: int = 0
    timestamp_type: int = 0
    checksum: None = None


class Batch(list):
    """Records as a batch, be it a marker."""

    is_control_batch = False

    def __init__(
        self, base_offset, last_offset_delta, offsets, *, is_marker=False, is_damaged=False
    ):
        super().__init__(map(Record, offsets))
        self.base_offset, self.last_offset_delta = base_offset, last_offset_delta
        self.is_control_batch, self.is_damaged = is_marker, is_damaged

    def validate_crc(self):
        """Whether it is as it was sent."""
        return not self.is_damaged


def unpacked(*batches, checks=True):
    """Offsets of the messages, and the last offset that the consumer keeps."""
    state = SimpleNamespace(last_offset_from_message_batch=None)
    subscription = SimpleNamespace(assignment={TP: state})
    fetcher = Fetcher.__new__(Fetcher)
    fetcher.config = {"key_deserializer": None, "value_deserializer": None}
    fetcher._subscriptions = subscription
    consumer = SimpleNamespace(
        _fetcher=fetcher, _subscription=subscription, config={"check_crcs": checks}
    )
    without_markers(consumer)
    left = iter(batches)
    records = SimpleNamespace(next_batch=lambda: next(left, None))
    found = [message.offset for message in fetcher._unpack_message_set(TP, records)]
    return found, state.last_offset_from_message_batch


def test_a_marker_is_no_message_and_is_passed():
    """Between messages, and at the end."""
    batches = [Batch(0, 1, [0, 1]), Batch(2, 0, [2], is_marker=True), Batch(3, 0, [3])]

    assert unpacked(*batches) == ([0, 1, 3], 3)
    assert unpacked(*batches[:2]) == ([0, 1], 2)


def test_a_batch_that_compaction_emptied_is_passed_even_at_offset_0():
    """The consumer asks whether the last offset is true, and goes on from there."""
    found, last = unpacked(Batch(0, 0, []))

    assert (found, last) == ([], 0)
    assert last


def test_a_damaged_batch_is_no_messages():
    """Those before it are handed out: the next fetch begins with it, and has nothing that could be."""
    good, bad = Batch(0, 1, [0, 1]), Batch(2, 0, [2], is_damaged=True)

    assert unpacked(good, bad, Batch(3, 0, [3])) == ([0, 1], 1)
    with pytest.raises(kafka.errors.CorruptRecordException):
        unpacked(bad)
    assert unpacked(good, bad, checks=False) == ([0, 1, 2], 2)


def test_null_is_no_records():
    """A broker may answer so, with an error and without."""
    seen = []
    fetcher = SimpleNamespace(_parse_fetched_data=seen.append)
    with_null_records(SimpleNamespace(_fetcher=fetcher))
    for records in (None, b"xy"):
        data = 0, 7, records
        fetcher._parse_fetched_data(CompletedFetch(TP, 7, 4, data, metric_aggregator=None))

    assert [completed.partition_data for completed in seen] == [(0, 7, b""), (0, 7, b"xy")]


@pytest.mark.parametrize("tells_size", [False, True])
def test_a_batch_of_zstd_is_unpacked_whole(tells_size):
    """Producers of Java and librdkafka do not say how much it is; kafka-python-ng gave up at 1 MB."""
    zstandard = pytest.importorskip("zstandard")
    made = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 4_000_000)
    made.append(0, 0, None, b"x" * 3_000_000, [])
    plain = bytes(made.build())
    packer = zstandard.ZstdCompressor(write_content_size=tells_size)
    packed = bytearray(plain[:61] + packer.compress(plain[61:]))
    packed[22] |= DefaultRecordBatch.CODEC_ZSTD

    (record,) = lenient(DefaultRecordBatch(packed))

    assert record.value == b"x" * 3_000_000
