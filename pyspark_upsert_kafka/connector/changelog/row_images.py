"""Upserts and deletes become changes of whole rows, a table of last rows at a time; which rows are equal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.connector.changelog.changelog_columns import PUT_ASIDE, ChangeColumns
from pyspark_upsert_kafka.connector.changelog.last_changes import (
    OLDEST,
    RowsByKey,
    newer_changes,
    rows_by_key,
    several_partitions,
)
from pyspark_upsert_kafka.core.arrow import polars_key
from pyspark_upsert_kafka.core.changes import SHOWN_KEYS, such_keys
from pyspark_upsert_kafka.core.errors import SchemaError, warn_once

if TYPE_CHECKING:
    import polars as pl

_IS_DELETE = "_change_type"
_PLACE = ("_partition", "_topic")
_KEPT = (
    pa.field("_partition", pa.int64()),
    pa.field("_timestamp", pa.int64()),
    pa.field(_IS_DELETE, pa.bool_()),
)

DELETES_ARE_KEPT_US = 24 * 60 * 60 * 1_000_000
"""How long deletes are remembered, in record timestamps: as long as Kafka's default for ``delete.retention.ms``."""

_INSERT, _PREIMAGE, _POSTIMAGE, _DELETE = range(4)
_NAMES = ("insert", "update_preimage", "update_postimage", "delete")


class Normalized(NamedTuple):
    """What changes made of the last rows, and which changes of whole rows they were."""

    last: pa.Table
    changes: pa.Table


def kept_fields(columns: ChangeColumns) -> list[pa.Field]:
    """What is kept of a key's last change beside its row: none without timestamps.

    The columns have names that no column of a row has, as they are reserved.
    """
    if columns.timestamp is None:
        return []
    topic = [] if columns.topic is None else [pa.field("_topic", pa.string())]
    return [*topic, *_KEPT]


def without_deletes(last: pa.Table, schema: pa.Schema) -> pa.Table:
    """Last rows without those that were kept because they are deleted, if nothing is kept any more."""
    if _IS_DELETE in schema.names or _IS_DELETE not in last.column_names:
        return last
    return last.filter(pc.invert(pc.fill_null(last[_IS_DELETE], False)))


def normalized(last: pa.Table, changes: pa.Table, columns: ChangeColumns) -> Normalized:
    """The last row per key after some changes, and the changes as those of whole rows.

    An upsert of a key without a row is an ``insert``, one of an equal row is ignored, any other is
    ``update_preimage`` with the row as it was and ``update_postimage`` with the new one. A delete shows the row as it
    was; one of a key without a row is ignored, and so is a change that is older than the last one. Metadata is that of the
    message that made the change.

    Args:
        last: One row per key, with the columns ``columns.row`` and `kept_fields`.
        changes: Upserts and deletes in any order, with all columns.
        columns: Which column is what.

    Raises:
        SchemaError: A change is neither an upsert nor a delete.
    """
    changes, last_times, by_key = _in_order(last, changes, columns)
    deletes = _deletes(changes, columns)
    old = last.num_rows
    names = list(columns.row)
    rows = pa.concat_tables([last.select(names), changes.select(names)]).combine_chunks()
    before, is_last = _chains(by_key)

    old_deletes = np.zeros(old, bool)
    if last_times is not None:
        old_deletes |= pc.fill_null(last[_IS_DELETE], False).to_numpy()
    is_delete = np.concatenate([old_deletes, deletes])
    if last_times is None:
        kept = rows.filter(pa.array(is_last & ~is_delete))
    else:
        counts = is_last & ~(is_delete & _is_over(last_times))
        kept = _with_kept(rows, last, changes, columns, times=last_times, is_delete=is_delete)
        kept = kept.filter(pa.array(counts))
    # Of each change, the row of its key before it, or -1.
    before = before[old:]
    before = np.where(is_delete[before], -1, before)
    return Normalized(kept, _output(changes, rows, before, deletes, columns))


def _is_over(times: np.ndarray) -> np.ndarray:
    """Which times are so long before the newest one that a delete of then is forgotten."""
    if not len(times):
        return np.zeros(0, bool)
    newest = int(times.max())
    return times < max(OLDEST, newest - DELETES_ARE_KEPT_US)


