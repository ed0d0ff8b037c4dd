"""Arrow columns as Spark's JVM makes them: what stands under a NULL is NULL too, NOT NULL or not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa


def spark_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The column that holds these values: dicts for structs, lists of pairs for maps."""
    count, present = len(values), [value is not None for value in values]
    bits, nulls = pa.array(present, pa.bool_()).buffers()[1], present.count(False)
    if pa.types.is_struct(kind):
        children = [
            spark_array([value and value[field.name] for value in values], field.type)
            for field in kind
        ]
        return pa.Array.from_buffers(kind, count, [bits], nulls, children=children)
    if not pa.types.is_nested(kind):
        return pa.array(values, kind)
    inside = list(chain.from_iterable(value or () for value in values))
    ends = accumulate((len(value or ()) for value in values), initial=0)
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    if pa.types.is_map(kind):
        inside = [{"key": key, "value": value} for key, value in inside]
    entries = spark_array(inside, kind.field(0).type)
    return pa.Array.from_buffers(kind, count, [bits, offsets], nulls, children=[entries])
