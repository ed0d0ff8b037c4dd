"""Whether a topic is still the one for which a range was planned: its id tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from pyspark_upsert_kafka.core.data_loss import is_other_topic
from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.rechecking import recheck_until_certain, whether_lost

_RECENT_S = 1.0
"""How new an answer must be for the comparison before the first message; the one after the last is always asked."""

_MANY = 1000

_confirmed: dict[tuple[str, str], tuple[str, float]] = {}
"""Servers and topic -> its id and when a broker said so: many ranges of a topic are read in one moment."""


class PlannedTopic:
    """The topic for which a range was planned.

    Ids are never used again: a topic that has its id after the last message had it all the time.

    Args:
        range_: The range; without an id neither the client nor the broker knows any.
        servers: The bootstrap servers.
        admin: Whom to ask, for a moment.
    """

    def __init__(
        self,
        range_: Range,
        servers: str,
        admin: Callable[[], AbstractContextManager[AdminRequests]],
    ) -> None:
        self._range, self._key, self._admin = range_, (servers, range_.topic), admin

    def loss_before(self) -> DataLossError | None:
        """Whether it is gone, or another, before the first message is read.

        Raises:
            BrokerError: No broker answers.
        """
        id_, at = _confirmed.get(self._key, ("", 0.0))
        if id_ == self._range.topic_id and time.monotonic() - at < _RECENT_S:
            return None
        return self.loss_after()

    def loss_after(self) -> DataLossError | None:
        """The same after the last message.

        Raises:
            BrokerError: No broker answers.
        """
        if not self._range.topic_id:
            return None

        def look() -> DataLossError | None:
            return self.loss_by_one_look(self._range.begin)

        loss = recheck_until_certain(look(), whether_lost, look)
        if loss is None:
            if len(_confirmed) >= _MANY:
                _confirmed.clear()
            _confirmed[self._key] = self._range.topic_id, time.monotonic()
        return loss

    def loss_by_one_look(self, wanted: int) -> DataLossError | None:
        """What a broker says now, which may be stale.

        Args:
            wanted: The offset to name.

        Raises:
            BrokerError: No broker answers.
        """
        range_ = self._range
        with self._admin() as admin:
            topic = admin.existing([range_.topic]).get(range_.topic)
        if topic is None or range_.partition >= topic.partitions:
            reason = "the topic was deleted while it was read"
        elif is_other_topic(range_.topic_id, topic.id):
            reason = "the topic was deleted and created again while it was read (its id is another)"
        else:
            return None
        return DataLossError(range_.topic, range_.partition, wanted, None, reason)
