"""One row for each key of a snapshot, also where the key lies in several partitions: a task reads all of them.

The rule is that of ``connector/changelog/last_changes.py``: of the last changes of a key in each partition the one with the greatest time counts,
then the one of the highest partition; the time is the greatest timestamp that the key has had in that partition.

In the table with which a stream begins, a range may lack the row of a key because compaction has taken it for a change past the
planned end. Then a row of another partition that is older than this change may never have been the key's row at the planned end:
it is left out too, as the change follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.connector.reading.message_rows import Rows
from pyspark_upsert_kafka.connector.reading.reading_past_end import rows_without
from pyspark_upsert_kafka.connector.reading.snapshot import (
    MemoryLimit,
    Snapshot,
    rows_per_key,
    snapshot_bytes,
)
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.changes import SHOWN_KEYS, such_keys
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import OptionError, warn_once
from pyspark_upsert_kafka.core.positions.offsets import Range

if TYPE_CHECKING:
    from pyspark_upsert_kafka.connector.reading.task_reading import ChangeReader, Changes
    from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

OLDEST = int(np.iinfo(np.int64).min)
"""The time of a message without a timestamp."""


def merged_rows(
    ranges: Sequence[Range], reader: ChangeReader, chosen: Callable[[Changes, Range], Changes]
) -> Iterator[pa.RecordBatch]:
    """The table in some ranges, whose partitions may have changes of the same keys.

    Args:
        ranges: The ranges; all of them are read before a row is returned.
        reader: Reads them.
        chosen: Passes on which of the changes of a range count.

    Raises:
        OptionError: The table takes more memory than the options allow.
    """
    schema = arrow_schema(reader.table.schema)
    time, deleted = _new_names(schema.names)
    memory, taken = snapshot_bytes(reader.options), 0
    parts: list[pa.RecordBatch] = []
    places: list[np.ndarray] = []
    order = sorted(ranges, key=lambda range_: (range_.partition, range_.topic))
    keys = [*reader.table.key_names]
    for range_ in ranges:
        if taken >= memory:
            raise _too_large(taken, memory, range_)
        found = reader.snapshot_of(range_, reader.table.key_names, taken, greatest=time)
        following = Snapshot(
            keys, MemoryLimit(memory - taken, _error(taken, memory, range_)), "first"
        )
        with closing(reader.read(range_)) as changes:
            for batch, rows in chosen(changes, range_):
                columns = [*rows.columns, _times(batch, rows), _deletes(rows)]
                with_order = pa.RecordBatch.from_arrays(columns, [*schema.names, time, deleted])
                found.add(batch, with_order, replace(rows, deletes=None))
                if range_.is_followed:
                    following.add(_following(with_order, rows.offsets_in(batch), range_), None)
        here = list(found.rows())
        for each in [*here, *rows_without(here, list(following.rows()), keys)]:
            parts.append(each)
            places.append(np.full(each.num_rows, order.index(range_)))
            taken += each.nbytes
    if not parts:
        return
    kept = _newest(parts, keys, time, np.concatenate(places))
    if not kept.all():
        older = np.flatnonzero(~kept)
        such = pa.Table.from_batches([part.select(keys) for part in parts]).take(older[:SHOWN_KEYS])
        warn_once(
            "Keys lie in several partitions, as after partitions were added to a topic. Of such a key the change with the "
            "greatest timestamp is shown, then that of the highest partition ('scan.snapshot.merge-partitions').",
            detail=partial(such_keys, such.to_pylist(), len(older)),
        )
    begin = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        mask = kept[begin : begin + part.num_rows]
        begin += part.num_rows
        alive = ~part.column(deleted).to_numpy(zero_copy_only=False)
        rows = part.filter(pa.array(mask & alive))
        if rows.num_rows:
            yield pa.RecordBatch.from_arrays(rows.columns[: len(schema)], schema=schema)


def _new_names(taken: Sequence[str]) -> tuple[str, str]:
    """Names of two columns that none of these columns has."""
    time, deleted = "time", "deleted"
    while {time, deleted} & {*taken}:
        time, deleted = f"{time}_", f"{deleted}_"
    return time, deleted


def _times(batch: RawBatch, rows: Rows) -> pa.Array:
    types, times = np.asarray(batch.timestamp_types), np.asarray(batch.timestamps, np.int64)
    found = np.where(types == 0, OLDEST, times)
    return pa.array(found if rows.places is None else found[rows.places])


def _deletes(rows: Rows) -> pa.Array:
    return pa.array(np.zeros(len(rows), bool)) if rows.deletes is None else rows.deletes


def _following(rows: pa.RecordBatch, offsets: np.ndarray, range_: Range) -> pa.RecordBatch:
    """Those of the rows, whose last column says if they are deletes, that a later batch shows: as if they were deletes."""
    follows = (offsets >= range_.end) & (offsets < range_.followed_to)
    found = rows.filter(pa.array(follows))
    at = found.num_columns - 1
    return found.set_column(at, found.schema.names[at], pa.array(np.ones(found.num_rows, bool)))


def _newest(
    parts: Sequence[pa.RecordBatch], keys: list[str], time: str, place: np.ndarray
) -> np.ndarray:
    """For each row whether it is the newest one of its key."""
    times = np.concatenate([part.column(time).to_numpy() for part in parts])
    order = np.lexsort((place, times))
    table = pa.Table.from_batches([part.select(keys) for part in parts]).take(pa.array(order))
    (last,) = rows_per_key(table.to_batches(), "max")
    kept = np.zeros(len(times), bool)
    kept[order[last]] = True
    return kept


def _error(taken: int, memory: int, range_: Range) -> Callable[[int], OptionError]:
    return lambda size: _too_large(taken + size, memory, range_)


def _too_large(taken: int, memory: int, range_: Range) -> OptionError:
    pieces = 2 * (range_.share.count if range_.share else 1)
    return OptionError(
        f"The table in topic {range_.topic!r} does not fit into the memory of a task, which reads all partitions "
        f"('scan.snapshot.merge-partitions'): it takes {taken / 2**20:,.0f} MB of {memory / 2**20:,.0f} MB "
        f"('scan.snapshot.memory') before partition {range_.partition}. Have it read by more tasks, each of which reads all "
        f"offsets and keeps its share of the keys: 'minPartitions' = '{pieces}'; or let a task hold more."
    )
