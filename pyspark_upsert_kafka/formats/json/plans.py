"""What ``pyarrow.json`` parses a column as, and the way from there to the table's type.

Numbers, booleans and texts it reads itself. Dates, timestamps and binary are read as texts and then
converted as columns; inside arrays and structs too.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.base64_text import binaries
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.moments import dates

Restore = Callable[[pa.Array], pa.Array]
"""A column as it was parsed to the column that the table has; ValueError = refused."""


def plan(kind: pa.DataType, settings: Settings) -> tuple[pa.DataType, Restore]:
    """The type to parse a column as, and the way from there to the type wanted."""
    if pa.types.is_struct(kind):
        return _struct_plan(kind, settings)
    if pa.types.is_list(kind):
        return _list_plan(kind, settings)
    if pa.types.is_timestamp(kind):
        spelling = settings.timestamps if kind.tz else settings.local_timestamps
        return pa.string(), spelling.column
    if pa.types.is_floating(kind):
        return kind, _finite
    if pa.types.is_decimal(kind):
        return _wide(kind), lambda array: array.cast(kind)
    return _LEAVES.get(kind, (kind, _as_is))


def _struct_plan(kind: pa.StructType, settings: Settings) -> tuple[pa.DataType, Restore]:
    plans = [plan(field.type, settings) for field in kind]
    parsed = pa.struct([(f.name, p) for f, (p, _) in zip(kind, plans, strict=True)])

    def restore(array: pa.Array) -> pa.Array:
        children = [change(array.field(i)) for i, (_, change) in enumerate(plans)]
        fields = [pa.field(f.name, c.type) for f, c in zip(kind, children, strict=True)]
        return _rebuilt(array, pa.struct(fields), own_buffers=1, children=children)

    return parsed, restore


def _list_plan(kind: pa.ListType, settings: Settings) -> tuple[pa.DataType, Restore]:
    parsed, change = plan(kind.value_type, settings)

    def restore(array: pa.Array) -> pa.Array:
        values = change(array.values)
        return _rebuilt(array, pa.list_(values.type), own_buffers=2, children=[values])

    return pa.list_(parsed), restore


def _rebuilt(
    array: pa.Array, kind: pa.DataType, own_buffers: int, children: list[pa.Array]
) -> pa.Array:
    own = array.buffers()[:own_buffers]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, children=children)


def _as_is(array: pa.Array) -> pa.Array:
    return array


def _finite(array: pa.Array) -> pa.Array:
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is out of range")
    return array


def _wide(kind: pa.Decimal128Type) -> pa.DataType:
    """Room for 38 digits as they stand and 38 more that the scale adds.

    The parser counts the digits it is given, and then scales without a check: in 128 bits 11 would
    become a wrong DECIMAL(38,38). The cast back to 128 bits refuses what does not fit.
    """
    return pa.decimal256(38, kind.scale)


def _interval(array: pa.Array) -> pa.Array:
    return pc.multiply_checked(array, 1_000).cast(pa.duration("us"))


_LEAVES = {
    pa.date32(): (pa.string(), dates),
    pa.binary(): (pa.string(), binaries),
    pa.duration("us"): (pa.int64(), _interval),
}
