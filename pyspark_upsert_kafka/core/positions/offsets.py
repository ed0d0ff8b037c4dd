"""Positions in Kafka partitions, and the form in which a checkpoint keeps them.

An offset here is always the next one to read: a range ends before its ``end``.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark_upsert_kafka.core.errors import CheckpointError

VERSION = 2
"""The newest layout. Only the offset of a table is written in it: earlier packages reject that one, and read all others."""

INITIAL: dict[str, Any] = {"version": 1, "initial": True}
"""The offset before a query's first batch. It names no position: the real start stands in the
``begins`` of the first batch's end, since Spark asks for the initial offset again after a crash and
would get another answer from a topic that has moved on."""


_PARTITION = re.compile("0|[1-9][0-9]{0,9}")
_LAST_PARTITION, LAST_OFFSET = 2**31 - 1, 2**63 - 1
_HEXADECIMAL = 36
"""Characters of an id in hexadecimal digits with hyphens; in base64 it has 22."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"topic {self.topic!r}, partition {self.partition}"


Positions = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Share:
    """The keys of a range that one task of a snapshot keeps: several tasks read the same offsets.

    Args:
        index: Which of the shares, from 0 on.
        count: How many tasks share the keys.
        ranges: How many ranges the whole read has.
        offsets: How many offsets are in all of them.
        of_all: Whether a task reads this share of all ranges.
    """

    index: int
    count: int
    ranges: int
    offsets: int
    of_all: bool = False


@dataclass(frozen=True)
class Range:
    """Offsets of one partition for one task to read: from ``begin`` up to but not with ``end``.

    Compaction and transaction markers leave gaps, so ``size`` is an upper bound.

    Args:
        topic: The topic.
        partition: The partition.
        begin: The first offset.
        end: One past the last offset.
        topic_id: The id of the topic for which it was planned; empty text = not known.
        share: Of a table: which of the keys are kept; None = all messages are read, as changes.
        kept_until_ms: Of a snapshot: until when (ms since the epoch) compaction certainly removes no message that was the newest
            of its key when the snapshot was planned; None = for ever, or it makes no difference.
        followed_to: Of the table with which a stream begins: up to where later batches read this partition; 0 = no batch follows.
        is_checked_after: Whether the topic's id is compared after the last message, too. Where one reader reads several
            ranges of a topic one after another, the last of them is enough.
    """

    topic: str
    partition: int
    begin: int
    end: int
    topic_id: str = ""
    share: Share | None = None
    kept_until_ms: int | None = None
    followed_to: int = 0
    is_checked_after: bool = True

    @property
    def size(self) -> int:
        """How many offsets there are at most."""
        return self.end - self.begin

    @property
    def is_followed(self) -> bool:
        """Whether changes after the end are read by later batches, and so are no part of this table."""
        return self.followed_to > self.end


@dataclass(frozen=True)
class StreamOffset:
    """How far a stream has planned to read: what survives a restart.

    Args:
        positions: Per partition, the next offset to plan.
        begins: Per partition whose reading does not start where the previous offset ended (in the
            first batch, for a new partition, after lost data): where it starts.
        stop: For a bounded stream, where each partition ends; None = unbounded.
        topic_ids: Each topic's id, by which a re-created topic is known; empty text = the broker
            has none.
        is_table: Whether the batch that ends here reads the table as of its end, and not the changes up to it.
    """

    positions: Positions
    begins: Positions = field(default_factory=dict)
    stop: Positions | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    is_table: bool = False

    def to_json(self) -> dict[str, Any]:
        """The offset as Spark keeps it; equal offsets give the same text, key order included."""
        named = sorted({*self.topic_ids, *(tp.topic for tp in self.positions)})
        topics: dict[str, Any] = {
            topic: {"id": self.topic_ids.get(topic, ""), "positions": {}} for topic in named
        }
        _put(self.positions, "positions", topics)
        _put(self.begins, "begins", topics)
        _put(self.stop or {}, "stop", topics)
        bounded = {} if self.stop is None else {"bounded": True}
        table = {"table": True} if self.is_table else {}
        return {"version": 2 if self.is_table else 1, **table, **bounded, "topics": topics}


class Keeper(NamedTuple):
    """Where an offset was kept, and how to begin without it: for errors."""

    name: str
    begin_anew: str


_CHECKPOINT = Keeper("The checkpoint", "start with a new checkpoint")


def stream_offset(
    json: Mapping[str, Any] | None, keeper: Keeper = _CHECKPOINT
) -> StreamOffset | None:
    """The offset that a checkpoint, or another keeper, holds; None for the initial one.

    Raises:
        CheckpointError: It was written by a newer version, by another source, or was changed by hand.
    """
    try:
        return _offset(json, keeper)
    except _WrongError as wrong:
        raise CheckpointError(
            f"{keeper.name} holds an offset that cannot be read. {wrong} It was changed by hand, or damaged: restore it, or "
            f"{keeper.begin_anew}."
        ) from None


