"""That a broker throttles a client: librdkafka's callback, which runs no code of Python, and who is told of it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast

import confluent_kafka as ck

from pyspark_upsert_kafka.kafka.native.library import EventQueue, Handles


class Told:
    """Remembers what is reported."""

    def __init__(self) -> None:
        self.times: list[tuple[int, int]] = []

    def on_error(self, error: ck.KafkaError, /) -> None:
        raise AssertionError(error)

    def on_throttled(self, broker: int, time_ms: int, /) -> None:
        self.times.append((broker, time_ms))


def test_what_the_callback_gets_is_told_with_the_next_poll() -> None:
    """Each time once, in order, with the broker's id."""
    handles, told = Handles(), Told()
    handles._clients.append(1)
    library = SimpleNamespace(
        rd_kafka_queue_get_main=lambda _: 2, rd_kafka_queue_poll=lambda *_: None
    )
    events = EventQueue(cast("Any", library), handles, told, logging.getLogger("x"))

    handles._on_throttled(11, 12, 3, 400, None)
    handles._on_throttled(11, 12, 4, 0, None)
    events.poll(0)
    events.poll(0)

    assert told.times == [(3, 400), (4, 0)]
