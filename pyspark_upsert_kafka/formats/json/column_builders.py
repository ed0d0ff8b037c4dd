"""Columns built of values that orjson parsed: ``pyarrow.json`` has no maps, and refuses whole batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from pyspark_upsert_kafka.formats.json.conversions import conversion
from pyspark_upsert_kafka.formats.json.settings import Settings

BuildColumn = Callable[[list[Any]], pa.Array]
"""Parsed values, or None for null, to a column; ValueError = the batch needs the row path."""

_TEXT = frozenset({str})
_LEAVES = {
    pa.bool_(): frozenset({bool}),
    pa.float64(): frozenset({float, int}),
    pa.string(): _TEXT,
    pa.date32(): _TEXT,
    pa.binary(): _TEXT,
    **dict.fromkeys([pa.int8(), pa.int16(), pa.int32(), pa.int64()], frozenset({int})),
}
"""What orjson makes of a value that it reads without a loss, by the type of the column."""


def column_builder(kind: pa.DataType, settings: Settings) -> BuildColumn | None:
    """Compiles what makes a column of this type of parsed values; None = orjson loses what it needs."""
    if pa.types.is_map(kind):
        return _inner(kind.item_type, settings, _map)
    if pa.types.is_list(kind):
        return _inner(kind.value_type, settings, _list)
    if pa.types.is_struct(kind):
        return _object(list(kind), settings)
    allowed = _TEXT if pa.types.is_timestamp(kind) else _LEAVES.get(kind)
    return None if allowed is None else _leaf(kind, allowed, settings)


def _object(fields: Sequence[pa.Field], settings: Settings) -> BuildColumn | None:
    children = [column_builder(field.type, settings) for field in fields]
    ready = [child for child in children if child is not None]
    if len(ready) < len(fields):
        return None
    names = [field.name for field in fields]

    def build(values: list[Any]) -> pa.Array:
        _only(values, {dict})
        null = [value is None for value in values]
        columns = [
            child([None if value is None else value.get(name) for value in values])
            for name, child in zip(names, ready, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, names, mask=pa.array(null, pa.bool_()))

    return build


def _inner(
    kind: pa.DataType, settings: Settings, outer: Callable[[BuildColumn], BuildColumn]
) -> BuildColumn | None:
    items = column_builder(kind, settings)
    return None if items is None else outer(items)


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


def _leaf(kind: pa.DataType, allowed: frozenset[type], settings: Settings) -> BuildColumn:
    reading = conversion(kind, settings)

    def build(values: list[Any]) -> pa.Array:
        _only(values, allowed)
        try:
            return reading.convert(pa.array(values, reading.parsed))
        except OverflowError as error:
            raise ValueError("a number is out of range") from error

    return build


def _only(values: list[Any], allowed: frozenset[type] | set[type]) -> None:
    if not {*map(type, values)} <= {*allowed, type(None)}:
        raise ValueError("a value is of another kind")


def _offsets(values: list[Any]) -> pa.Array:
    """Where each list or map begins; a null one begins nowhere."""
    ends = list(accumulate(len(value) if value else 0 for value in values))
    starts = [None if v is None else start for v, start in zip(values, [0, *ends], strict=False)]
    return pa.array([*starts, ends[-1] if ends else 0], pa.int32())
