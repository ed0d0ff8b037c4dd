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
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import DataLossError, OptionError
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.interfaces import RangeReader
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.reading.rows import Rows
from pyspark_upsert_kafka.source.reading.snapshot import (
    MemoryLimit,
    Snapshot,
    kept_rows,
    rows_per_key,
    snapshot_bytes,
    too_large,
)

logger = logging.getLogger("pyspark_upsert_kafka")

_MOST_PARTS = 10
"""At most this many parts are read past the planned end."""

_MOST_WITNESSES = 30
"""At most this many witnesses are looked up; of a million random messages about fourteen are witnesses."""


def batches_past(reader: RangeReader, range_: Range) -> Iterator[RawBatch]:
    """The messages past the planned end of a range that was read, if compaction may have taken any before it.

    Raises:
        DataLossError: Offsets are gone, and ``failOnDataLoss`` is true.
        BrokerError: The broker stays away, or refuses.
    """
    if range_.kept_until_ms is None or time.time() * 1000 < range_.kept_until_ms:
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

    A row that was found before the planned end may be out of date: a newer message before the end may have been removed by
    compaction before it was read. This is possible only for a key with a message past the end. Messages that were read and
    overwritten show whether it has happened. Compaction cleans a partition from its beginning up to some offset, and
    removes messages that were overwritten before that offset. So if it has removed a message because of one past the planned
    end, it has also removed each message that has a smaller offset and was overwritten no later. A few of the messages
    that were read, the witnesses, stand for all of them. While the witnesses are still in the partition, all rows are as of
    the planned end; otherwise the rows of keys with a message past the end are as of the end of reading.

    For compaction two spellings of a key are two keys. So a message is a witness only if the message that has overwritten
    it has the same key, byte by byte.

    Args:
        range_: What is read.
        key_columns: The columns of the key.
        options: How it is read.
        holds: Whether the partition still has the messages of two offsets, whose keys are the same bytes.
    """

    def __init__(
        self,
        range_: Range,
        key_columns: tuple[str, ...],
        options: ReadOptions,
        holds: Callable[[int, int], bool],
    ) -> None:
        self._range, self._keys, self._holds = range_, list(key_columns), holds
        self._read_to = range_.begin
        self._memory = snapshot_bytes(options)
        self._found = Snapshot(key_columns, MemoryLimit(self._memory, self._too_large))
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
        found, newest, firsts = (
            list(each.rows()) for each in (self._found, late.newest, late.firsts)
        )
        # The last row of each key is the one that is shown.
        both = [*newest, *found] if self._stand(found, firsts) else [*found, *newest]
        kept, begin = kept_rows([rows.select(self._keys) for rows in both]), 0
        for rows in both:
            mask = pa.array(kept[begin : begin + rows.num_rows])
            begin += rows.num_rows
            is_late = pa.types.is_boolean(rows.columns[-1].type)
            yield rows.filter(pc.and_not(mask, rows.columns[-1]) if is_late else mask)

    def _stand(self, found: Sequence[pa.RecordBatch], firsts: Sequence[pa.RecordBatch]) -> bool:
        """Whether the rows that were found are those of the planned end."""
        count = sum(rows.num_rows for rows in found)
        keys = [rows.select(self._keys) for rows in (*found, *firsts)]
        if not keys:
            return True
        first, last = rows_per_key(keys, "min", "max")
        in_both = (first < count) & (last >= count)
        offsets = np.concatenate([rows.columns[-1].to_numpy() for rows in (*found, *firsts)])
        told_by = witnesses(offsets[first[in_both]], offsets[last[in_both]])
        return len(told_by) <= _MOST_WITNESSES and all(self._holds(*pair) for pair in told_by)

    def _nothing_late(self) -> _Late:
        taken = self._found.size()

        def too_large_with_late(size: int) -> OptionError:
            return self._too_large(taken + 2 * size)

        limit = MemoryLimit((self._memory - taken) // 2, too_large_with_late)
        return _Late(Snapshot(self._keys, limit), Snapshot(self._keys, limit, which="first"))

    def _too_large(self, size: int) -> OptionError:
        return too_large(self._range, self._read_to, size, self._memory)


@dataclass(frozen=True)
class _Late:
    """What was found past the planned end.

    Args:
        newest: The newest change of each key, with whether it is a delete.
        firsts: The key of the first change of each key, with its offset.
    """

    newest: Snapshot
    firsts: Snapshot

    def add(
        self,
        rows: pa.RecordBatch,
        keys: list[str],
        offsets: np.ndarray,
        deletes: pa.BooleanArray | None,
    ) -> None:
        """Adds changes."""
        none = pa.array(np.zeros(rows.num_rows, dtype=bool))
        self.newest.add(_with(rows, none if deletes is None else deletes), None)
        self.firsts.add(_with(rows.select(keys), offsets), None)


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


def _with(rows: pa.RecordBatch, column: Any) -> pa.RecordBatch:
    """The rows with one more column, of no name."""
    return rows.append_column("", pa.array(column))
