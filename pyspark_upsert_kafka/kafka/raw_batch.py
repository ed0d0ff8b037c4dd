"""Messages as they were read, before anything is decoded."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.metadata import SCHEMA_IDS, Detail

if TYPE_CHECKING:
    from pyspark_upsert_kafka.core.metadata import Headers

BAD_HEADERS = (
    "the key of a header is not UTF-8, so the client can read none of the message's headers"
)
"""Why headers cannot be read."""


Integers: TypeAlias = "list[int] | array[int]"
"""A number of each message."""


def numbers(found: Any) -> array[int]:
    """An array of NumPy's, of 64-bit integers, as one whose elements are Python's."""
    return array("q", found.tobytes())


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
        schema_ids: The values of the headers that name schemas, None for a message without; no column = no message has one.
    """

    topic: str
    partition: int
    keys: BytesColumn
    values: BytesColumn
    offsets: Integers
    timestamp_types: Integers = field(default_factory=partial(array, "q"))
    timestamps: Integers = field(default_factory=partial(array, "q"))
    headers: list[Headers] = field(default_factory=list)
    leader_epochs: list[int | None] = field(default_factory=list)
    bad_headers: dict[int, str] = field(default_factory=dict)
    schema_ids: dict[Detail, BytesColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, begin: int, end: int) -> RawBatch:
        """Some of the messages, in their order."""
        bad = {at - begin: why for at, why in self.bad_headers.items() if begin <= at < end}
        return self._of_each_column(lambda column: column[begin:end], bad)

    def where(self, mask: Sequence[bool]) -> RawBatch:
        """The messages for which the mask is true, in their order."""
        bad: dict[int, str] = {}
        if self.bad_headers:
            places = {at: place for place, at in enumerate(compress(range(len(self)), mask))}
            bad = {places[at]: why for at, why in self.bad_headers.items() if at in places}
        return self._of_each_column(lambda column: _where(column, mask), bad)

    def keep_of_headers(self, details: Collection[Detail]) -> None:
        """Takes those out of the headers that name schemas, if they are wanted, and drops headers that are not wanted themselves.

        Of several with the name the last one counts, as Confluent has it.
        """
        wanted = [each for each in SCHEMA_IDS.values() if each in details]
        last = [dict(each) for each in self.headers] if wanted and any(self.headers) else []
        for detail in wanted if last else ():
            values = [each.get(detail.value) for each in last]
            if any(value is not None for value in values):
                self.schema_ids[detail] = BytesColumn.of(values)
        if Detail.HEADERS not in details:
            self.headers.clear()

    @classmethod
    def joined(cls, parts: Sequence[RawBatch]) -> RawBatch:
        """The messages of all parts, one part after the other; there must be one at least."""
        first, *others = parts
        if not others:
            return first
        begins = accumulate(map(len, parts), initial=0)
        return RawBatch(
            first.topic,
            first.partition,
            BytesColumn.joined([part.keys for part in parts]),
            BytesColumn.joined([part.values for part in parts]),
            _one_after_another([part.offsets for part in parts]),
            _one_after_another([part.timestamp_types for part in parts]),
            _one_after_another([part.timestamps for part in parts]),
            _one_after_another([part.headers for part in parts]),
            _one_after_another([part.leader_epochs for part in parts]),
            {
                begin + at: why
                for begin, part in zip(begins, parts, strict=False)
                for at, why in part.bad_headers.items()
            },
            {
                detail: BytesColumn.joined(
                    [part.schema_ids.get(detail) or _nones(len(part)) for part in parts]
                )
                for detail in {each for part in parts for each in part.schema_ids}
            },
        )

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
            {detail: chosen(column) for detail, column in self.schema_ids.items()},
        )


def _where(column: Any, mask: Sequence[bool]) -> Any:
    """The entries of a column for which the mask is true."""
    if isinstance(column, BytesColumn):
        return column.where(mask)
    if isinstance(column, array) and column:
        import numpy as np

        return numbers(np.frombuffer(column, np.int64)[np.asarray(mask, np.bool_)])
    return list(compress(column, mask))


def _nones(count: int) -> BytesColumn:
    return BytesColumn.of([None] * count)


def _one_after_another(columns: Sequence[Any]) -> Any:
    """Lists or arrays of numbers as one, of the kind of the first."""
    whole = columns[0][:]
    for column in columns[1:]:
        whole.extend(column)
    return whole
