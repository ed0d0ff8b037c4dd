"""The time now, and pauses between attempts: they double, and are 20 % shorter or longer at random."""

from __future__ import annotations

import time

import pytest

from pyspark_upsert_kafka.core.clock import Backoff, SystemClock, now_ms


@pytest.mark.parametrize(
    ("failed", "number", "expected_s"),
    [
        (0, 0.5, 0.1),
        (0, 0.0, 0.08),
        (0, 1.0, 0.12),
        (1, 0.5, 0.2),
        (1, 0.25, 0.18),
        (3, 0.5, 0.8),
        (4, 0.5, 1.0),  # Java's retry.backoff.max.ms
        (4, 0.0, 0.8),
        (4, 1.0, 1.2),
        (100_000, 0.5, 1.0),  # an outage may last for hours
    ],
)
def test_a_pause_is_twice_the_one_before_give_or_take_a_fifth(failed, number, expected_s):
    """As in Kafka's clients, from 0.8 to 1.2 of what the number of attempts says, so that tasks do not ask in step."""
    pause_s = Backoff(0.1, 1.0, random=lambda: number).pause_s(failed)

    assert pause_s == pytest.approx(expected_s)


def test_the_time_now_is_in_milliseconds():
    """Of the clock that is given; the machine's without one."""

    class Clock(SystemClock):
        def time(self) -> float:
            return 1.5

    assert now_ms(Clock()) == 1_500


def test_the_clock_of_the_machine_is_that_of_python(monkeypatch):
    """It sleeps as the module `time` does."""
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    SystemClock().sleep(1.5)

    assert slept == [1.5]
