"""Messages that readers of committed messages do not get yet, because a transaction before them is still open."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pyspark_upsert_kafka.connector.planning.message_time import first_time_ms
from pyspark_upsert_kafka.core.clock import now_ms, shown_time
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition

LONG_MS = 10_000
"""A transaction that is open for so long is worth a warning; younger ones are normal where others write exactly once."""

_STREAM_WAITS_S = 60.0
"""How long a stream stands still before an open transaction until it warns."""

_NAMED = 3
"""Partitions whose first hidden message is looked at: each costs a request."""

logger = logging.getLogger("pyspark_upsert_kafka")


@dataclass(frozen=True)
class Hidden:
    """What an open transaction hides in a partition.

    Args:
        place: The partition.
        offset: The first offset of the oldest open transaction, where reading ends.
        count: How many offsets there are from there on.
        since_ms: The timestamp of the message at that offset, in ms since the epoch; None = not known.
    """

    place: TopicPartition
    offset: int
    count: int
    since_ms: int | None = None

    def __str__(self) -> str:
        since = "" if self.since_ms is None else f" since {shown_time(self.since_ms)}"
        offsets = "offset" if self.count == 1 else "offsets"
        return (
            f"In {self.place}, an open transaction hides {self.count:,} newer {offsets}{since}: nothing from offset "
            f"{self.offset:,} on is read until it ends"
        )

    @property
    def advice(self) -> str:
        """What to do."""
        return (
            "It ends with its producer's commit, or after the producer's transaction.timeout.ms. kafka-transactions.sh "
            "finds one that is left over (find-hanging), and aborts it"
        )


def hidden_messages(view: ClusterView, options: ReadOptions) -> list[Hidden]:
    """What open transactions hide, by partition; since when is looked up for the first few of them.

    Args:
        view: What the brokers have.
        options: How it is read.
    """
    found = [
        Hidden(tp, bounds.latest, bounds.hidden)
        for tp, bounds in sorted(view.bounds.items())
        if bounds.hidden
    ]
    return [*_dated(found[:_NAMED], view, options), *found[_NAMED:]]


def _dated(found: Iterable[Hidden], view: ClusterView, options: ReadOptions) -> list[Hidden]:
    return [replace(each, since_ms=first_time_ms(_first(each, view), options)) for each in found]


def _first(hidden: Hidden, view: ClusterView) -> Range:
    """The first offset that is hidden."""
    topic_id = view.topic_ids[hidden.place.topic]
    return Range(*hidden.place, hidden.offset, hidden.offset + 1, topic_id)


def warn_of_hidden(found: Iterable[Hidden]) -> None:
    """Logs a warning of each transaction that is open for long."""
    for each in found:
        if each.since_ms is not None and now_ms() - each.since_ms >= LONG_MS:
            logger.warning("%s. %s.", each, each.advice)


@dataclass
class StandsStill:
    """Warns once for each transaction before which a stream stands still for long."""

    _since: dict[TopicPartition, tuple[int, float]] = field(default_factory=dict)
    _warned: set[tuple[TopicPartition, int]] = field(default_factory=set)

    def look(self, view: ClusterView, options: ReadOptions, now: float) -> None:
        """Takes a new view.

        Args:
            view: What the brokers have.
            options: How it is read.
            now: The time in seconds, of a clock that only rises.
        """
        hidden = {tp: bounds.latest for tp, bounds in view.bounds.items() if bounds.hidden}
        self._since = {
            tp: (at, self._since[tp][1] if self._since.get(tp, (-1,))[0] == at else now)
            for tp, at in hidden.items()
        }
        long = {
            tp: view.bounds[tp]
            for tp, (at, since) in self._since.items()
            if now - since >= _STREAM_WAITS_S and (tp, at) not in self._warned
        }
        if long:
            for each in hidden_messages(ClusterView(view.topic_ids, long), options):
                logger.warning("%s. %s.", each, each.advice)
            self._warned |= {(tp, bounds.latest) for tp, bounds in long.items()}
