"""What a table as of an earlier moment lacks, since Kafka has removed the messages that were its rows then.

Retention, and whoever deletes records, move the earliest offset of a partition. Where a table ends at that offset or before it,
nothing is left of it; where it ends after it, keys are missing whose last change before the end has gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.connector.planning.message_time import first_time_ms
from pyspark_upsert_kafka.core.clock import now_ms, shown_time
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition

_NAMED = 3
"""Partitions that are named, and whose earliest message is looked at: each costs a request."""


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
