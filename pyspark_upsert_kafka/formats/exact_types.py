"""Arrays in exactly the Arrow type that Spark demands, and the rows that lack a value which that type demands.

Spark compares every batch with the table's schema, the nullability of nested fields included. A
parser gives nullable everything; the type is then laid over the array, which is only allowed when
no null stands where the schema says NOT NULL.

Nested arrays are made anew of their own buffers: Arrow's cast of a map refuses a null under NOT NULL even
where the struct around it is null, and so has no such field. Spark's own columns look like that.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


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
    return [int(at) for at in pc.indices_nonzero(mask).to_pylist()]
