"""Changes of rows as rows of the table: upserts and deletes of its key, or images before and after each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.arrow import canonical_floats
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.cdc.row_changes import Mask, Op, RowChanges
from pyspark_upsert_kafka.formats.row_hash import equal_keys

_UPSERTS = np.array([Change.UPSERT, Change.UPSERT, Change.DELETE], np.int8)
_IMAGES = np.array([Change.INSERT, Change.UPDATE_PREIMAGE, Change.DELETE], np.int8)
"""The kind of the first row, or only one, that each `Op` gives."""


@dataclass(frozen=True)
class TableRows:
    """Rows of the table.

    Args:
        rows: The rows.
        places: The index of each row's envelope.
        kinds: The `Change` of each row.
    """

    rows: pa.RecordBatch
    places: Any
    kinds: Any


def images(changes: RowChanges, schema: pa.Schema) -> TableRows:
    """Each insert is a row, each delete the row before it, and each update both rows, in this order."""
    is_update = changes.ops == Op.UPDATE
    source, is_second = _sources(is_update)
    kinds = _IMAGES[changes.ops[source]]
    kinds[is_second] = Change.UPDATE_POSTIMAGE
    is_before = (kinds == Change.DELETE) | (kinds == Change.UPDATE_PREIMAGE)
    columns = [_chosen(changes, name, source, is_before) for name in schema.names]
    return _table_rows(changes, schema, columns, source, kinds)


def upserts(changes: RowChanges, schema: pa.Schema, key: Sequence[str]) -> TableRows:
    """Each change is an upsert of the row after it, or a delete of its key; an update of the key is both, the delete first."""
    moved = _moved(changes, key)
    source, is_second = _sources(moved)
    kinds = _UPSERTS[changes.ops[source]]
    kinds[moved[source] & ~is_second] = Change.DELETE
    deletes = kinds == Change.DELETE
    columns = [
        _chosen(changes, name, source, deletes)
        if name in key
        else _unless(changes.after.columns[name], source, deletes)
        for name in schema.names
    ]
    found = _table_rows(changes, schema, columns, source, kinds)
    several = len(changes) > 1 and (changes.places[1:] == changes.places[:-1]).any()
    return _last_of_each_key(found, key) if several else found


def _sources(is_double: Mask) -> tuple[Any, Mask]:
    """The change that each row comes from, where some give two rows; and whether it is the second of these."""
    source = np.repeat(np.arange(len(is_double)), np.where(is_double, 2, 1))
    is_second = np.zeros(len(source), np.bool_)
    is_second[1:] = source[1:] == source[:-1]
    return source, is_second


def _moved(changes: RowChanges, key: Sequence[str]) -> Mask:
    """For each change whether it is an update that changes the key; NULL in a key says nothing."""
    may = (changes.ops == Op.UPDATE) & changes.before.present
    moved = np.zeros(len(changes), np.bool_)
    if not key or not may.any():
        return moved
    known = may
    for name in key:
        old, new = changes.before.columns[name], changes.after.columns[name]
        known = known & _true(pc.and_(old.is_valid(), new.is_valid()))
        moved |= ~_true(equal_keys(old, new))
    return moved & known


def _true(mask: pa.BooleanArray) -> Mask:
    return mask.to_numpy(zero_copy_only=False)


def _chosen(changes: RowChanges, name: str, source: Any, is_before: Mask) -> pa.Array:
    """A column, for each row of the row before its change or of the row after it."""
    before, after = changes.before.columns[name], changes.after.columns[name]
    if not is_before.any():
        return _taken(after, source)
    return pa.concat_arrays([after, before]).take(pa.array(source + is_before * len(after)))


def _unless(column: pa.Array, source: Any, is_null: Mask) -> pa.Array:
    """A column, and NULL in some rows."""
    if not is_null.any():
        return _taken(column, source)
    return column.take(pa.array(source, mask=is_null))


def _taken(column: pa.Array, source: Any) -> pa.Array:
    """A column, where no row comes from a change twice: then each change has one row."""
    return column if len(source) == len(column) else column.take(pa.array(source))


def _table_rows(
    changes: RowChanges, schema: pa.Schema, columns: list[pa.Array], source: Any, kinds: Any
) -> TableRows:
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    rows = batch_of(columns, nullable, len(source))
    return TableRows(rows, changes.places[source], kinds)


def _last_of_each_key(found: TableRows, key: Sequence[str]) -> TableRows:
    """The rows without those that a later row of the same envelope overwrites."""
    names = [str(at) for at in range(len(key))]
    columns = [canonical_floats(found.rows.column(name)) for name in key]
    numbers = pa.array(np.arange(len(found.kinds)))
    rows = pa.table([*columns, pa.array(found.places), numbers], [*names, "place", "row"])
    last = rows.group_by([*names, "place"], use_threads=False).aggregate([("row", "max")])
    kept = np.sort(last.column("row_max").to_numpy())
    if len(kept) == len(found.kinds):
        return found
    return TableRows(found.rows.take(pa.array(kept)), found.places[kept], found.kinds[kept])
