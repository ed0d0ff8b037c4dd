"""Fetching with kafka-python: how the records and errors of a consumer become what a poll has brought."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.kafka_python import reader
from pyspark_upsert_kafka.kafka.kafka_python.reader import KafkaPythonFetcher
from pyspark_upsert_kafka.kafka.loss_checks import LOSS_CHECKS, PlannedTopic
from pyspark_upsert_kafka.kafka.range_fetch import RangeFetch
from pyspark_upsert_kafka.kafka.retrying import ReadWaits

RANGE = Range("t", 0, 0, 10)


class Consumer:
    """A consumer that passes two offsets with each poll.

    Args:
        gaps: Offsets without a message.
        failures: What a poll raises after it has passed its offsets, by the number of the poll.
    """

    def __init__(
        self, gaps: frozenset[int] = frozenset(), failures: Mapping[int, Exception] | None = None
    ) -> None:
        self.gaps, self.failures = gaps, failures or {}
        self.at = self.polls = 0
        self.polled_at: list[int] = []

    def assign(self, _: object) -> None:
        """Only one partition is ever read."""

    def unsubscribe(self) -> None:
        """It may be used for another range."""

    def seek(self, _: object, position: int) -> None:
        """Goes on there."""
        self.at = position

    def position(self, _: object, **__: object) -> int:
        """Where it is."""
        return self.at

    def poll(self, **_: object) -> dict[Any, list[Any]]:
        """The messages at the next two offsets."""
        self.polls += 1
        self.polled_at.append(self.at)
        found = [
            SimpleNamespace(offset=offset, key=b"k", value=b"abc", headers=[("h", b"1234567")])
            for offset in range(self.at, self.at + 2)
            if offset not in self.gaps
        ]
        self.at += 2
        if self.polls in self.failures:
            raise self.failures[self.polls]
        return {reader.ClientPartition("t", 0): found} if found else {}


@pytest.fixture(autouse=True)
def errors(monkeypatch: pytest.MonkeyPatch) -> ClientErrors:
    """The errors that the consumer reports."""
    found = ClientErrors()
    monkeypatch.setattr(reader, "errors_of", lambda _: found)
    return found


def fetching(consumer: Consumer, details: frozenset[Detail] = frozenset()) -> KafkaPythonFetcher:
    """A fetcher with this consumer."""
    return KafkaPythonFetcher(
        consumer, lambda: nullcontext(cast("Any", None)), RANGE, details=details
    )


def test_an_error_after_messages_were_passed_loses_none():
    """What was not handed out is fetched again."""
    consumer = Consumer(failures={2: kafka_errors.NodeNotReadyError()})

    batches = RangeFetch(
        fetching(consumer),
        PlannedTopic(RANGE, "here", lambda: None, LOSS_CHECKS),
        fail_on_data_loss=True,
        waits=ReadWaits(60.0),
        checks=LOSS_CHECKS,
    ).batches()

    assert [offset for batch in batches for offset in batch.offsets] == list(range(10))


@pytest.mark.parametrize(
    ("gaps", "end", "offsets"),
    [(set(), 10, [0, 1]), ({0}, 10, [1]), ({0, 1}, 10, []), (set(), 1, [0])],
)
def test_a_poll_brings_the_messages_before_the_end(gaps, end, offsets):
    """And the position of the consumer, which has passed gaps too."""
    found = fetching(Consumer(frozenset(gaps))).poll(0, end)

    assert (found.batch.offsets, found.position) == (offsets, 2)
    assert found.size_bytes == 4 * len(offsets)
    assert (found.is_out_of_range, found.fatal_error) == (False, None)


@pytest.mark.parametrize(
    ("details", "limit", "batches"),
    [
        (frozenset(), 4, [[0], [1], [2], [3]]),
        (frozenset(), 5, [[0, 1], [2, 3]]),
        (frozenset({Detail.HEADERS}), 5, [[0], [1], [2], [3]]),
        (frozenset({Detail.HEADERS}), 12, [[0], [1], [2], [3]]),
        (frozenset({Detail.HEADERS}), 13, [[0, 1], [2, 3]]),
    ],
)
def test_a_batch_ends_at_a_number_of_bytes(monkeypatch, details, limit, batches):
    """Those of keys, values and headers that are taken out; what is left of a fetch is the next batch."""
    monkeypatch.setattr(reader, "BATCH_BYTES", limit)
    fetching_ = fetching(Consumer(), details)
    found, position = [], 0

    while position < 4:
        fetched = fetching_.poll(position, 10)
        found.append(fetched.batch.offsets)
        position = fetched.position

    assert found == batches


def test_what_is_left_of_a_fetch_is_dropped_by_a_seek(monkeypatch):
    """Reading goes on at the new offset."""
    monkeypatch.setattr(reader, "BATCH_BYTES", 1)
    fetching_ = fetching(Consumer())
    fetching_.poll(0, 10)

    fetching_.seek(6)

    assert fetching_.poll(6, 10).batch.offsets == [6]


@pytest.mark.parametrize(
    ("failure", "is_out_of_range", "fatal_error", "seen"),
    [
        (kafka_errors.OffsetOutOfRangeError(), True, None, ""),
        (kafka_errors.TopicAuthorizationFailedError(), False, "TopicAuthorizationFailed", ""),
        (kafka_errors.NodeNotReadyError(), False, None, "NodeNotReadyError"),
        (kafka_errors.UnknownTopicOrPartitionError(), False, None, "UnknownTopicOrPartition"),
        (ConnectionResetError("gone"), False, None, "gone"),
    ],
)
def test_an_error_is_what_a_poll_has_brought(failure, is_out_of_range, fatal_error, seen, errors):
    """Out of range, fatal, or one that passes: then the consumer is sent back, and the error is noted."""
    consumer = Consumer(failures={1: failure})

    found = fetching(consumer).poll(0, 10)

    assert (found.batch.offsets, found.position) == ([], 0)
    assert found.is_out_of_range is is_out_of_range
    assert (found.fatal_error is None) is (fatal_error is None)
    assert (fatal_error or "") in (found.fatal_error or "")
    assert seen in errors.describe()
    assert bool(errors.describe()) is bool(seen)
    assert (consumer.at == 0) is not is_out_of_range


def test_damage_is_what_a_poll_has_brought():
    """It may have come on the way. The consumer is polled elsewhere first, or kafka-python 3 looks into that fetch for ever."""
    consumer = Consumer(failures={1: kafka_errors.CorruptRecordException("the checksum is wrong")})

    found = fetching(consumer).poll(0, 10)

    assert (found.batch.offsets, found.position, found.fatal_error) == ([], 0, None)
    assert "the checksum is wrong" in str(found.damage)
    assert (consumer.polled_at, consumer.at) == ([0, 1], 0)
