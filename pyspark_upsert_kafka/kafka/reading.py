"""One pass over one range, whichever client reads: up to its end by position, and what if it is gone."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.planning import Bounds
from pyspark_upsert_kafka.kafka import patience
from pyspark_upsert_kafka.kafka.client import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

_LOOKS = 2
"""A topic that the broker does not know so often in a row is deleted."""


class RangeReading(ABC):
    """One pass over one range.

    Args:
        range_: What to read.
        servers: The bootstrap servers, for errors.
    """

    def __init__(self, range_: Range, servers: str) -> None:
        self._range, self._servers = range_, servers
        self._position = range_.begin
        self._loss: DataLossError | None = None
        self._progress = self._looked = time.monotonic()
        self._unknown = 0

    @abstractmethod
    def _next(self) -> RawBatch:
        """The next messages of the range, and `_moved` past them; none = nothing came for a while."""

    @abstractmethod
    def _go_to(self, position: int) -> None:
        """Goes on reading there."""

    @abstractmethod
    def _bounds(self) -> Bounds | None:
        """What the broker has now; None when it does not answer."""

    @abstractmethod
    def _is_unknown(self) -> bool:
        """Whether a broker says that there is no such partition."""

    @abstractmethod
    def _trouble(self) -> tuple[bool, str]:
        """Whether waiting is hopeless, and what the client says went wrong."""

    def batches(self, *, fail_on_data_loss: bool) -> Iterator[RawBatch]:
        """The messages of the range.

        Raises:
            DataLossError: Offsets are gone, and ``fail_on_data_loss``; else that is a warning.
            BrokerError: The broker refuses, or stays away.
        """
        self._go_to(self._range.begin)
        while self._position < self._range.end:
            batch = self._next()
            if len(batch):
                yield batch
                self._progress = time.monotonic()  # the time spent downstream is not ours
            elif self._loss is None:
                self._look_closer()
            if self._loss is not None:
                if fail_on_data_loss:
                    raise self._loss
                logger.warning("%s", self._loss)
                self._go_on_after(self._loss)

    def _moved(self, position: int) -> None:
        if position > self._position:
            self._position = position
            self._progress = time.monotonic()

    def _look_closer(self) -> None:
        """When nothing came for long: is it the broker's trouble, or does the log end too early?"""
        now = time.monotonic()
        if now - max(self._progress, self._looked) < patience.LOOK_S:
            return
        self._looked = now
        self._unknown = self._unknown + 1 if self._is_unknown() else 0
        bounds = self._bounds() if self._unknown == 0 else None
        hopeless, trouble = self._trouble()
        if self._unknown >= _LOOKS:
            self._lost(None, "the topic was deleted while it was read")
        elif bounds is not None and bounds.latest < self._range.end:
            self._ends_early(bounds)
        elif hopeless or now - self._progress > patience.MESSAGE_S:
            raise BrokerError(
                f"{self._where()}: nothing arrived for {now - self._progress:.0f} seconds.{trouble}"
            )

    def _out_of_range(self) -> None:
        """The broker says that it has no such offset."""
        bounds = self._bounds()
        if bounds is not None and bounds.earliest > self._position:
            self._lost(
                bounds.earliest, "retention or a deletion of records has taken the offsets away"
            )
        elif bounds is not None and bounds.latest < self._position:
            self._ends_early(bounds)
        else:
            self._go_to(self._position)  # ask again: the broker that said so may be gone

    def _ends_early(self, bounds: Bounds) -> None:
        self._lost(
            bounds.earliest,
            f"the partition ends at offset {bounds.latest}, before offset {self._range.end} that was "
            "planned; was the topic created again, or truncated?",
        )

    def _lost(self, earliest: int | None, reason: str) -> None:
        range_ = self._range
        self._loss = DataLossError(range_.topic, range_.partition, self._position, earliest, reason)

    def _go_on_after(self, loss: DataLossError) -> None:
        """At the earliest offset when that is ahead; else nothing of the range is left."""
        self._loss = None
        end = self._range.end
        ahead = loss.earliest is not None and loss.earliest > self._position
        self._moved(min(loss.earliest or end, end) if ahead else end)
        if self._position < end:
            self._go_to(self._position)

    def _where(self) -> str:
        range_ = self._range
        return (
            f"Topic {range_.topic!r}, partition {range_.partition}, offset {self._position} (reading "
            f"{range_.begin} to {range_.end}) at {self._servers!r}"
        )
