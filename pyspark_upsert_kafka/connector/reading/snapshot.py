"""The table as of now: the last change of each key in a partition, without the keys whose last change is a delete."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES, canonical_floats
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions

_REDUCE_AT = MAX_HELD_BYTES
"""Overwritten rows are dropped whenever this many bytes have been added."""


_ROW_BYTES = 128
"""Memory of a row beside its columns while keys are compared."""

_OUT_ROWS, _OUT_BYTES = 50_000, MAX_HELD_BYTES
"""The size of a returned batch, at most about: in rows, or in bytes where rows are large."""


_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container's limit stands: cgroups version 2 and 1."""

Which = Literal["first", "last"]


@dataclass(frozen=True)
class MemoryLimit:
    """How much memory a table may take.

    Args:
        size: Bytes.
        error: From the bytes that are needed for what was read so far, what is raised when they are more.
    """

    size: int
    error: Callable[[int], Exception]


def snapshot_bytes(options: ReadOptions) -> int:
    """How many bytes a snapshot may take: what the options say, or half of the worker's memory."""
    return options.snapshot_bytes or _worker_bytes() // 2


def _worker_bytes() -> int:
    """The memory of a worker: ``spark.executor.pyspark.memory``, or its part of the machine's or container's memory."""
    given = os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB")
    if given:
        return int(given) * 1024 * 1024
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [_limit(path) for path in _LIMITS]
    total = min([machine, *(limit for limit in limits if limit is not None)])
    return total // (os.cpu_count() or 1)


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


class Snapshot:
    """Gathers the changes of one partition in offset order and keeps the last one per key.

    Rows are reduced whenever as many bytes came as are kept, so that memory holds about twice the table
    and each row is looked at a few times at most. Batches are filtered one by one: no array ever holds
    the whole table, which would end at 2 GiB of text.

    Args:
        key_columns: The columns of the key.
        limit: What all of it may take; None = any.
        which: Which change of each key is kept.
        greatest: A column of whole numbers, of which the change that is kept gets the greatest value of its key; None = none.
    """

    def __init__(
        self,
        key_columns: Sequence[str],
        limit: MemoryLimit | None = None,
        which: Which = "last",
        greatest: str | None = None,
    ) -> None:
        self._greatest = greatest
        self._keys, self._which = list(key_columns), which
        self._limit = limit
        self._reduce_at = _REDUCE_AT if limit is None else min(_REDUCE_AT, limit.size // 2)
        self._batches: list[pa.RecordBatch] = []
        self._deletes: list[pa.BooleanArray | None] = []
        self._kept = self._pending = 0

    def add(self, rows: pa.RecordBatch, deletes: pa.BooleanArray | None) -> None:
        """Adds changes that are later than all added before.

        Raises:
            Exception: That of the limit: the table takes more.
        """
        if not rows.num_rows:
            return
        self._batches.append(rows)
        self._deletes.append(deletes)
        self._pending += _memory(rows)
        if self._pending > max(self._reduce_at, self._kept):
            self._reduce()

    def size(self) -> int:
        """Bytes that it takes, as its limit counts them.

        Raises:
            Exception: That of the limit: the table takes more.
        """
        self._reduce()
        return 2 * self._kept

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The table in offset order; each batch is released when it has been returned.

        Raises:
            Exception: That of the limit: the table takes more.
        """
        self._reduce()
        self._batches.reverse()
        return iter(self._pop, None)

    def _pop(self) -> pa.RecordBatch | None:
        return self._batches.pop() if self._batches else None

    def _reduce(self) -> None:
        if not self._batches:
            return
        self._batches = list(_joined(self._last_changes()))
        self._deletes = [None] * len(self._batches)
        self._kept, self._pending = sum(map(_memory, self._batches)), 0
        # As much again comes before the next time.
        if self._limit is not None and 2 * self._kept > self._limit.size:
            raise self._limit.error(2 * self._kept)

    def _last_changes(self) -> Iterator[pa.RecordBatch]:
        """The batches without overwritten rows; each original is released as soon as it is filtered."""
        keys = [batch.select(self._keys) for batch in self._batches]
        last = kept_rows(keys, self._which)
        if self._greatest is not None:
            self._batches = list(_with_greatest(self._batches, keys, self._greatest))
        begin = 0
        waiting = deque(zip(self._batches, self._deletes, strict=True))
        self._batches = []
        while waiting:
            batch, deletes = waiting.popleft()
            mask = pa.array(last[begin : begin + batch.num_rows])
            begin += batch.num_rows
            # All earlier changes of a deleted key are here and go too, so the delete has done its work.
            batch = batch.filter(mask if deletes is None else pc.and_not(mask, deletes))  # a copy
            yield batch


def _memory(batch: pa.RecordBatch) -> int:
    """Bytes that a batch keeps in memory: its whole buffers, even if it is a slice of them."""
    return int(batch.get_total_buffer_size() + _ROW_BYTES * batch.num_rows)


def _with_greatest(
    batches: Sequence[pa.RecordBatch], keys: Sequence[pa.RecordBatch], column: str
) -> Iterator[pa.RecordBatch]:
    """The rows, the last one of each key with the greatest value that the key has in a column of whole numbers."""
    values = pa.concat_arrays([batch.column(column) for batch in batches])
    rows, greatest = _grouped(keys, values, ("row", "max"), ("value", "max"))
    new = values.to_numpy().copy()
    new[rows] = greatest
    begin = 0
    for batch in batches:
        at = batch.schema.get_field_index(column)
        yield batch.set_column(at, column, pa.array(new[begin : begin + batch.num_rows]))
        begin += batch.num_rows


def kept_rows(keys: Sequence[pa.RecordBatch], which: Which = "last") -> np.ndarray:
    """For every row whether it is the last one of its key, or the first one."""
    (chosen,) = rows_per_key(keys, "max" if which == "last" else "min")
    kept = np.zeros(sum(batch.num_rows for batch in keys), dtype=bool)
    kept[chosen] = True
    return kept


def rows_per_key(keys: Sequence[pa.RecordBatch], *which: Literal["min", "max"]) -> list[np.ndarray]:
    """For every key the number of its first row (``min``), or of its last one (``max``)."""
    return _grouped(keys, None, *(("row", each) for each in which))


def _grouped(
    keys: Sequence[pa.RecordBatch], values: pa.Array | None, *aggregates: tuple[str, str]
) -> list[np.ndarray]:
    """For every key the aggregates of the numbers of its rows, or of their values."""
    table = pa.Table.from_batches(keys)
    # Arrow groups by bits, which differ among floats that are equal as keys.
    columns = [canonical_floats(column) for column in table.columns]
    # Named by their place: a key column may have any name, that of an aggregate too.
    names = [str(at) for at in range(len(columns))]
    rows = pa.chunked_array([pa.array(np.arange(table.num_rows))])
    grouped = pa.table(
        [*columns, rows, rows if values is None else pa.chunked_array([values])],
        [*names, "row", "value"],
    ).group_by(names, use_threads=False)
    found = grouped.aggregate(list(aggregates))
    return [found.column(f"{column}_{each}").to_numpy() for column, each in aggregates]


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches: filtering leaves small ones."""
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if small and (rows + batch.num_rows > _OUT_ROWS or size + batch.nbytes > _OUT_BYTES):
            yield _one(small)
            small, rows, size = [], 0, 0
        if batch.num_rows:
            small.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
    if small:
        yield _one(small)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch; together they are so small that no array of text needs a second chunk."""
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
