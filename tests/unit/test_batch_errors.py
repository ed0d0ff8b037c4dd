"""Messages that a broker refuses together: which of them is told."""

from __future__ import annotations

from dataclasses import dataclass

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka.librdkafka.sender import _Failures

INVALID_TIMESTAMP, TIMED_OUT = 32, -192


@dataclass(frozen=True)
class Report:
    """A message as librdkafka reports it."""

    name: bytes
    place: int = 0

    def topic(self) -> str:
        """The topic."""
        return "t"

    def partition(self) -> int:
        """The partition."""
        return self.place

    def key(self) -> bytes:
        """The key."""
        return self.name


def failed(*reports: tuple[int, bytes, int]) -> str:
    """What is told of messages with these error codes, keys and partitions."""
    failures = _Failures()
    for code, key, partition in reports:
        failures.report(ck.KafkaError(code), Report(key, partition))
    return str(failures._described())


def test_a_batch_refused_for_one_message_is_told_as_a_batch() -> None:
    """Those of the same partition with the same error are counted, others are not."""
    told = failed(
        *[(INVALID_TIMESTAMP, b"k%d" % n, n % 2) for n in range(10)], (TIMED_OUT, b"x", 0)
    )
    assert "key k0 was not delivered" in told
    assert "at least one of the 5 messages of the batch that begins with this key" in told
    assert "(11 messages of this task failed" in told


def test_a_message_that_fails_on_its_own_is_the_one_at_fault() -> None:
    """One message alone in its batch, and messages that time out, need no such words."""
    assert "at least one" not in failed((INVALID_TIMESTAMP, b"k", 0))
    assert "at least one" not in failed(*[(TIMED_OUT, b"k%d" % n, 0) for n in range(3)])
