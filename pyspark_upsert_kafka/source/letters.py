"""Dead letters as the messages that they were, and which of them are worth writing back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark_upsert_kafka.core.offsets import TopicPartition
from pyspark_upsert_kafka.core.options.parsers import topic_name
from pyspark_upsert_kafka.kafka.messages import Headers
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.source.dead_letters import ADDED, PREFIX

_NO_TIMESTAMP = -1
_MOST_PARTITION, _MOST_OFFSET = 2**31 - 1, 2**63 - 1

Place = tuple[TopicPartition, int]
"""Partition and offset of a message."""


@dataclass(frozen=True)
class Letter:
    """A message as it was before it became a dead letter.

    Args:
        at: Its topic and partition.
        offset: Its offset.
        timestamp: Its timestamp in ms since the epoch.
        key: Its key.
        value: Its value.
        headers: Its headers.
        sent: When it became a dead letter, in ms since the epoch.
    """

    at: TopicPartition
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sent: int = 0

    @property
    def place(self) -> Place:
        """Where it was."""
        return self.at, self.offset

    def is_older_than(self, at: TopicPartition, offset: int, timestamp: int) -> bool:
        """Whether another message came later; between partitions only timestamps can tell."""
        return offset > self.offset if at == self.at else timestamp > self.timestamp

    def is_before(self, other: Letter) -> bool:
        """Whether another letter of the key came later."""
        if self.is_copied(other.at, other.value, other.headers):
            # The copy has the time at which it was written, and the original may be from ahead of the clock.
            return (other.sent, other.timestamp) > (self.sent, self.timestamp)
        return self.is_older_than(other.at, other.offset, other.timestamp)

    def is_copied(self, at: TopicPartition, value: bytes | None, headers: Headers) -> bool:
        """Whether a message of the key in another partition may be this one, written back."""
        return at != self.at and value == self.value and list(headers) == list(self.headers)


def letter(
    key: bytes | None, value: bytes | None, headers: Headers, sent: int = 0
) -> Letter | None:
    """The message that a dead letter was; None = this is no dead letter, or none that the connector wrote.

    >>> added = [("topic", b"t"), ("partition", b"0"), ("offset", b"7"), ("timestamp", b"1000"),
    ...          ("stage", b"value"), ("message", b"no JSON")]
    >>> headers = [("trace", b"1"), *((f"__error.{name}", value) for name, value in added)]
    >>> letter(b"k", b"{", headers).headers
    [('trace', b'1')]
    """
    original, added = headers[: -len(ADDED)], headers[-len(ADDED) :]
    if [name for name, _ in added] != [PREFIX + name for name in ADDED]:
        return None
    topic, partition, offset, timestamp, *_ = (value or b"" for _, value in added)
    try:
        at = TopicPartition(topic_name(topic.decode()), _number(partition, 0, _MOST_PARTITION))
        place = _number(offset, 0, _MOST_OFFSET), _number(timestamp, _NO_TIMESTAMP, _MOST_OFFSET)
    except ValueError:
        return None
    return Letter(at, *place, key, value, original, sent)


def _number(text: bytes, least: int, most: int) -> int:
    """Raises ValueError when it is no number in these bounds, both included."""
    if not re.fullmatch(rb"-?[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise ValueError
    return int(text)


@dataclass(frozen=True)
class Letters:
    """What becomes of dead letters.

    Args:
        replayed: These are written back, in offset order of each partition.
        outdated: Their keys have a newer message, so writing them back would undo it.
        keyless: They have no key, so they are no rows of a table.
        without_topic: Their topics do not exist.
    """

    replayed: tuple[Letter, ...] = ()
    outdated: tuple[Letter, ...] = ()
    keyless: tuple[Letter, ...] = ()
    without_topic: tuple[Letter, ...] = ()

    def without_outdated(self, batches: Iterable[RawBatch]) -> Letters:
        """The same, when these messages are in the topics too; those that are letters themselves are no rows."""
        waiting = {(each.at.topic, each.key): each for each in self.replayed}
        letters = {each.place for each in (*self.replayed, *self.outdated)}
        outdated = {place for batch in batches for place in _outdated_by(batch, waiting, letters)}
        return replace(
            self,
            replayed=tuple(each for each in self.replayed if each.place not in outdated),
            outdated=(*self.outdated, *(each for each in self.replayed if each.place in outdated)),
        )


def _outdated_by(
    batch: RawBatch, waiting: Mapping[tuple[str, bytes | None], Letter], letters: set[Place]
) -> Iterator[Place]:
    """Which of the waiting letters messages make outdated."""
    at = TopicPartition(batch.topic, batch.partition)
    columns = batch.keys, batch.values, batch.headers, batch.offsets, batch.timestamps
    for key, value, headers, offset, timestamp in zip(*columns, strict=True):
        each = waiting.get((batch.topic, key))
        if each is None or (at, offset) in letters:
            continue
        if each.is_older_than(at, offset, timestamp) or each.is_copied(at, value, headers):
            yield each.place


def each_once(letters: Iterable[Letter]) -> list[Letter]:
    """Each message once, however many letters it became, in offset order of its partition."""
    once = {each.place: each for each in letters}
    return [once[place] for place in sorted(once)]


def last_of_each_key(letters: Sequence[Letter]) -> Letters:
    """The last letter of each key of a table: the others, and those without a key, are not written back."""
    last: dict[tuple[str, bytes], Letter] = {}
    outdated = []
    for each in letters:
        if each.key is None:
            continue
        key = each.at.topic, each.key
        before = last.get(key)
        is_newer = before is None or before.is_before(each)
        last[key] = each if is_newer else last[key]
        if before is not None:
            outdated.append(before if is_newer else each)
    return Letters(
        tuple(each_once(last.values())),
        tuple(outdated),
        tuple(each for each in letters if each.key is None),
    )
