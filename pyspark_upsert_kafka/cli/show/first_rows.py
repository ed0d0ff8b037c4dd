"""The first rows of a table by its key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.cli.show.arguments import ALL

_CUT_AT = 100_000
"""The number of rows at which those beyond the limit are dropped."""

_CUT_AT_BYTES = 64 * 1024 * 1024
"""The memory at which they are dropped, too: a column of text holds less than 2 GiB."""


class FirstRows:
    """Gathers rows and keeps those that come first by their key.

    Args:
        key: The columns of the key.
        limit: How many rows at most, or ALL.
    """

    def __init__(self, key: Sequence[str], limit: int) -> None:
        self._order = [(str(at), "ascending") for at in range(len(key))]
        self._key = list(key)
        self.limit = limit
        self._batches: list[pa.RecordBatch] = []
        self._kept = 0
        self._bytes = self._kept_bytes = 0
        self.count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows."""
        self._batches.append(rows)
        self._kept += rows.num_rows
        self._bytes += rows.nbytes
        self.count += rows.num_rows
        if self.limit != ALL and (
            self._kept > _CUT_AT + self.limit or self._bytes > _CUT_AT_BYTES + self._kept_bytes
        ):
            self._cut()

    def rows(self) -> list[pa.RecordBatch]:
        """The first rows, in the order of their keys."""
        if self._batches:
            self._cut()
        return self._batches

    def _cut(self) -> None:
        table = pa.Table.from_batches(self._batches)
        # Named by their place: a key column may have any name.
        keys = table.select(self._key).rename_columns([name for name, _ in self._order])
        order = pc.sort_indices(keys, sort_keys=self._order)
        first = order if self.limit == ALL else order[: self.limit]
        self._batches = list(_taken(self._batches, first.cast("int64").to_numpy()))
        self._kept = len(first)
        self._bytes = self._kept_bytes = sum(rows.nbytes for rows in self._batches)


def _taken(batches: Sequence[pa.RecordBatch], places: np.ndarray) -> Iterator[pa.RecordBatch]:
    """The rows at these places of all batches, in this order.

    Arrow's own ``take`` puts all batches into one first, and a column of text holds less than 2 GiB.
    """
    begins = np.cumsum([0, *(batch.num_rows for batch in batches)])
    size = sum(batch.nbytes for batch in batches)
    at_once = max(1, _CUT_AT_BYTES * int(begins[-1]) // max(1, size))
    for at in range(0, len(places), at_once):
        wanted = places[at : at + at_once]
        ordered = np.sort(wanted)
        ends = np.searchsorted(ordered, begins)
        parts = [
            batch.take(pa.array(ordered[first:end] - begin))
            for batch, begin, first, end in zip(batches, begins, ends, ends[1:], strict=False)
            if first < end
        ]
        together = pa.Table.from_batches(parts).combine_chunks()
        yield from together.take(pa.array(np.searchsorted(ordered, wanted))).to_batches()