def _with_kept(  # noqa: PLR0913
    rows: pa.Table,
    last: pa.Table,
    changes: pa.Table,
    columns: ChangeColumns,
    *,
    times: np.ndarray,
    is_delete: np.ndarray,
) -> pa.Table:
    """The rows, with what is kept of the change that made each."""
    made = {"_timestamp": pa.array(times), _IS_DELETE: pa.array(is_delete)}
    for name, column in zip(_PLACE, columns.place, strict=False):
        made[name] = _joined(last[name], changes[column])
    for field in kept_fields(columns):
        rows = rows.append_column(field, made[field.name])
    return rows


def _in_order(
    last: pa.Table, changes: pa.Table, columns: ChangeColumns
) -> tuple[pa.Table, np.ndarray | None, RowsByKey]:
    """The changes that are not older than the last rows, in order; of the last rows and of these changes the times and the keys."""
    keys = list(columns.keys)
    if columns.timestamp is None:
        partition, offset = (
            changes[name].to_numpy() for name in (columns.partition, columns.offset)
        )
        order = np.lexsort((offset, partition))
        in_order = (order[1:] > order[:-1]).all()
        changes = (changes if in_order else changes.take(order)).combine_chunks()
        both = pa.concat_tables([last.select(keys), changes.select(keys)])
        return changes, None, rows_by_key(key_frame(both))
    both = pa.concat_tables([last.select(keys), changes.select(keys)])
    found = newer_changes(
        key_frame(both),
        [
            _joined(last[name], changes[column])
            for name, column in zip(_PLACE, columns.place, strict=False)
        ],
        changes[columns.offset].to_numpy(),
        np.concatenate([_micros(last["_timestamp"]), _micros(changes[columns.timestamp])]),
    )
    if len(found.in_several):
        such = both.take(pa.array(found.in_several[:SHOWN_KEYS])).to_pylist()
        detail = partial(such_keys, such, len(found.in_several))
        warn_once(several_partitions(columns, "normalize_changelog"), detail=detail)
    as_it_is = np.array_equal(found.order, np.arange(changes.num_rows))
    changes = (changes if as_it_is else changes.take(found.order)).combine_chunks()
    return changes, found.times, found.by_key


