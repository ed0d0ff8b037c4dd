"""Fetches one range, whichever client is used: its position, lost data, and how long is waited.

What a client does for it is the small interface `Fetcher`, which each client implements.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DataLossError,
    RetriableBrokerError,
    UnknownTopicError,
)
from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.data_loss import RETENTION
from pyspark_upsert_kafka.kafka.failures import SECURITY_HINT, ClientErrors
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks, PlannedTopic
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.retrying import ReadWaits

logger = logging.getLogger("pyspark_upsert_kafka")


BATCH_BYTES = 16 * 1024 * 1024
"""The bytes of keys, values and headers at which a batch takes no more messages."""

_SAMPLE = 64
"""About the number of messages whose bytes are counted: to count those of all would cost time. Where messages are large, fewer come at once."""


@dataclass
class Fetched:
    """What one poll has brought; a client fills it.

    Args:
        batch: The messages; without any, none arrived for a moment.
        position: The next offset to fetch: after the messages and gaps.
        size_bytes: About how many bytes the messages' keys and values have, and their headers if any are taken out.
        is_out_of_range: Whether the broker says that it does not have the offset at the position.
        fatal_error: Why the partition cannot be read, in the client's words; None = polling again may help.
        damage: What is wrong with the messages at the position as they came, such as their checksum; None = nothing. They
            may come well after another seek.
    """

    batch: RawBatch
    position: int
    size_bytes: int = 0
    is_out_of_range: bool = False
    fatal_error: str | None = None
    damage: str | None = None

    @property
    def may_grow(self) -> bool:
        """Whether another poll could bring the next messages."""
        return not self.is_out_of_range and self.damage is None and self.fatal_error is None


class Fetcher(Protocol):
    """Fetches one partition from where it is told. It reports what the broker says, and concludes nothing."""

    @property
    def errors(self) -> ClientErrors:
        """The errors that the client has reported since the fetcher was made."""

    def seek(self, offset: int) -> None:
        """Lets the next poll begin at this offset."""

    def poll(self, position: int, end: int) -> Fetched:
        """The next messages, waiting a moment for them; errors that pass are retried.

        Args:
            position: Where the last seek or poll has come to.
            end: Messages at and after this offset are left out.
        """

    def bounds(self) -> Bounds:
        """The bounds of the partition as a broker knows them now.

        Raises:
            BrokerError: No broker answers.
        """

    def close(self) -> None:
        """Ends fetching, so that the client can be used for another range."""


def header_bytes(headers: Sequence[Headers]) -> int:
    """About how many bytes the names and values of messages' headers have.

    The step from one message that is counted to the next is odd: where messages alternate, an even one would meet one
    of two kinds only.

    >>> header_bytes([[("a", b"bc"), ("d", None)], []])
    4
    """
    sample = headers[:: len(headers) // _SAMPLE | 1]
    parts = chain.from_iterable(chain.from_iterable(sample))
    return sum(map(len, filter(None, parts))) * len(headers) // (len(sample) or 1)


_LONG_S = 1.0
"""A broker that is up says sooner than this (seconds) what a topic's id is."""

_MOST_FETCHES = 3
"""So often messages are fetched that come damaged: damage that comes on the way is not there the next time."""


