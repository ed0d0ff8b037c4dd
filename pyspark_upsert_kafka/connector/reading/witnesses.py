"""Whether compaction has removed messages before the planned end of a snapshot because of messages past it.

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
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.connector.reading.snapshot import rows_per_key
from pyspark_upsert_kafka.core.errors import DataLossError
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import RangeReader

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
