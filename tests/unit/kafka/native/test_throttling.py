"""Brokers that hold answers back, since a quota is used up."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.kafka.native.library import Throttling


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        self.now += seconds


def line(broker: int, ms: int) -> str:
    """As librdkafka's callback is printed."""
    return f"140021 140022 {broker} {ms} None\n"


def test_a_quota_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The longest time of those that came together, and nothing of the next ones; a time of 0 is the end of it."""
    clock = Clock()
    throttling = Throttling(clock)

    throttling.tell("reader", line(1, 0))
    throttling.tell("reader", line(1, 20) + line(2, 3200) + line(1, 0))
    clock.sleep(59.9)
    throttling.tell("writer", line(1, 7))
    assert [each.getMessage().partition(". ")[0] for each in caplog.records] == [
        "Broker 2 throttles the client reader, as a quota is used up: it holds answers back for up to 3,200 ms"
    ]

    clock.sleep(0.1)
    throttling.tell("writer", line(1, 7))
    assert len(caplog.records) == 2
