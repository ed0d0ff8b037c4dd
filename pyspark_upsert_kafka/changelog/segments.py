"""Segments of a bucket: a small micro-batch reads and writes only the rows beside those that change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.changelog.packing import by_number
from pyspark_upsert_kafka.formats.row_hash import row_hashes

SEGMENT_BYTES = 128 * 1024
"""Bytes of rows that a segment has after the number of segments has grown, at least; it grows at more than twice as many."""

MIN_ROWS = 64
"""Rows of a segment after that, at least: a segment with one large row is no reason for more segments."""


def segment_numbers(keys: pa.Table, count: int) -> np.ndarray:
    """For each key the segment of its row.

    Args:
        keys: The columns of the key; equal keys are of one segment, in each version of this package.
        count: The number of segments, a power of two.
    """
    # A table without rows has no chunks, of which pyarrow 20 makes no struct array.
    if count == 1 or not keys.num_rows:
        return np.zeros(keys.num_rows, np.int64)
    batch = pa.RecordBatch.from_struct_array(
        keys.combine_chunks().to_struct_array().combine_chunks()
    )
    return (row_hashes(batch) % np.uint64(count)).astype(np.int64)


def segment_count(now: int, looked_at: int, rows: pa.Table) -> int:
    """The number of segments that a bucket should have.

    Args:
        now: How many it has, a power of two.
        looked_at: How many of them the rows fill; at least one.
        rows: The rows of these segments.

    >>> rows = pa.table({"text": ["x" * 1000] * 1000})
    >>> segment_count(4, looked_at=1, rows=rows), segment_count(4, looked_at=4, rows=rows)
    (16, 4)
    """
    size, most = rows.nbytes // looked_at, rows.num_rows // looked_at
    while size > 2 * SEGMENT_BYTES and most > 2 * MIN_ROWS:
        now, size, most = now * 2, size // 2, most // 2
    return now


def split(rows: pa.Table, keys: list[str], count: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each segment that has any."""
    if count > 1:
        yield from by_number(rows, segment_numbers(rows.select(keys), count))
    elif rows.num_rows:
        yield 0, rows
