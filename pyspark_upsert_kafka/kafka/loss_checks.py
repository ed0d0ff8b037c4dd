"""When data counts as lost: one answer of a broker proves nothing, and a topic may be another than the one that was planned."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pyspark_upsert_kafka.core.clock import Clock
from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.data_loss import is_certain, is_other_topic, missing_since
from pyspark_upsert_kafka.core.positions.offsets import Range

T = TypeVar("T")
L = TypeVar("L")


@dataclass(frozen=True)
class LossChecks:
    """When it is checked whether data is lost, and how often before that is certain.

    Args:
        clock: Tells the time, and waits.
        stall_s: After so long without a message it is checked whether there are any left to read, in seconds.
        certain_after_s: What all checks over so many seconds have not found is lost.
        interval_s: The pause between two checks, in seconds.
    """

    clock: Clock
    stall_s: float = 5.0
    certain_after_s: float = 10.0
    interval_s: float = 1.0

    def until_certain(
        self, found: T, missing: Callable[[T], Iterable[Hashable]], check: Callable[[], T]
    ) -> T:
        """The result of the first check that misses nothing, or only what every check has missed for long.

        Args:
            found: The result of a first check.
            missing: What is missing from a result.
            check: Checks again.
        """
        since: dict[Hashable, float] = {}
        while True:
            now = self.clock.monotonic()
            since = missing_since(since, missing(found), now)
            if is_certain(since, now, self.certain_after_s):
                return found
            self.clock.sleep(self.interval_s)
            found = check()

    def confirmed_loss(self, check: Callable[[], L | None]) -> L | None:
        """The loss that every check has found for long enough; None = one check has found no loss."""
        return self.until_certain(check(), lambda loss: [] if loss is None else ["loss"], check)


LOSS_CHECKS = LossChecks(time)
"""Those of whoever reads."""


_RECENT_S = 1.0
"""How old an answer may be that is used before the first message; after the last one a broker is always asked."""

_MANY = 1000

_NEVER = float("-inf")

_confirmed: dict[tuple[str, str], tuple[str, float]] = {}
"""The id of a topic and when a broker told it, by servers and topic: many ranges of a topic are read at the same time."""

_lost: dict[tuple[str, str, str], float] = {}
"""When a topic was last found to be certainly lost, by servers, topic and id: for its other partitions, one after another, one
more lookup goes on with those of the ten seconds before."""


class PlannedTopic:
    """The topic for which a range was planned.

    No id is used twice: a topic that has the same id after the last message was the same one all the time.

    Args:
        range_: The range; without an id neither the client nor the broker knows any.
        servers: The bootstrap servers.
        lookup: Gives the topic as a broker knows it now; None = it does not exist.
        checks: How often it is looked up before a loss is certain.
    """

    def __init__(
        self,
        range_: Range,
        servers: str,
        lookup: Callable[[], TopicInfo | None],
        checks: LossChecks,
    ) -> None:
        self.range, self.servers, self._lookup = range_, servers, lookup
        self._checks, self._now = checks, checks.clock.monotonic
        self._key = servers, range_.topic

    def loss_before(self) -> DataLossError | None:
        """The loss when the topic is gone, or is another, before the first message is fetched.

        Raises:
            BrokerError: No broker answers.
        """
        if self._now() - _lost.pop(self._as_lost, _NEVER) < _RECENT_S:
            return self._noted(self.check(self.range.begin))
        id_, at = _confirmed.get(self._key, ("", 0.0))
        if id_ == self.range.topic_id and self._now() - at < _RECENT_S:
            return None
        return self.loss_after()

    def loss_after(self) -> DataLossError | None:
        """The loss when the topic is gone, or is another, after the last message; brokers are always asked.

        Raises:
            BrokerError: No broker answers.
        """
        if not self.range.topic_id:
            return None
        return self._noted(self._checks.confirmed_loss(lambda: self.check(self.range.begin)))

    def note_loss(self) -> None:
        """Takes note that the topic is certainly gone, or is another."""
        if len(_lost) >= _MANY:
            _lost.clear()
        _lost[self._as_lost] = self._now()

    def _noted(self, loss: DataLossError | None) -> DataLossError | None:
        if loss is not None:
            self.note_loss()
            return loss
        if len(_confirmed) >= _MANY:
            _confirmed.clear()
        _confirmed[self._key] = self.range.topic_id, self._now()
        return None

    @property
    def _as_lost(self) -> tuple[str, str, str]:
        return (*self._key, self.range.topic_id)

    def check(self, wanted: int) -> DataLossError | None:
        """The loss that one lookup shows; the broker that answers may be stale.

        Args:
            wanted: The offset to name.

        Raises:
            BrokerError: No broker answers.
        """
        range_ = self.range
        topic = self._lookup()
        if topic is None or range_.partition >= topic.partitions:
            reason = "the topic was deleted while it was read"
        elif is_other_topic(range_.topic_id, topic.id):
            reason = "the topic was deleted and created again while it was read (its id is another)"
        else:
            return None
        return DataLossError(range_.topic, range_.partition, wanted, None, reason)
