"""Record batches, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.codec import Decoded


def batch_of(columns: Sequence[Any], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """A batch of ``count`` rows, which keeps its rows even when it has no columns."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def merge_by_position(parts: Sequence[tuple[np.ndarray, Decoded]]) -> Decoded:
    """Puts the results of parts of a batch together, as if all messages had been decoded at once.

    Args:
        parts: The positions of a part's messages in the batch, in order, and their result; at least one part.
    """
    errors = {int(at[i]): why for at, part in parts for i, why in part.errors.items()}
    skipped = frozenset(int(at[i]) for at, part in parts for i in part.skipped)
    positions = [np.delete(at, [*part.errors, *part.skipped]) for at, part in parts]
    return Decoded(_in_order(positions, [part.rows for _, part in parts]), errors, skipped)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of batches, one after another; at least one batch."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(parts) for parts in zip(*batches, strict=True)]
    return batch_of(columns, batches[0].schema, sum(batch.num_rows for batch in batches))


def _in_order(positions: Sequence[np.ndarray], batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    filled = [batch for batch in batches if batch.num_rows] or batches[:1]
    if len(filled) == 1:
        return filled[0]
    batch, all_positions = joined(filled), np.concatenate(positions)
    if not (all_positions[1:] < all_positions[:-1]).any():
        return batch
    order = pa.array(np.argsort(all_positions))
    columns = [column.take(order) for column in batch.columns]
    return batch_of(columns, batch.schema, len(all_positions))
