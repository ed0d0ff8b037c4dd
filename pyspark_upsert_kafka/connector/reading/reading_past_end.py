"""Reading past the planned end of a snapshot, for keys whose message compaction has removed before it was read.

The end of a snapshot is fixed when it is planned. If a key is overwritten after that, its new message is past the end, and
compaction may remove the message before the end: then the key is missing in the range. So after the range the partition is
read on, to its end at that moment. Rows that were found before the planned end are kept; keys without such a row get their
newest row from the messages past the end.

While those messages are read, compaction may remove some of them too, but never the newest message of a key. So all keys
are found when one of these is true of the part that was read last:

- The partition has no newer message by now. Then the newest message of each key has been read.
- No offset is missing in the part. Then compaction has removed nothing from it; and a newest message before the part was
  the newest one already when the part before it was read.

Otherwise the partition's end is asked for again, and the next part is read. Transactions leave an offset without a message
at each commit, so a program that commits all the time would cause parts without end: their number is limited. A key can
then be missed only if it was overwritten, and its segment closed and cleaned, during each of the parts, and all parts but
the first take milliseconds.

The table with which a stream begins shows nothing from past its end, since the next batches do. There, reading on only
tells which rows may be out of date; they are left out, as the newer changes of their keys follow.

A row that was found before the planned end may be out of date: a newer message before the end may have been removed by
compaction before it was read. This is possible only for a key with a message past the end. Messages that were read and
overwritten show whether it has happened. Compaction cleans a partition from its beginning up to some offset, and
removes messages that were overwritten before that offset. So if it has removed a message because of one past the planned
end, it has also removed each message that has a smaller offset and was overwritten no later. A few of the messages
that were read, the witnesses, stand for all of them. While the witnesses are still in the partition, all rows are as of
the planned end.

For compaction two spellings of a key are two keys. So a message is a witness only if the message that has overwritten
it has the same key, byte by byte.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.connector.reading.snapshot import (
    MemoryLimit,
    Snapshot,
    kept_rows,
    rows_per_key,
)
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import DataLossError, OptionError
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.positions.planning import tasks_to_share
from pyspark_upsert_kafka.kafka.clients import RangeReader
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

_MOST_WITNESSES = 30
"""At most this many witnesses are looked up; of a million random messages about fourteen are witnesses."""

Holds = Callable[[int, int], bool]
"""Whether the partition still has the messages of two offsets, whose keys are the same bytes."""


def stand(
    found: Sequence[pa.RecordBatch],
    firsts: Sequence[pa.RecordBatch],
    key_columns: Sequence[str],
    holds: Holds,
) -> bool:
    """Whether the rows that were found before the planned end are those of that moment.

    Args:
        found: The rows; the last column is their offset.
        firsts: The key of the first message of each key past the end; the last column is its offset.
        key_columns: The columns of the key.
        holds: Asks the partition.
    """
    count = sum(rows.num_rows for rows in found)
    keys = [rows.select(list(key_columns)) for rows in (*found, *firsts)]
    if not keys:
        return True
    first, last = rows_per_key(keys, "min", "max")
    in_both = (first < count) & (last >= count)
    offsets = np.concatenate([rows.columns[-1].to_numpy() for rows in (*found, *firsts)])
    told_by = witnesses(offsets[first[in_both]], offsets[last[in_both]])
    return len(told_by) <= _MOST_WITNESSES and all(holds(*pair) for pair in told_by)


def witnesses(offsets: np.ndarray, overwritten: np.ndarray) -> list[tuple[int, int]]:
    """The messages that stand for all: each other one has a larger offset than one of these, and was overwritten later.

    Args:
        offsets: The offset of each message.
        overwritten: The offset of the message that has overwritten it.

    >>> witnesses(np.array([7, 5, 9]), np.array([20, 30, 25]))
    [(5, 30), (7, 20)]
    """
    order = np.argsort(offsets)
    by_place = overwritten[order]
    earliest = np.minimum.accumulate(by_place)
    stands_for = np.ones(len(order), dtype=bool)
    stands_for[1:] = by_place[1:] < earliest[:-1]
    first, second = offsets[order][stands_for].tolist(), by_place[stands_for].tolist()
    return list(zip(first, second, strict=True))


def holds(reader: RangeReader, range_: Range, offset: int, overwritten: int) -> bool:
    """Whether the partition of a range still has two messages that were read, whose keys are the same bytes.

    Raises:
        BrokerError: The broker stays away, or refuses.
    """
    keys = _keys_at(reader, range_, offset)
    return bool(keys) and keys == _keys_at(reader, range_, overwritten)


def _keys_at(reader: RangeReader, range_: Range, offset: int) -> list[bytes | None]:
    """The key of the message of an offset; empty = it is gone."""
    try:
        found = list(reader.read(replace(range_, begin=offset, end=offset + 1)))
    except DataLossError as error:
        logger.info("Offset %d is gone: %s", offset, error)
        return []
    return [key for batch in found for key in batch.keys]


_MOST_PARTS = 10
"""At most this many parts are read past the planned end."""


_MARGIN = 1.25
"""Keys are not spread quite evenly over tasks."""


def batches_past(reader: RangeReader, range_: Range) -> Iterator[RawBatch]:
    """The messages past the planned end of a range that was read, if compaction may have taken any before it.

    Raises:
        DataLossError: Offsets are gone, and ``failOnDataLoss`` is true.
        BrokerError: The broker stays away, or refuses.
    """
    if range_.kept_until_ms is None or now_ms() < range_.kept_until_ms:
        return
    begin = range_.end
    for _ in range(_MOST_PARTS):
        end, count = reader.end(range_), 0
        if end <= begin:
            return
        for batch in reader.read(replace(range_, begin=begin, end=end)):
            count += len(batch)
            yield batch
        if count == end - begin:
            return
        begin = end


class RangeSnapshot:
    """The table in a range: its rows as of the planned end, and the rows of keys that were found only past it.

    If compaction has removed messages before the planned end because of some past it, the rows of keys with a message past
    the end are as of the end of reading; in a range that is followed by later batches, they are left out.

    Args:
        range_: What is read.
        key_columns: The columns of the key.
        memory: Bytes that it may take.
        holds: Asks the partition for messages that were read.
        greatest: A column of whole numbers of which the greatest value of each key is kept; None = none.
    """

    def __init__(
        self,
        range_: Range,
        key_columns: tuple[str, ...],
        memory: int,
        holds: Holds,
        greatest: str | None = None,
    ) -> None:
        self._range, self._keys, self._holds = range_, list(key_columns), holds
        self._read_to = range_.begin
        self._memory, self._greatest = memory, greatest
        limit = MemoryLimit(memory, self._too_large)
        self._found = Snapshot(key_columns, limit, greatest=greatest)
        self._late: _Late | None = None

    def add(self, batch: RawBatch, rows: pa.RecordBatch, read: Rows) -> None:
        """Adds the changes of a batch of messages.

        Args:
            batch: The messages.
            rows: Columns of their rows, those of the key among them; none has an empty name.
            read: All that was read of them.

        Raises:
            OptionError: The table takes more memory than the options allow.
        """
        if not len(batch):
            return
        if batch.offsets[0] < self._range.end:
            self._read_to = batch.offsets[-1] + 1
            self._found.add(_with(rows, read.offsets_in(batch)), read.deletes)
            return
        if self._late is None:
            self._late = self._nothing_late()
        self._late.add(rows, self._keys, read.offsets_in(batch), read.deletes)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows; each batch is released when it has been returned.

        Raises:
            OptionError: The table takes more memory than the options allow.
        """
        found = self._found.rows() if self._late is None else self._with_late(self._late)
        return (rows.remove_column(rows.num_columns - 1) for rows in found)

    def _with_late(self, late: _Late) -> Iterator[pa.RecordBatch]:
        found, firsts = list(self._found.rows()), list(late.firsts.rows())
        stands = stand(found, firsts, self._keys, self._holds)
        if late.newest is not None:
            return _with_newest(found, list(late.newest.rows()), self._keys, stands=stands)
        followed = pa.scalar(self._range.followed_to)
        firsts = [rows.filter(pc.less(rows.columns[-1], followed)) for rows in firsts]
        return iter(found) if stands else rows_without(firsts, found, self._keys)

    def _nothing_late(self) -> _Late:
        taken, parts = self._found.size(), 1 if self._range.is_followed else 2

        def too_large_with_late(size: int) -> OptionError:
            return self._too_large(taken + parts * size)

        limit = MemoryLimit((self._memory - taken) // parts, too_large_with_late)
        followed, greatest = self._range.is_followed, self._greatest
        newest = None if followed else Snapshot(self._keys, limit, greatest=greatest)
        return _Late(newest, Snapshot(self._keys, limit, which="first"))

    def _too_large(self, size: int) -> OptionError:
        return too_large(self._range, self._read_to, size, self._memory)


def too_large(range_: Range, read_to: int, size: int, memory: int) -> OptionError:
    """The error of a table that does not fit, with how many tasks it would take.

    Args:
        range_: What the task was to read.
        read_to: One past the last offset that it has read.
        size: Bytes that the table takes up to there.
        memory: Bytes that it may take.
    """
    whole = size * range_.size / max(1, read_to - range_.begin)
    times = max(2, math.ceil(whole * _MARGIN / memory))
    pieces = times * (range_.share.count if range_.share else 1)
    return OptionError(
        f"The table in topic {range_.topic!r}, partition {range_.partition} does not fit into the memory of a task: "
        f"it takes {size / 2**20:,.0f} MB of {memory / 2**20:,.0f} MB ('scan.snapshot.memory') after "
        f"{100 * (read_to - range_.begin) / range_.size:.0f} % of the offsets. Have it read by more tasks, "
        f"which share its keys: 'minPartitions' = '{tasks_to_share(range_, pieces)}' makes {pieces} of them for this "
        "partition, enough if all of it is like what was read; or let a task hold more with 'scan.snapshot.memory'."
    )


@dataclass(frozen=True)
class _Late:
    """What was found past the planned end.

    Args:
        newest: The newest change of each key, with whether it is a delete; None = later batches show it.
        firsts: The key of the first change of each key, with its offset.
    """

    newest: Snapshot | None
    firsts: Snapshot

    def add(
        self,
        rows: pa.RecordBatch,
        keys: list[str],
        offsets: np.ndarray,
        deletes: pa.BooleanArray | None,
    ) -> None:
        """Adds changes."""
        if self.newest is not None:
            none = pa.array(np.zeros(rows.num_rows, dtype=bool))
            self.newest.add(_with(rows, none if deletes is None else deletes), None)
        self.firsts.add(_with(rows.select(keys), offsets), None)


def _with_newest(
    found: Sequence[pa.RecordBatch],
    newest: Sequence[pa.RecordBatch],
    keys: list[str],
    *,
    stands: bool,
) -> Iterator[pa.RecordBatch]:
    """The rows, and the newest ones of keys that have none, or none that stands; the last column of these says if it is a delete."""
    # The last row of each key is the one that is shown.
    both = [*newest, *found] if stands else [*found, *newest]
    for rows, kept in _last(both, keys):
        is_late = pa.types.is_boolean(rows.columns[-1].type)
        yield rows.filter(pc.and_not(kept, rows.columns[-1]) if is_late else kept)


def rows_without(
    others: Sequence[pa.RecordBatch], found: Sequence[pa.RecordBatch], keys: list[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of keys that the others do not have."""
    for rows, kept in islice(_last([*found, *others], keys), len(found)):
        yield rows.filter(kept)


def _last(
    batches: Sequence[pa.RecordBatch], keys: list[str]
) -> Iterator[tuple[pa.RecordBatch, pa.BooleanArray]]:
    """Each batch with which of its rows are the last ones of their keys."""
    if not batches:
        return
    kept, begin = kept_rows([rows.select(keys) for rows in batches]), 0
    for rows in batches:
        yield rows, pa.array(kept[begin : begin + rows.num_rows])
        begin += rows.num_rows


def _with(rows: pa.RecordBatch, column: Any) -> pa.RecordBatch:
    """The rows with one more column, of no name."""
    return rows.append_column("", pa.array(column))
