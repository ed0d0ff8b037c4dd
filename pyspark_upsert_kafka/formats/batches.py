"""Record batches, and what was decoded of parts of a batch, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.codec import Decoded

Indexes = Any
"""Rising places among messages, as a list or a numpy array."""

# Where one value of so many is another one, slices of the others are put together faster than each value by its place.
_FEW = 64


def batch_of(columns: Sequence[Any], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """A batch of ``count`` rows, which keeps its rows even when it has no columns."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


def nulls(schema: pa.Schema, count: int) -> pa.RecordBatch:
    """Rows that are NULL in all columns, as those of messages that cannot be read."""
    return batch_of([pa.nulls(count, field.type) for field in schema], schema, count)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of batches, one after another; at least one batch."""
    filled = [batch for batch in batches if batch.num_rows] or batches[:1]
    if len(filled) == 1:
        return filled[0]
    columns = [pa.concat_arrays(parts) for parts in zip(*filled, strict=True)]
    return batch_of(columns, filled[0].schema, sum(batch.num_rows for batch in filled))


def merge_by_position(parts: Sequence[tuple[np.ndarray, Decoded]]) -> Decoded:
    """Puts the results of parts of a batch together, as if all messages had been decoded at once.

    Args:
        parts: The positions of a part's messages in the batch, in order, and their result; at least one part.
    """
    errors = {int(at[i]): why for at, part in parts for i, why in part.errors.items()}
    skipped = frozenset(int(at[i]) for at, part in parts for i in part.skipped)
    rows, positions = (
        joined([part.rows for _, part in parts]),
        np.concatenate([at for at, _ in parts]),
    )
    if (positions[1:] < positions[:-1]).any():
        rows = rows_at(rows, pa.array(np.argsort(positions)))
    return Decoded(rows, errors, skipped)


def replaced(decoded: Decoded, places: Indexes, others: Decoded) -> Decoded:
    """What was decoded, with other results for the messages at some places; at least one."""
    columns = zip(decoded.rows.columns, others.rows.columns, strict=True)
    found = [with_others(column, places, other) for column, other in columns]
    rows = batch_of(found, decoded.rows.schema, decoded.rows.num_rows)
    gone = {*np.asarray(places).tolist()}
    errors = {at: why for at, why in decoded.errors.items() if at not in gone}
    errors |= {int(places[i]): why for i, why in others.errors.items()}
    skipped = decoded.skipped.difference(gone).union(int(places[i]) for i in others.skipped)
    return Decoded(rows, errors, skipped)


def with_others(values: pa.Array, places: Indexes, others: pa.Array) -> pa.Array:
    """Values, with others at some places, which rise; at least one."""
    if len(places) * _FEW > len(values):
        index = np.arange(len(values))
        index[places] = len(values) + np.arange(len(places))
        return pa.concat_arrays([values, others]).take(pa.array(index))
    parts, begin = [], 0
    for at, place in enumerate(np.asarray(places).tolist()):
        parts += [values[begin:place], others[at : at + 1]]
        begin = place + 1
    return pa.concat_arrays([*parts, values[begin:]])


def without(decoded: Decoded, bad: Mapping[int, str], *, skip: bool = False) -> Decoded:
    """What was decoded, but for some messages that are bad after all.

    Args:
        decoded: What was decoded.
        bad: The index of each of them, and why.
        skip: Whether they are skipped instead, for a format's ``ignore-parse-errors``.
    """
    if not bad:
        return decoded
    index = np.arange(decoded.rows.num_rows)
    rows = rows_at(decoded.rows, pa.array(index, mask=np.isin(index, [*bad])))
    if skip:
        return Decoded(rows, decoded.errors, decoded.skipped.union(bad))
    return Decoded(rows, {**decoded.errors, **bad}, decoded.skipped)


def rows_at(rows: pa.RecordBatch, index: pa.Array) -> pa.RecordBatch:
    """The rows at some places; where the place is NULL, a row that is NULL in all columns."""
    return batch_of([column.take(index) for column in rows.columns], rows.schema, len(index))
