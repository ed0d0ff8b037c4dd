"""Whether keys lie in several partitions, as far as a task that reads several of them sees it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.formats.row_hash import row_hashes

_MOST, _LEAST_OF_EACH = 1_000_000, 10_000
"""So many rows are looked at in all, and of each partition at least: a hash of a key takes a tenth of what reading it takes."""

_WARNING = (
    "Keys lie in several partitions, as after partitions were added to a topic: the table has a row of each. With "
    "'scan.snapshot.merge-partitions' = 'true' it has one row of each key, and each task reads all partitions."
)


class SeenKeys:
    """Warns once if a key of a snapshot has rows in two partitions.

    Args:
        key_columns: The columns of the key.
        ranges: All that is read.
    """

    def __init__(self, key_columns: Sequence[str], ranges: Sequence[Range]) -> None:
        self._keys = list(key_columns)
        places = {(range_.topic, range_.partition) for range_ in ranges}
        self._most = max(_LEAST_OF_EACH, _MOST // max(1, len(places)))
        self._is_over = len(places) < 2
        self._before = np.zeros(0, np.uint64)
        self._here: list[np.ndarray] = []
        self._place: tuple[str, int] | None = None

    def look(self, range_: Range, rows: pa.RecordBatch) -> None:
        """Looks at rows of a range."""
        if self._is_over:
            return
        place = (range_.topic, range_.partition)
        if place != self._place:
            self._before = np.sort(np.concatenate([self._before, *self._here]))
            self._here, self._place = [], place
        looked_at = sum(map(len, self._here))
        hashes = row_hashes(rows.select(self._keys).slice(0, max(0, self._most - looked_at)))
        self._here.append(hashes)
        at = np.searchsorted(self._before, hashes)
        known = at < len(self._before)
        if (self._before[at[known]] == hashes[known]).any():
            warn_once(_WARNING)
            self._is_over = True