class RangeFetch:
    """Fetches one range, up to its end by position, since gaps are normal.

    The topic's id is compared before the first message, and after the last if the range says so.

    Args:
        fetcher: Fetches the range's partition.
        topic: The topic for which the range was planned, and the range.
        fail_on_data_loss: Whether lost offsets are an error; else they are a warning.
        waits: How long is waited.
        checks: When it is checked whether data is lost.
    """

    renewed: Callable[[], Fetcher] | None = None
    """Gives a fetcher with a new client; None = there is no other. A client may wait for a broker that has hung, and for a
    fetch of an earlier range that is never answered, until the request timeout and longer."""

    def __init__(
        self,
        fetcher: Fetcher,
        topic: PlannedTopic,
        *,
        fail_on_data_loss: bool,
        waits: ReadWaits,
        checks: LossChecks,
    ) -> None:
        self._fetcher, self._topic, self._range = fetcher, topic, topic.range
        self._fail_on_data_loss, self._waits = fail_on_data_loss, waits
        self._checks, self._now = checks, checks.clock.monotonic
        self._position, self._log_end = self._range.begin, self._range.end
        self._arrived_at = self._progress_at = self._checked_at = self._now()
        self._lookup_error: BrokerError | None = None
        self._damaged_at, self._damaged = -1, 0
        self._renewed_after_s = checks.stall_s
        self.size_bytes = 0

    def batches(self) -> Iterator[RawBatch]:
        """The messages of the range.

        Raises:
            DataLossError: Offsets are gone, and ``fail_on_data_loss``; else that is a warning.
            BrokerError: The broker refuses, or stays away.
        """
        if self._ends_with(self._topic.loss_before()):
            return
        self._arrived_at = self._progress_at = self._checked_at = self._now()
        self._fetcher.seek(self._position)
        while self._position < self._range.end:
            fetched = self._poll()
            if self._position >= self._range.end:
                self._fetcher.close()  # while these messages are processed, nothing behind them is fetched
            if len(fetched.batch):
                yield fetched.batch
                # The time spent downstream is not ours.
                self._arrived_at = self._progress_at = self._now()
            if fetched.fatal_error is not None:
                raise BrokerError(f"{self._place()} cannot be read: {fetched.fatal_error}.")
            if fetched.damage is not None:
                self._fetch_again(fetched.damage)
            if self._ends_with(self._loss_after(fetched)):
                return
        if self._range.is_checked_after:
            self._ends_with(self._topic.loss_after())

    def close(self) -> None:
        """Ends fetching, so that the client can be used for another range."""
        self._fetcher.close()

    def _poll(self) -> Fetched:
        fetched = self._fetcher.poll(self._position, self._range.end)
        self.size_bytes += fetched.size_bytes
        self._move_to(fetched.position)
        return fetched

    def _fetch_again(self, damage: str) -> None:
        """Fetches messages again that came damaged.

        Raises:
            BrokerError: They come so each time.
        """
        self._damaged = self._damaged + 1 if self._damaged_at == self._position else 1
        self._damaged_at = self._position
        if self._damaged == _MOST_FETCHES:
            raise BrokerError(
                f"{self._place()} cannot be read: the broker's copy of the messages from this offset on is damaged, as it "
                f"came so {_MOST_FETCHES} times ({damage.removesuffix('.')}). What helps: let a broker lead the partition "
                "whose copy is good."
            )
        logger.warning(
            "%s: messages came damaged, and are fetched again: %s", self._place(), damage
        )
        self._fetcher.seek(self._position)

    def _move_to(self, position: int) -> None:
        if position > self._position:
            self._position = position
            self._arrived_at = self._progress_at = self._now()

    def _loss_after(self, fetched: Fetched) -> DataLossError | None:
        loss = self._loss_out_of_range() if fetched.is_out_of_range else None
        return self._loss_when_stalled() if loss is None else loss

    def _ends_with(self, loss: DataLossError | None) -> bool:
        """Raises a loss, or warns of it and skips what is lost; true = nothing remains of the range."""
        if loss is None:
            return False
        if self._fail_on_data_loss:
            raise loss
        logger.warning("%s", loss.warning())
        if loss.earliest is None:
            return True
        self._skip_to(loss.earliest)
        return False

    def _skip_to(self, earliest: int) -> None:
        """Continues at the earliest offset if that is ahead, and up to the end of the log if that is before the range's."""
        self._move_to(earliest)
        self._range = replace(self._range, end=min(self._range.end, self._log_end))
        if self._position < self._range.end:
            self._fetcher.seek(self._position)

    def _loss_out_of_range(self) -> DataLossError | None:
        """The loss when the broker says that it does not have the position; it may be stale."""
        bounds = self._checks.until_certain(self._bounds(), self._missing_offsets, self._bounds)
        if bounds is not None and bounds.earliest > self._position:
            return self._loss(bounds.earliest, RETENTION)
        if bounds is not None and bounds.latest < self._position:
            return self._truncation(bounds)
        self._fetcher.seek(self._position)
        return None

    def _missing_offsets(self, bounds: Bounds | None) -> list[int]:
        return [] if bounds is None or bounds.latest >= self._position else [self._position]

    def _loss_when_stalled(self) -> DataLossError | None:
        """The loss that explains why nothing has arrived for long.

        Raises:
            BrokerError: There is none, and waiting longer will not help.
        """
        now = self._now()
        if now - max(self._progress_at, self._checked_at) < self._checks.stall_s:
            return None
        loss = self._checks.confirmed_loss(self._check_loss)
        self._checked_at = self._now()
        if loss is not None and loss.earliest is None:  # the topic's, and not of some offsets
            self._topic.note_loss()
        if self._was_away(self._checked_at - now):
            self._progress_at = self._checked_at
        now = self._checked_at
        waited_s, errors = now - self._progress_at, self._fetcher.errors
        if loss is None and (lost := errors.lost_login) is not None:
            raise type(lost)(f"{self._place()} cannot be read. {lost}")
        if loss is None and errors.fatal_error is not None:
            raise BrokerError(
                f"{self._place()} cannot be read: {errors.fatal_error}.{SECURITY_HINT}"
            )
        if loss is None and waited_s > self._waits.message_s:
            text = (
                f"{self._place()}: nothing arrived for {waited_s:.0f} seconds.{errors.describe()}"
            )
            if self._lookup_error is None:
                raise RetriableBrokerError(text)
            passes = isinstance(self._lookup_error, (RetriableBrokerError, UnknownTopicError))
            raised = RetriableBrokerError if passes else BrokerError
            raise raised(f"{text} {self._lookup_error}")
        if loss is None and not self._lookup_error:
            self._renew(waited_s)
        return loss

    def _renew(self, waited_s: float) -> None:
        """Goes on with a new client, when nothing has come for long though brokers answer."""
        if self.renewed is None or waited_s < self._renewed_after_s:
            return
        self._renewed_after_s = 2 * waited_s  # it may also be the network that is slow
        try:
            self._fetcher = self.renewed()
        except BrokerError as error:
            logger.info("%s: no new client: %s", self._place(), error)
        else:
            self._fetcher.seek(self._position)

    def _was_away(self, asked_s: float) -> bool:
        """Whether brokers have answered after an outage: then messages are waited for anew.

        Args:
            asked_s: How long the answer took.
        """
        if self._lookup_error or asked_s < _LONG_S:
            return False
        return self._now() - self._arrived_at < 2 * self._waits.outage_s

    def _check_loss(self) -> DataLossError | None:
        """What one check shows to be lost; no answer shows nothing."""
        self._lookup_error = None
        try:
            loss = self._topic.check(self._position)
        except BrokerError as error:
            if error.is_final:
                raise BrokerError(f"{self._place()} cannot be read. {error}") from error
            logger.info("The topic of %s is not known: %s", self._place(), error)
            self._lookup_error = error
            return None
        if loss is not None:
            return loss
        bounds = self._bounds()
        if bounds is None or bounds.latest >= self._range.end:
            return None
        return self._truncation(bounds)

    def _bounds(self) -> Bounds | None:
        """What the broker has now; None = it does not answer."""
        try:
            return self._fetcher.bounds()
        except BrokerError as error:
            logger.info("The bounds of %s are not known: %s", self._place(), error)
            return None

    def _truncation(self, bounds: Bounds) -> DataLossError:
        self._log_end = bounds.latest
        reason = (
            f"the partition ends at offset {bounds.latest}, before offset {self._range.end} that was "
            "planned; was the topic created again, or truncated?"
        )
        return self._loss(bounds.earliest, reason)

    def _loss(self, earliest: int, reason: str) -> DataLossError:
        range_ = self._range
        return DataLossError(range_.topic, range_.partition, self._position, earliest, reason)

    def _place(self) -> str:
        range_ = self._range
        return (
            f"Topic {range_.topic!r}, partition {range_.partition}, offset {self._position} (reading "
            f"{range_.begin} to {range_.end}) at {self._topic.servers!r}"
        )
