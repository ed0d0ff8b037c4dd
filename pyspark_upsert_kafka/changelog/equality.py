"""Which rows are equal: as Spark's ``<=>`` has it, and for types that Spark does not compare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def equal_values(left: pa.Array, right: pa.Array) -> np.ndarray:
    """For each place whether both columns, of one type, have equal values there.

    NULL equals NULL, NaN equals NaN and -0.0 equals 0.0, in nested values too. Maps are equal when they
    have equal entries, in any order. Decimals are of one type, so equal ones have equal digits. VARIANTs are equal
    when their bytes are.

    >>> equal_values(pa.array([0.0, None, 1.0]), pa.array([-0.0, None, 2.0])).tolist()
    [True, True, False]
    """
    kind = left.type
    if pa.types.is_struct(kind):
        return _equal_structs(left, right)
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(left, right)
    if pa.types.is_null(kind):
        return np.ones(len(left), bool)
    equal = pc.fill_null(pc.equal(left, right), False)
    if pa.types.is_floating(kind):
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
