"""Columns built of values of Python, as a library parses them message by message: objects, lists, and what has no parts.

orjson gives such values of JSON. A format whose messages another library parses, as msgpack or CBOR, has its columns from
here too: it says how a type without parts is read.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.formats.parsed_columns import Conversion

BuildColumn = Callable[[list[Any]], pa.Array]
"""Parsed values, or None for null, to a column; ValueError = the batch needs the row path."""

_Leaves = Callable[[DataType], "BuildColumn | None"]
"""Compiles the builder of a type without parts; None = the values have lost what it needs."""


def leaf_builder(types: frozenset[type], conversion: Conversion) -> BuildColumn:
    """Compiles what makes a column of values without parts.

    Args:
        types: The types of Python that the values may have.
        conversion: The type of Arrow that holds them, and how that becomes the column.
    """

    def build(values: list[Any]) -> pa.Array:
        _only(values, types)
        try:
            return conversion.convert(pa.array(values, conversion.parsed))
        except OverflowError as error:
            raise ValueError("a number is out of range") from error

    return build


def column_builder(kind: DataType, leaves: _Leaves) -> BuildColumn | None:
    """Compiles what makes a column of this type of parsed values; None = a type within it has no builder."""
    if isinstance(kind, StructType):
        return _object(kind, leaves)
    if isinstance(kind, MapType):
        items = column_builder(kind.valueType, leaves)
        return items and _map(items)
    if isinstance(kind, ArrayType):
        items = column_builder(kind.elementType, leaves)
        return items and _list(items)
    return leaves(kind)


def _object(columns: StructType, leaves: _Leaves) -> BuildColumn | None:
    children = [column_builder(field.dataType, leaves) for field in columns.fields]
    ready = [child for child in children if child is not None]
    if len(ready) < len(children):
        return None
    names = columns.names

    def build(values: list[Any]) -> pa.Array:
        _only(values, {dict})
        null = [value is None for value in values]
        columns = [
            child([None if value is None else value.get(name) for value in values])
            for name, child in zip(names, ready, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, names, mask=pa.array(null, pa.bool_()))

    return build


def _map(items: BuildColumn) -> BuildColumn:
    def build(values: list[Any]) -> pa.Array:
        _only(values, {dict})
        present = [value for value in values if value]
        keys = pa.array(chain.from_iterable(present), pa.string())
        inner = items(list(chain.from_iterable(value.values() for value in present)))
        return pa.MapArray.from_arrays(_offsets(values), keys, inner)

    return build


def _list(items: BuildColumn) -> BuildColumn:
    def build(values: list[Any]) -> pa.Array:
        _only(values, {list})
        inner = items(list(chain.from_iterable(value for value in values if value)))
        return pa.ListArray.from_arrays(_offsets(values), inner)

    return build


def _only(values: list[Any], allowed: frozenset[type] | set[type]) -> None:
    if not {*map(type, values)} <= {*allowed, type(None)}:
        raise ValueError("a value is of another kind")


def _offsets(values: list[Any]) -> pa.Array:
    """Where each list or map begins; a null one begins nowhere."""
    ends = list(accumulate(len(value) if value else 0 for value in values))
    starts = [None if v is None else start for v, start in zip(values, [0, *ends], strict=False)]
    return pa.array([*starts, ends[-1] if ends else 0], pa.int32())
