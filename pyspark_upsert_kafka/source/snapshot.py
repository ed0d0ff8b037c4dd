"""The table as of now: of each key's changes in a partition the last, unless it is a delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DELETE = "__delete"
_ROW = "__row"

_REDUCE_AT = 500_000
"""So many rows are gathered before the overwritten ones among them are dropped."""

_OUT_ROWS = 50_000


class Snapshot:
    """Gathers the changes of one partition in offset order and keeps the last one per key.

    Rows are reduced whenever as many came as are kept, so that memory holds about twice the table and
    each row is looked at a few times at most. Batches are filtered one by one: no array ever holds
    the whole table, which would end at 2 GiB of text.
    """

    def __init__(self, key_columns: Sequence[str]) -> None:
        self._keys = list(key_columns)
        self._batches: list[pa.RecordBatch] = []
        self._reduced = 0
        self._pending = 0

    def add(self, rows: pa.RecordBatch, deletes: pa.BooleanArray | None) -> None:
        """Takes changes later than all before."""
        flags = pa.repeat(pa.scalar(False), rows.num_rows) if deletes is None else deletes
        self._batches.append(rows.append_column(_DELETE, flags))
        self._pending += rows.num_rows
        if self._pending > max(_REDUCE_AT, self._reduced):
            self._reduce()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The table, in batches that are let go of once they are given out."""
        self._reduce()
        while self._batches:
            yield self._batches.pop().drop_columns([_DELETE])

    def _reduce(self) -> None:
        if not self._batches:
            return
        last = _last_per_key(self._batches, self._keys)
        kept: list[pa.RecordBatch] = []
        begin = 0
        for at, batch in enumerate(self._batches):
            mask = pa.array(last[begin : begin + batch.num_rows])
            begin += batch.num_rows
            # All earlier changes of a deleted key are here and go too, so the delete has done its work.
            kept.append(batch.filter(pc.and_not(mask, batch.column(_DELETE))))
            self._batches[at] = kept[-1].slice(0, 0)
        self._batches = _joined(kept)
        self._reduced, self._pending = sum(batch.num_rows for batch in self._batches), 0


def _last_per_key(batches: Sequence[pa.RecordBatch], keys: Sequence[str]) -> np.ndarray:
    """For every row whether it is the last one of its key."""
    count = sum(batch.num_rows for batch in batches)
    table = pa.Table.from_batches([batch.select(keys) for batch in batches])
    columns = {name: _comparable(table.column(name)) for name in keys}
    columns[_ROW] = pa.chunked_array([pa.array(np.arange(count))])
    grouped = pa.table(columns).group_by(list(keys), use_threads=False)
    last = np.zeros(count, dtype=bool)
    last[grouped.aggregate([(_ROW, "max")]).column(f"{_ROW}_max").to_numpy()] = True
    return last


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow groups by bits, where -0.0 differs from 0.0; as keys they are equal."""
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


def _joined(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in batches of a good size: filtering leaves crumbs."""
    joined: list[pa.RecordBatch] = []
    crumbs: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if size + batch.num_rows > _OUT_ROWS and crumbs:
            joined.append(_one(crumbs))
            crumbs, size = [], 0
        if batch.num_rows:
            crumbs.append(batch)
            size += batch.num_rows
    return [*joined, _one(crumbs)] if crumbs else joined


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
