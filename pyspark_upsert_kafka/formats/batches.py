"""Record batches: put together, and in exactly the Arrow types that Spark demands.

Spark compares every batch with the table's schema, the nullability of nested fields included. A
parser gives nullable everything; the type is then laid over the array, which is only allowed when
no null stands where the schema says NOT NULL.

Nested arrays are made anew of their own buffers: Arrow's cast of a map refuses a null under NOT NULL even
where the struct around it is null, and so has no such field. Spark's own columns look like that.

``pyarrow.compute`` takes long to import: that is done when rows are looked at, not when a query is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

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


def rows_at(rows: pa.RecordBatch, index: pa.Array) -> pa.RecordBatch:
    """The rows at some places; where the place is NULL, a row that is NULL in all columns."""
    return batch_of([column.take(index) for column in rows.columns], rows.schema, len(index))


def with_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array in exactly the wanted type: names and nullability of nested fields too.

    Raises:
        ArrowInvalid: A value has no room in the type of its leaf.
    """
    if pa.types.is_struct(wanted):
        children = [with_type(array.field(at), field.type) for at, field in enumerate(wanted)]
        return pa.Array.from_buffers(wanted, len(array), [_validity(array)], children=children)
    if pa.types.is_list(wanted):
        return _around(array, wanted, with_type(array.values, wanted.value_type))
    if pa.types.is_map(wanted):
        return _around(array, wanted, with_type(array.values, wanted.field(0).type))
    return array if array.type == wanted else array.cast(wanted)


def as_lists(maps: pa.MapArray) -> pa.ListArray:
    """Maps as lists of their entries, which are structs of a key and a value; nothing is copied."""
    return _around(maps, pa.list_(maps.type.field(0)), maps.values)


def _validity(array: pa.Array) -> pa.Buffer | None:
    """The bits of what is not null; those of a slice may begin within a byte, these do not."""
    if not array.null_count:
        return None
    return pa.array(array.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]


def _around(lists: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Other values in the places of those that some lists or maps hold."""
    own = lists.buffers()[:2]
    return pa.Array.from_buffers(kind, len(lists), own, offset=lists.offset, children=[values])


def rows_lacking(array: pa.Array, field: pa.Field) -> dict[int, str]:
    """Rows with a null where the field or one inside it is NOT NULL, each with that field's path.

    A null under a null parent is not one: there is no such field in that row.
    """
    if not demands_values(field):
        return {}
    if not field.nullable and array.null_count:
        return dict.fromkeys(_positions(array.is_null()), field.name)
    found: dict[int, str] = {}
    for rows, child, child_field in _children(array, field.type):
        for at, path in rows_lacking(child, child_field).items():
            found.setdefault(rows[at], f"{field.name}.{path}")
    return found


def demands_values(field: pa.Field) -> bool:
    """Whether the field or one inside it is NOT NULL."""
    return not field.nullable or any(
        demands_values(field.type.field(i)) for i in range(field.type.num_fields)
    )


def _children(array: pa.Array, wanted: pa.DataType) -> list[tuple[list[int], pa.Array, pa.Field]]:
    """Values inside the array's own values: the row each belongs to, the values, their field."""
    if pa.types.is_map(wanted):
        entries = wanted.field(0)
        return _children(as_lists(array), pa.list_(entries))
    if pa.types.is_list(wanted):
        import pyarrow.compute as pc

        rows = pc.list_parent_indices(array).to_pylist()
        return [(rows, array.flatten(), wanted.value_field)]
    if pa.types.is_struct(wanted):
        valid = array.is_valid()
        rows = _positions(valid)
        return [
            (rows, array.field(i).filter(valid), wanted.field(i)) for i in range(wanted.num_fields)
        ]
    return []


def _positions(mask: pa.Array) -> list[int]:
    import pyarrow.compute as pc

    return [int(at) for at in pc.indices_nonzero(mask).to_pylist()]
