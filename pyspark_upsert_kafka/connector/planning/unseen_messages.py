"""Messages of a topic that a reader does not see: not yet, since a transaction before them is open, or no longer, since Kafka has removed them.

Readers of committed messages do not get what lies behind the first open transaction of a partition. Retention, and whoever deletes
records, move the earliest offset of a partition: of a table as of an earlier moment nothing is left where it ends at that offset or
before it; where it ends after it, keys are missing whose last change before the end has gone. Changes since a time lack the first
ones, if the earliest message that is left is younger.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from pyspark_upsert_kafka.core.clock import now_ms, shown_time
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import UpsertKafkaError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
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
    """What is said about messages of the past that are gone.

    Args:
        text: What the read lacks and why, as sentences without the last full stop.
        advice: What to do.
        is_whole: Whether nothing is left of a partition up to the end of the read.
    """

    text: str
    advice: str
    is_whole: bool


def removed_past(
    start: Positions, stop: Positions | None, view: ClusterView, options: ReadOptions
) -> RemovedPast | None:
    """What a read of the past lacks; None = nothing, as far as offsets tell, or no past is read.

    The past is read by a table and by changes that end there, and by changes since a time. From the earliest offset to the latest
    one, there is what the topic has. Nothing is asked of the brokers, unless something is missing: then the times of the first few
    partitions' earliest messages.

    Args:
        start: Where the read begins in each partition.
        stop: Where it ends; None = it has no end.
        view: What the brokers have.
        options: How it is read.
    """
    kind = _kind_of_past(options)
    if kind is None:
        return None
    found: dict[Lack, list[TopicPartition]] = {"all": [], "some": []}
    for tp in sorted(start if stop is None else stop):
        begin = start.get(tp, view.bounds[tp].earliest)
        end = None if stop is None else stop[tp]
        lack = lack_of(kind, view.bounds[tp], begin, end, needs_first=options.holds_table)
        if lack is not None:
            found[lack].append(tp)
    if not any(found.values()):
        return None
    whole, some = (_Places.of(found[lack], view, options) for lack in ("all", "some"))
    return _said(kind, whole, some, options)


_PastKind = Literal["table", "changes-up-to", "changes-since"]

Lack = Literal["all", "some"]
"""What is gone of a partition: all up to the end of the read, or a part of that (of changes since a time perhaps nothing)."""


def _kind_of_past(options: ReadOptions) -> _PastKind | None:
    """Which past is read; None = none."""
    start, end, now = options.start, options.end, now_ms()
    is_table = options.mode == "snapshot" or options.table_first
    if start.mode == "timestamp":
        return "changes-since" if (start.timestamp_ms or 0) < now else None
    if start.mode != "earliest-offset" or end.mode in ("latest-offset", "unbounded"):
        return None
    if end.timestamp_ms is not None and end.timestamp_ms >= now:
        return None
    return "table" if is_table else "changes-up-to"


def lack_of(
    kind: _PastKind, bounds: Bounds, begin: int, end: int | None, *, needs_first: bool
) -> Lack | None:
    """What is gone of a partition; None = nothing. Compaction does not move the earliest offset: it stays 0.

    Args:
        kind: What is read.
        bounds: What the partition has.
        begin: Where the read begins.
        end: Where it ends; None = it has no end.
        needs_first: Whether rows depend on the first messages, as those of a table and its changes; a log begins anywhere.

    >>> lack_of("table", Bounds(20, 30, 30), 20, 20, needs_first=True), lack_of("table", Bounds(20, 30, 30), 20, 25, needs_first=True)
    ('all', 'some')
    >>> lack_of("changes-since", Bounds(20, 30, 30), 20, None, needs_first=True)
    'some'
    """
    if bounds.earliest == 0:
        return None
    if kind == "changes-since":
        # A message that is left before that time is younger than all that are gone.
        return "some" if begin <= bounds.earliest else None
    if end is None or end <= bounds.earliest:
        return "all"
    # Where it ends at the latest offset, it is the table as of now.
    return "some" if needs_first and end < bounds.latest else None


@dataclass(frozen=True)
class _Places:
    """Partitions whose messages are gone, of which the first few are named.

    Args:
        named: Those that are named.
        more: How many others there are.
    """

    named: tuple[_Removed, ...]
    more: int

    @classmethod
    def of(cls, places: list[TopicPartition], view: ClusterView, options: ReadOptions) -> _Places:
        named = tuple(_removed(tp, view, options) for tp in places[:_NAMED])
        return cls(named, len(places) - len(named))

    @property
    def last_ms(self) -> int | None:
        """The youngest of their earliest messages; None = not known."""
        return max(
            (each.first_ms for each in self.named if each.first_ms is not None), default=None
        )

    def __bool__(self) -> bool:
        return bool(self.named)

    def __str__(self) -> str:
        more = f" and of {self.more:,} more" if self.more else ""
        return ", ".join(map(str, self.named)) + more


def _removed(tp: TopicPartition, view: ClusterView, options: ReadOptions) -> _Removed:
    bounds = view.bounds[tp]
    found = _Removed(tp, bounds.earliest)
    if bounds.earliest >= bounds.latest:
        return found
    left = Range(*tp, bounds.earliest, bounds.latest, view.topic_ids[tp.topic])
    return replace(found, first_ms=first_time_ms(left, options))


def _said(kind: _PastKind, whole: _Places, some: _Places, options: ReadOptions) -> RemovedPast:
    name, position = (
        ("startup", options.start) if kind == "changes-since" else ("bounded", options.end)
    )
    at_ms = position.timestamp_ms
    moment = "an earlier time" if at_ms is None else shown_time(at_ms)
    option = f"('scan.{name}.mode' = '{position.mode}')"
    rows = "changes" if options.holds_table else "messages"
    if kind == "table":
        parts = [
            (
                f"has no row of {whole}: what was there at that time is not known any more, and compared with a later table every "
                "key looks new"
            ),
            f"may lack rows of {some}: a key is missing whose last change before that time is one of those that are gone",
        ]
        subject, again, what = f"The table as of {moment}", "It", "tables"
    elif kind == "changes-up-to":
        parts = [
            f"have nothing of {whole}: what there was up to that time is not known any more",
            f"lack the first ones of {some}: a table that is made of them lacks keys",
        ]
        subject, again, what = f"The {rows} up to {moment}", "They", rows
    else:
        parts = [
            "",
            f"may lack the first ones of {some}: what there was before is not known any more",
        ]
        subject, again, what = f"The {rows} since {moment}", "They", rows
    said = [part for part, places in zip(parts, (whole, some), strict=True) if places]
    text = f". {again} ".join([f"{subject} {option} {said[0]}", *said[1:]])
    advice = f"To read earlier {what} in future, raise retention.ms of the topic"
    if whole.last_ms is not None:
        advice = f"No time up to {shown_time(whole.last_ms)} can be had. {advice}"
    return RemovedPast(text, advice, is_whole=bool(whole))


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
