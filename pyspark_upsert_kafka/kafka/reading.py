"""One pass over one range, whichever client reads: up to its end by position, and what if it is gone."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.data_loss import RETENTION
from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.kafka.planned_topic import PlannedTopic
from pyspark_upsert_kafka.kafka.rechecking import recheck_until_certain, whether_lost

logger = logging.getLogger("pyspark_upsert_kafka")


class RangeReading(ABC):
    """One pass over one range.

    The topic's id is compared before the first message and after the last.

    Args:
        range_: What to read.
        servers: The bootstrap servers, for errors.
        admin: Whom to ask for the topic, for a moment.
    """

    def __init__(
        self,
        range_: Range,
        servers: str,
        admin: Callable[[], AbstractContextManager[AdminRequests]],
    ) -> None:
        self._range, self._servers = range_, servers
        self._topic = PlannedTopic(range_, servers, admin)
        self._position = range_.begin
        self._loss: DataLossError | None = None
        self._progress = self._looked = time.monotonic()
        self._no_answer = ""

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
    def _client_errors(self) -> tuple[bool, str]:
        """Whether an error is fatal, and what the client says went wrong."""

    def batches(self, *, fail_on_data_loss: bool, timeout_s: float) -> Iterator[RawBatch]:
        """The messages of the range.

        Args:
            fail_on_data_loss: Whether lost offsets are an error; else they are a warning.
            timeout_s: How long the next message is waited for.

        Raises:
            DataLossError: Offsets are gone, and ``fail_on_data_loss``; else that is a warning.
            BrokerError: The broker refuses, or stays away.
        """
        if self._is_lost(self._topic.loss_before(), fail_on_data_loss=fail_on_data_loss):
            return
        self._go_to(self._range.begin)
        while self._position < self._range.end:
            batch = self._next()
            if len(batch):
                yield batch
                self._progress = time.monotonic()  # the time spent downstream is not ours
            elif self._loss is None:
                self._look_closer(timeout_s)
            if self._is_lost(self._loss, fail_on_data_loss=fail_on_data_loss):
                return
        self._is_lost(self._topic.loss_after(), fail_on_data_loss=fail_on_data_loss)

    def _is_lost(self, loss: DataLossError | None, *, fail_on_data_loss: bool) -> bool:
        """Tells of a loss, and whether nothing of the range is left; else reading goes on behind it."""
        if loss is None:
            return False
        if fail_on_data_loss:
            raise loss
        logger.warning("%s", loss)
        self._loss = None
        if loss.earliest is None:
            return True
        self._go_on_after(loss.earliest)
        return False

    def _moved(self, position: int) -> None:
        if position > self._position:
            self._position = position
            self._progress = time.monotonic()

    def _look_closer(self, timeout_s: float) -> None:
        """When nothing came for long: is it the broker's trouble, or is there no more to come?"""
        now = time.monotonic()
        if now - max(self._progress, self._looked) < timeouts.STALL_CHECK_S:
            return
        self._loss = recheck_until_certain(self._loss_now(), whether_lost, self._loss_now)
        self._looked = now = time.monotonic()
        is_fatal, seen = self._client_errors()
        if self._loss is None and (is_fatal or now - self._progress > timeout_s):
            raise BrokerError(
                f"{self._where()}: nothing arrived for {now - self._progress:.0f} seconds.{seen}"
                f"{self._no_answer}"
            )

    def _out_of_range(self) -> None:
        """The broker says that it has no such offset."""
        bounds = recheck_until_certain(self._bounds(), self._short_log, self._bounds)
        if bounds is not None and bounds.earliest > self._position:
            self._loss = self._data_loss(self._position, bounds.earliest, RETENTION)
        elif bounds is not None and self._short_log(bounds):
            self._loss = self._ends_early(bounds)
        else:
            self._go_to(self._position)  # ask again: the broker that said so may be gone

    def _short_log(self, bounds: Bounds | None) -> list[str]:
        return ["end"] if bounds is not None and bounds.latest < self._position else []

    def _loss_now(self) -> DataLossError | None:
        """What one look shows to be lost; no answer shows nothing."""
        try:
            loss = self._topic.loss_by_one_look(self._position)
        except BrokerError as error:
            logger.info("The topic of %s is not known: %s", self._where(), error)
            self._no_answer = f" {error}"
            return None
        self._no_answer = ""
        if loss is not None:
            return loss
        bounds = self._bounds()
        is_short = bounds is not None and bounds.latest < self._range.end
        return self._ends_early(bounds) if bounds is not None and is_short else None

    def _ends_early(self, bounds: Bounds) -> DataLossError:
        reason = (
            f"the partition ends at offset {bounds.latest}, before offset {self._range.end} that was "
            "planned; was the topic created again, or truncated?"
        )
        return self._data_loss(self._position, bounds.earliest, reason)

    def _data_loss(self, wanted: int, earliest: int | None, reason: str) -> DataLossError:
        return DataLossError(self._range.topic, self._range.partition, wanted, earliest, reason)

    def _go_on_after(self, earliest: int) -> None:
        """At the earliest offset when that is ahead; else nothing of the range is left."""
        end = self._range.end
        self._moved(min(earliest, end) if earliest > self._position else end)
        if self._position < end:
            self._go_to(self._position)

    def _where(self) -> str:
        range_ = self._range
        return (
            f"Topic {range_.topic!r}, partition {range_.partition}, offset {self._position} (reading "
            f"{range_.begin} to {range_.end}) at {self._servers!r}"
        )
