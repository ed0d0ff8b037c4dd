"""Messages as they were read, before anything is decoded."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, TypeAlias

from pyspark_upsert_kafka.kafka.sending.messages import Headers

BAD_HEADERS = (
    "the key of a header is not UTF-8, so the client can read none of the message's headers"
)
"""Why headers cannot be read."""


Integers: TypeAlias = "list[int] | array[int]"
"""A number of each message."""


@dataclass(frozen=True)
class RawBatch:
    """Messages of one partition in offset order, as parallel columns.

    Args:
        topic: The topic.
        partition: The partition.
        keys: Message keys.
        values: Message values; None = a tombstone.
        offsets: Offsets, rising.
        timestamp_types: 0 = no timestamp, 1 = CreateTime, 2 = LogAppendTime.
        timestamps: Timestamps in ms since the epoch.
        headers: Headers in their order; no headers = an empty sequence.
        leader_epochs: Leader epochs; None = not known.
        bad_headers: Why the headers of a message cannot be read, by its index; it then shows none.
    """

    topic: str
    partition: int
    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: Integers
    timestamp_types: Integers = field(default_factory=list)
    timestamps: Integers = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    leader_epochs: list[int | None] = field(default_factory=list)
    bad_headers: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, begin: int, end: int) -> RawBatch:
        """Some of the messages, in their order."""
        bad = {at - begin: why for at, why in self.bad_headers.items() if begin <= at < end}
        return self._of_each_column(lambda column: column[begin:end], bad)

    def where(self, mask: Sequence[bool]) -> RawBatch:
        """The messages for which the mask is true, in their order."""
        places = {at: place for place, at in enumerate(compress(range(len(self)), mask))}
        bad = {places[at]: why for at, why in self.bad_headers.items() if at in places}
        return self._of_each_column(lambda column: list(compress(column, mask)), bad)

    def _of_each_column(
        self, chosen: Callable[[Any], Any], bad_headers: dict[int, str]
    ) -> RawBatch:
        return RawBatch(
            self.topic,
            self.partition,
            chosen(self.keys),
            chosen(self.values),
            chosen(self.offsets),
            chosen(self.timestamp_types),
            chosen(self.timestamps),
            chosen(self.headers),
            chosen(self.leader_epochs),
            bad_headers,
        )