def _offset(json: Mapping[str, Any] | None, keeper: Keeper) -> StreamOffset | None:
    if json is None or json in ({}, INITIAL):
        return None
    if not isinstance(json, dict):  # another source's, such as that of rate: a number
        raise CheckpointError(
            f"{keeper.name} is that of another source: it holds the offset {json!r}. "
            f"{keeper.begin_anew[0].upper()}{keeper.begin_anew[1:]}."
        )
    version, topics = json.get("version"), json.get("topics")
    if version not in range(1, VERSION + 1) or not isinstance(topics, dict):
        raise CheckpointError(
            f"{keeper.name} holds an offset that this version cannot read (version {version!r}, "
            f"known up to {VERSION}): {json!r}. Use the version of pyspark_upsert_kafka that wrote it, "
            f"or {keeper.begin_anew}."
        )
    bounded, table = json.get("bounded", False), json.get("table", False)
    for name, flag in (("bounded", bounded), ("table", table)):
        if not isinstance(flag, bool):
            raise _wrong(repr(name), flag, "true or false")
    for topic, block in topics.items():
        if not isinstance(block, dict):
            raise _wrong(f"Topic {topic!r}", block, "an object")
    return StreamOffset(
        positions=_positions(topics, "positions"),
        begins=_positions(topics, "begins"),
        stop=_positions(topics, "stop") if bounded else None,
        topic_ids={topic: _topic_id(topic, block) for topic, block in topics.items()},
        is_table=table,
    )


class _WrongError(ValueError):
    """What is wrong with an offset, as a sentence."""


def _wrong(what: str, found: object, expected: str) -> _WrongError:
    return _WrongError(f"{what} is {found!r}, expected {expected}.")


def _topic_id(topic: str, block: Mapping[str, Any]) -> str:
    topic_id = block.get("id", "")
    try:
        return spelt_by_kafka(topic_id)
    except (TypeError, ValueError):
        raise _wrong(f"The 'id' of topic {topic!r}", topic_id, "a topic's id as text") from None


def spelt_by_kafka(topic_id: str) -> str:
    """A topic's id as Kafka spells it, whichever client gave it: one that is spelt in another way is another.

    kafka-python spells it in hexadecimal digits, and so do checkpoints of version 0.1.0 that were written with it.

    >>> spelt_by_kafka("06ac4ecc-72c4-4a94-b374-3c6903ce57f3")
    'BqxOzHLESpSzdDxpA85X8w'
    >>> spelt_by_kafka("BqxOzHLESpSzdDxpA85X8w")
    'BqxOzHLESpSzdDxpA85X8w'
    """
    if not isinstance(topic_id, str):
        raise TypeError("an id is a text")
    if len(topic_id) != _HEXADECIMAL:
        return topic_id
    return base64.urlsafe_b64encode(uuid.UUID(topic_id).bytes).decode().rstrip("=")


def _put(positions: Positions, name: str, topics: dict[str, Any]) -> None:
    """Puts positions into the blocks of their topics, in the order of partitions, in one pass."""
    for tp, offset in sorted(positions.items()):
        block = topics.get(tp.topic)
        if block is not None:
            block.setdefault(name, {})[str(tp.partition)] = offset


def _positions(topics: Mapping[str, Any], name: str) -> dict[TopicPartition, int]:
    found = {}
    for topic, block in topics.items():
        offsets, place = block.get(name, {}), f"{name!r} of topic {topic!r}"
        if not isinstance(offsets, dict):
            raise _wrong(place, offsets, "an object")
        for partition, offset in offsets.items():
            if not _PARTITION.fullmatch(partition) or int(partition) > _LAST_PARTITION:
                expected = f"a whole number from 0 to {_LAST_PARTITION}"
                raise _wrong(f"A partition in {place}", partition, expected)
            if type(offset) is not int or not 0 <= offset <= LAST_OFFSET:
                place = f"Partition {partition} in {place}"
                raise _wrong(place, offset, f"a whole number from 0 to {LAST_OFFSET}")
            found[TopicPartition(topic, int(partition))] = offset
    return found


def ranges_between(
    start: StreamOffset | None, end: StreamOffset, keeper: Keeper = _CHECKPOINT
) -> list[Range]:
    """What a batch reads: each partition from where it was, or begins, up to ``end``.

    Raises:
        CheckpointError: A partition would be read backwards, or from nowhere.
    """
    before: Positions = {} if start is None else start.positions
    ranges = []
    for tp, stop in sorted(end.positions.items()):
        begin = end.begins.get(tp, before.get(tp))
        if begin is None or begin > stop:
            raise CheckpointError(
                f"{keeper.name} asks for {tp} from offset {begin} to {stop}. It does not belong to "
                f"this query, or was changed by hand: {keeper.begin_anew}."
            )
        ranges.append(Range(*tp, begin, stop, topic_id=end.topic_ids.get(tp.topic, "")))
    return not_empty(ranges)


def not_empty(ranges: Iterable[Range]) -> list[Range]:
    """Ranges that hold an offset: an empty one would cost a task."""
    return [range_ for range_ in ranges if range_.size > 0]
