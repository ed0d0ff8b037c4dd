"""A partition in memory that is written and compacted while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

Value = int | None


def nothing() -> None:
    """Nothing happens meanwhile."""


@dataclass
class Log:
    """A partition: its messages by offset; ``meanwhile`` happens before each request.

    A key is a number, or a text that spells one in another way: another key for compaction, and the same for the table.
    """

    messages: dict[int, tuple[int | str, Value]] = field(default_factory=dict)
    length: int = 0
    meanwhile: Callable[[], None] = nothing
    at_once: int = 1000
    asked: int = 0
    history: list[tuple[int, int | str, Value]] = field(default_factory=list)
    open_at: int | None = None

    @property
    def latest(self) -> int:
        """The last stable offset: that of the first message of an open transaction, or the end."""
        return self.length if self.open_at is None else self.open_at

    def append(self, *changes: tuple[int | str, Value]) -> None:
        """Appends a change of each of these keys."""
        for key, value in changes:
            self.messages[self.length] = (key, value)
            self.history.append((self.length, key, value))
            self.length += 1

    def skip(self) -> None:
        """Appends what is no message: a transaction's marker."""
        self.length += 1

    def compact(self, below: int | None = None) -> None:
        """Takes what was overwritten before an offset, and before an open transaction."""
        cleaned = min(below or self.latest, self.latest)
        newest = {str(key): at for at, (key, _) in sorted(self.messages.items()) if at < cleaned}
        self.messages = {
            at: message
            for at, message in self.messages.items()
            if at >= newest.get(str(message[0]), 0)
        }

    def end(self, _: Range) -> int:
        """As `RangeReader.end`."""
        self.meanwhile()
        self.asked += 1
        return self.latest

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """As `RangeReader.read`: fetches of a few messages, each of what is there by then."""
        begin = range_.begin
        while begin < range_.end:
            self.meanwhile()
            found = [at for at in sorted(self.messages) if begin <= at < range_.end]
            offsets = found[: self.at_once]
            begin = range_.end if offsets == found else offsets[-1] + 1
            keys = [str(self.messages[at][0]).encode() for at in offsets]
            values = [self.messages[at][1] for at in offsets]
            data = [None if v is None else b"%d" % v for v in values]
            yield RawBatch(
                range_.topic, range_.partition, BytesColumn.of(keys), BytesColumn.of(data), offsets
            )


class LogReader:
    """Reads the partitions in memory; plays the client, too."""

    def __init__(self, logs: dict[TopicPartition, Log]) -> None:
        self._logs = logs

    def reader(self, settings: ReadSettings) -> LogReader:
        """Itself."""
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """As `RangeReader.read`."""
        return self._log(range_).read(range_)

    def end(self, range_: Range) -> int:
        """As `RangeReader.end`."""
        return self._log(range_).end(range_)

    def _log(self, range_: Range) -> Log:
        return self._logs[TopicPartition(range_.topic, range_.partition)]
