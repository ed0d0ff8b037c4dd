"""Messages of a topic that a reader does not see: not yet, since a transaction before them is open, or no longer, since Kafka has removed them.

Readers of committed messages do not get what lies behind the first open transaction of a partition. Retention, and whoever deletes
records, move the earliest offset of a partition: of a table as of an earlier moment nothing is left where it ends at that offset or
before it; where it ends after it, keys are missing whose last change before the end has gone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pyspark_upsert_kafka.core.clock import now_ms, shown_time
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import UpsertKafkaError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client

LONG_MS = 10_000
"""A transaction that is open for so long is worth a warning; younger ones are normal where others write exactly once."""

_STREAM_WAITS_S = 60.0
"""How long a stream stands still before an open transaction until it warns."""

_NAMED = 3
"""Partitions that are named, and at whose first hidden or earliest message is looked: each costs a request."""

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


@dataclass(frozen=True)
class _Removed:
    """A partition whose first messages are gone.

    Args:
        place: The partition.
        earliest: The offset of the earliest message that is left.
        first_ms: Its timestamp, in ms since the epoch; None = not known, or no message is left.
    """

    place: TopicPartition
    earliest: int
    first_ms: int | None = None

    def __str__(self) -> str:
        of = (
            ""
            if self.first_ms is None
            else f", the earliest one left is of {shown_time(self.first_ms)}"
        )
        return f"{self.place} (its messages before offset {self.earliest:,} are gone{of})"


@dataclass(frozen=True)
class RemovedPast:
    """What is said about a table as of an earlier moment.

    Args:
        text: What it lacks and why, as a sentence without its full stop.
        advice: What to do.
        is_whole: Whether nothing is left of a partition as it was then.
    """

    text: str
    advice: str
    is_whole: bool


def removed_past(stop: Positions, view: ClusterView, options: ReadOptions) -> RemovedPast | None:
    """What a table lacks that ends in the past; None = nothing, as far as offsets tell, or no such table is read.

    Nothing is asked of the brokers, unless something is missing: then the times of the first few partitions' earliest messages.

    Args:
        stop: Where the read ends in each partition.
        view: What the brokers have.
        options: How it is read.
    """
    at_ms = options.end.timestamp_ms
    if not (options.mode == "snapshot" or options.table_first):
        return None
    if options.end.mode in ("latest-offset", "unbounded") or (
        at_ms is not None and at_ms >= now_ms()
    ):
        return None
    moved = [tp for tp in sorted(stop) if view.bounds[tp].earliest > 0]
    whole = [tp for tp in moved if stop[tp] <= view.bounds[tp].earliest]
    # Where it ends at the latest offset, it is the table as of now.
    some = whole or [tp for tp in moved if stop[tp] < view.bounds[tp].latest]
    if not some:
        return None
    named = [_removed(tp, view, options) for tp in some[:_NAMED]]
    return _said(named, len(some) - len(named), options, is_whole=bool(whole))


def _removed(tp: TopicPartition, view: ClusterView, options: ReadOptions) -> _Removed:
    bounds = view.bounds[tp]
    found = _Removed(tp, bounds.earliest)
    if bounds.earliest >= bounds.latest:
        return found
    left = Range(*tp, bounds.earliest, bounds.latest, view.topic_ids[tp.topic])
    return replace(found, first_ms=first_time_ms(left, options))


def _said(
    named: Sequence[_Removed], more: int, options: ReadOptions, *, is_whole: bool
) -> RemovedPast:
    at_ms = options.end.timestamp_ms
    moment = "an earlier time" if at_ms is None else shown_time(at_ms)
    lacks = "has no row of" if is_whole else "may lack rows of"
    places = ", ".join(map(str, named)) + (f" and of {more:,} more" if more else "")
    text = f"The table as of {moment} ('scan.bounded.mode' = '{options.end.mode}') {lacks} {places}"
    if is_whole:
        text += ": what was there at that time is not known any more, and compared with a later table every key looks new"
    else:
        text += (
            ": a key is missing whose last change before that time is one of those that are gone"
        )
    times = [each.first_ms for each in named if each.first_ms is not None]
    advice = "To read earlier tables in future, raise retention.ms of the topic"
    if is_whole and times:
        advice = f"No time up to {shown_time(max(times))} can be had. {advice}"
    return RemovedPast(text, advice, is_whole)


def first_time_ms(range_: Range, options: ReadOptions) -> int | None:
    """The timestamp of the first message of a range, in ms since the epoch; None = there is none, or it is not known.

    It costs a request, and what is said without it is true as well: an error is logged, and not raised.
    """
    settings = ReadSettings(options.table.properties, False, False, frozenset({Detail.TIMESTAMP}))
    try:
        with closing(load_client(options.table.client).reader(settings).read(range_)) as batches:  # type: ignore[type-var]
            for batch in batches:
                if len(batch):
                    return batch.timestamps[0] if batch.timestamp_types[0] else None
    except UpsertKafkaError as error:
        logger.info(
            "The time of the message at topic %r, partition %d, offset %d is not known: %s",
            range_.topic, range_.partition, range_.begin, error,
        )  # fmt: skip
    return None
