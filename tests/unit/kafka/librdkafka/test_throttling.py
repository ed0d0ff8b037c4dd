"""Brokers that hold answers back, since a quota is used up."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.librdkafka.errors import Throttling


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        self.now += seconds


def test_a_quota_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """And nothing of the next ones; a time of 0 is the end of it."""
    clock = Clock()
    throttling = Throttling(clock)

    throttling.tell("reader", 1, 0)
    throttling.tell("reader", 2, 3200)
    clock.sleep(59.9)
    throttling.tell("writer", 1, 7)
    assert [each.getMessage().partition(". ")[0] for each in caplog.records] == [
        "Broker 2 throttles the client 'reader', as a quota is used up: it holds answers back for 3,200 ms"
    ]

    clock.sleep(0.2)
    throttling.tell("writer", 1, 7)
    assert len(caplog.records) == 2
