"""Brokers that have lately not answered in time: others are asked what any broker can answer.

A broker that hangs still accepts connections. kafka-python takes it for one that is up, and may ask it again and again.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Any, TypeVar

from kafka import errors as kafka_errors

from pyspark_upsert_kafka.core.clock import Clock

Node = TypeVar("Node", bound=Hashable)

Address = tuple[str, int]
"""Host and port: the bootstrap server and the broker that it turns out to be are one."""

_AVOIDED_S = 30.0
"""For so long another broker is preferred; one that leads partitions is tried meanwhile, and noted again."""


class SilentBrokers:
    """Which brokers have not answered in time.

    Args:
        clock: Tells the time.
    """

    def __init__(self, clock: Clock = time) -> None:
        self._clock = clock
        self._until: dict[Address, float] = {}
        self._lock = Lock()

    def note(self, address: Address) -> None:
        """Takes note of a broker that has not answered in time."""
        with self._lock:
            self._until[address] = self._clock.monotonic() + _AVOIDED_S

    def forget(self, address: Address) -> None:
        """Takes note of a broker that has answered."""
        if address in self._until:  # nearly never, and this is called for each answer
            with self._lock:
                self._until.pop(address, None)

    def watched(self, answer: Any, address: Address | None) -> Any:
        """A future answer of a broker, from which it is noted or forgotten; None = the library does not say who is asked."""
        if address is None:
            return answer

        def note(error: Exception) -> None:
            if isinstance(error, kafka_errors.RequestTimedOutError):
                self.note(address)

        return answer.add_callback(lambda _: self.forget(address)).add_errback(note)

    def preferred(self, addresses: Iterable[Address]) -> list[Address]:
        """Those that have answered, or have not been asked; all of them where there is no such one."""
        with self._lock:
            now = self._clock.monotonic()
            silent = {address for address, until in self._until.items() if now < until}
        every = list(addresses)
        return [each for each in every if each not in silent] or every


SILENT = SilentBrokers()
"""Those of this process, whichever of its clients has noticed it."""