def _joined(last: pa.ChunkedArray, changes: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([*last.chunks, *changes.cast(last.type).chunks], last.type)


def _micros(timestamps: pa.ChunkedArray) -> np.ndarray:
    """Timestamps as numbers; `OLDEST` = none."""
    times: np.ndarray = pc.fill_null(timestamps.cast(pa.int64()), OLDEST).to_numpy()
    return times


def _deletes(changes: pa.Table, columns: ChangeColumns) -> np.ndarray:
    """For each change whether it is a delete; any other is an upsert."""
    kinds = changes[columns.change_type]
    deletes, upserts = (pc.equal(kinds, kind) for kind in ("delete", "upsert"))
    known = pc.fill_null(pc.or_(deletes, upserts), False)
    if not pc.all(known, min_count=0).as_py():
        at = pc.index(known, False).as_py()
        kind, partition, offset = (
            changes[name][at].as_py()
            for name in (columns.change_type, columns.partition, columns.offset)
        )
        shown = "NULL" if kind is None else repr(kind)
        raise SchemaError(
            f"normalize_changelog takes rows whose {columns.change_type!r} is 'upsert' or 'delete', and that of "
            f"partition {partition}, offset {offset} is {shown}. {PUT_ASIDE}"
        )
    return np.array(deletes.to_numpy(), dtype=bool)


def _chains(by_key: RowsByKey) -> tuple[np.ndarray, np.ndarray]:
    """For each row the one before it that has its key, or -1; and whether it is the last of its key."""
    rows, ends = by_key
    before = np.full(len(rows), -1)
    before[rows[1:]] = rows[:-1]
    is_last = np.zeros(len(rows), bool)
    if len(rows):
        before[rows[np.concatenate([[0], ends[:-1]])]] = -1
        is_last[rows[ends - 1]] = True
    return before, is_last


def key_frame(keys: pa.Table) -> pl.DataFrame:
    """Columns of a key as polars compares them, each named by its place: a column may have any name."""
    import polars as pl

    return pl.DataFrame(
        {str(at): pl.from_arrow(polars_key(column)) for at, column in enumerate(keys.columns)}
    )


def _output(
    changes: pa.Table,
    rows: pa.Table,
    before: np.ndarray,
    deletes: np.ndarray,
    columns: ChangeColumns,
) -> pa.Table:
    """The changes of whole rows, in the order of the changes that made them."""
    old, known = rows.num_rows - changes.num_rows, before >= 0
    updates = known & ~deletes
    updates[updates] = ~_unchanged(rows, before, np.flatnonzero(updates), old, columns)
    inserts = ~known & ~deletes
    parts = np.where(updates, 2, inserts | (known & deletes))
    change = np.repeat(np.arange(len(parts)), parts)
    second = np.zeros(len(change), bool)
    second[1:] = change[1:] == change[:-1]
    new = second | inserts[change]
    row = np.where(new, old + change, before[change])
    kind = np.select(
        [second, inserts[change], deletes[change]], [_POSTIMAGE, _INSERT, _DELETE], _PREIMAGE
    )
    schema = changes.schema
    names = pa.array(_NAMES, schema.field(columns.change_type).type)
    made = {columns.change_type: names.take(pa.array(kind))}
    made |= {name: rows[name].take(row) for name in columns.row}
    made |= {name: changes[name].take(change) for name in columns.metadata}
    return pa.table([made[name] for name in columns.all], schema=schema)


def _unchanged(
    rows: pa.Table, before: np.ndarray, at: np.ndarray, old: int, columns: ChangeColumns
) -> np.ndarray:
    """Of the changes at these places, which leave the row as it was."""
    same = np.ones(len(at), bool)
    earlier, later = pa.array(before[at]), pa.array(old + at)
    for name in columns.row:
        if name not in columns.keys:
            column = rows[name]
            same &= equal_values(_array(column.take(earlier)), _array(column.take(later)))
    return same


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def equal_values(left: pa.Array, right: pa.Array) -> np.ndarray:
    """For each place whether both columns, of one type, have equal values there.

    NULL equals NULL, NaN equals NaN and -0.0 equals 0.0, in nested values too. Maps are equal when they
    have equal entries, in any order. Decimals are of one type, so equal ones have equal digits. VARIANTs are equal
    when their bytes are.

    >>> equal_values(pa.array([0.0, None, 1.0]), pa.array([-0.0, None, 2.0])).tolist()
    [True, True, False]
    """
    type_ = left.type
    if pa.types.is_struct(type_):
        return _equal_structs(left, right)
    if pa.types.is_map(type_) or pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _equal_lists(left, right)
    if pa.types.is_null(type_):
        return np.ones(len(left), bool)
    equal = pc.fill_null(pc.equal(left, right), False)
    if pa.types.is_floating(type_):
        both_nan = pc.and_(pc.is_nan(left), pc.is_nan(right))
        equal = pc.or_(equal, pc.fill_null(both_nan, False))
    return _bits(pc.or_(equal, pc.and_(left.is_null(), right.is_null())))


def _equal_structs(left: pa.Array, right: pa.Array) -> np.ndarray:
    equal = _bits(pc.equal(left.is_null(), right.is_null()))
    # A struct that is NULL has NULL in each field of what flatten() gives.
    for one, other in zip(left.flatten(), right.flatten(), strict=True):
        equal &= equal_values(one, other)
    return equal


def _equal_lists(left: pa.Array, right: pa.Array) -> np.ndarray:
    lengths = _lengths(left)
    equal: np.ndarray = lengths == _lengths(right)
    # What differs in length, or has no elements, needs no look into them.
    places = np.flatnonzero(equal & (lengths > 0))
    if not len(places):
        return equal
    at = pa.array(places)
    left, right = left.take(at), right.take(at)
    of_list = np.repeat(np.arange(len(places)), lengths[places])
    if pa.types.is_map(left.type):
        (key, item), (other_key, other_item) = (_entries(side, of_list) for side in (left, right))
        same = equal_values(key, other_key) & equal_values(item, other_item)
    else:
        same = equal_values(left.flatten(), right.flatten())
    equal[places[of_list[~same]]] = False
    return equal


def _lengths(lists: pa.Array) -> np.ndarray:
    """How many elements each list has; -1 where it is NULL."""
    lengths: np.ndarray = np.diff(lists.offsets.to_numpy())
    lengths[_bits(lists.is_null())] = -1
    return lengths


def _entries(maps: pa.MapArray, of_map: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Keys and values of maps that follow one another, those of a map ordered by key."""
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "item"])
    begin = maps.offsets[0].as_py()
    entries = entries.slice(begin, len(of_map))
    key, item = entries.flatten()
    if pa.types.is_nested(key.type):
        return key, item  # cannot be sorted: equal only when they are in one order
    ordered = pa.table([pa.array(of_map), key], ["map", "key"])
    order = pc.sort_indices(ordered, [("map", "ascending"), ("key", "ascending")])
    return key.take(order), item.take(order)


def _bits(mask: pa.BooleanArray) -> np.ndarray:
    return np.array(mask.to_numpy(zero_copy_only=False), dtype=bool)
