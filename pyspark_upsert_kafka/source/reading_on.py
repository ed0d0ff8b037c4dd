"""Reading on past the planned end of a snapshot, for keys whose message compaction has taken before it was read.

The end of a snapshot is fixed when it is planned. A key that is overwritten after that has a newer message past the end,
and then compaction may take the one before the end: the range as it is read lacks the key. So the partition is read on to
where it ends by then. Rows that were found before the planned end stay; of keys that have none, the newest row is added.

While that tail is read, compaction may take messages of it, too. It takes no key's newest message. So each key was
seen if its newest message, at the moment when the partition's end was asked for, was still there when it was fetched:

- Where the partition ends at what was read, there is no newer message: whatever was newest was there.
- Where no offset is missing in the part up to the end, compaction has taken nothing from this part; and what lies
  before the part and was newest, was newest already when the part before it was read.

Otherwise the end is asked for again. Somebody who writes transactions without a pause leaves an offset without a
message in each part, so the parts are bounded in number. To be missed then, a key must have been overwritten, and its
segment have been closed and cleaned, within each of these parts, of which all but the first take milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.kafka.interfaces import RangeReader
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.source.snapshot import MemoryLimit, Snapshot, too_large
from pyspark_upsert_kafka.source.worker_memory import snapshot_bytes

_MOST_PARTS = 10
"""So many parts are read past the planned end at most."""


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


class RangeTable:
    """The table in a range: its rows as of the planned end, and those of keys that were found past it alone.

    Args:
        range_: What is read.
        key_columns: The columns of the key.
        options: How it is read.
    """

    def __init__(self, range_: Range, key_columns: tuple[str, ...], options: ReadOptions) -> None:
        self._range, self._read_to = range_, range_.begin
        self._memory = snapshot_bytes(options)
        self._snapshot = Snapshot(key_columns, MemoryLimit(self._memory, self._too_large))
        self._is_past_end = False

    def add(self, batch: RawBatch, rows: pa.RecordBatch, deletes: pa.BooleanArray | None) -> None:
        """Adds the changes of a batch of messages.

        Raises:
            OptionError: The table takes more memory than the options allow.
        """
        if not len(batch):
            return
        if not self._is_past_end and batch.offsets[0] >= self._range.end:
            self._is_past_end = True
            self._snapshot.settle()
        self._read_to = min(batch.offsets[-1] + 1, self._range.end)
        self._snapshot.add(rows, deletes)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows; each batch is released when it has been returned.

        Raises:
            OptionError: The table takes more memory than the options allow.
        """
        return self._snapshot.rows()

    def _too_large(self, size: int) -> OptionError:
        return too_large(self._range, self._read_to, size, self._memory)
