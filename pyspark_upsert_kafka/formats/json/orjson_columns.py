"""orjson: it parses messages one by one, and columns are built of the values.

It is strict about what JSON is, and of duplicate names it keeps the last, as the row path does. What it loses is
refused: here the sign of ``-0``, elsewhere the digits of what is no 64-bit integer. It has maps, which
``pyarrow.json`` has not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, DoubleType, MapType, StructField, StructType

from pyspark_upsert_kafka.formats.byte_order_mark import BYTE_ORDER_MARK
from pyspark_upsert_kafka.formats.decoding import MOST_LEFT, PROBE, Mask
from pyspark_upsert_kafka.formats.json.control_characters import with_escapes
from pyspark_upsert_kafka.formats.json.document import DEEPEST, Number, too_deep
from pyspark_upsert_kafka.formats.json.leaf_readers import Leaf, leaf
from pyspark_upsert_kafka.formats.json.row_path import field_reader
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.parsed_columns import Column

_MINUS_ZERO = re.compile(rb"[:,\[][ \t\r\n]*-0(?![.0-9eE])")


Columns = Callable[[Sequence[bytes]], "tuple[list[pa.Array], Mask]"]
"""Messages to some columns of their rows, and the mask of those that need the row path; ValueError = the batch is refused."""

BuildColumn = Callable[[list[Any]], pa.Array]
"""Parsed values, or None for null, to a column; ValueError = the batch needs the row path."""


def documents(
    messages: Sequence[bytes], names: Sequence[str], *, all_names: bool = False
) -> tuple[list[Sequence[Any]], Mask]:
    """The values of some fields of each message; and the mask of messages that need the row path, whose values have no meaning.

    Args:
        messages: The messages.
        names: The fields.
        all_names: Whether a message that lacks one of them needs the row path.

    Raises:
        ValueError: So few of the first messages can be read that it would not pay.
    """
    rows, left = _parsed(messages, names, all_names=all_names)
    escaped = with_escapes(messages) if left else None
    if escaped is not None:
        rows, left = _parsed(escaped, names, all_names=all_names)
    if len(rows) < len(messages):
        raise ValueError("few messages can be read")
    mask = np.zeros(len(rows), np.bool_)
    mask[left] = True
    if left:
        stand_in = next((row for row in rows if row is not None), (None,) * len(names))
        rows = [stand_in if row is None else row for row in rows]
    return [*zip(*rows, strict=True)], mask


def _parsed(
    messages: Sequence[bytes], names: Sequence[str], *, all_names: bool
) -> tuple[list[Any], list[int]]:
    """Some fields of each message that orjson reads, None for the others, and which these are; less where they are many."""
    rows: list[Any] = []
    left: list[int] = []
    for at, message in enumerate(messages):
        try:
            values = document(message)
        except ValueError:
            is_left = True
        else:
            is_left = all_names and not values.keys() >= {*names}
        if is_left:
            left.append(at)
            rows.append(None)
            if len(left) > MOST_LEFT * PROBE and at < PROBE:
                break
        else:
            # Only what is needed is kept: the collector would walk through all documents over and over.
            rows.append(tuple(map(values.get, names)))
    return rows, left


def orjson_columns(columns: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """Compiles the reading of some columns, each of which can be built of orjson's values."""
    readers = [orjson_column(c, field, settings) for c, field in zip(columns, target, strict=True)]
    names = [field.name for field in target]

    def read(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        values, left = documents(messages, names)
        return [reader.read(each, left) for reader, each in zip(readers, values, strict=True)], left

    return read


def orjson_column(column: StructField, field: pa.Field, settings: Settings) -> Column:
    """How a column is read of orjson's values."""
    read = field_reader(column.dataType, settings, column.name, nullable=column.nullable)
    # The digits of a float are those of its column, or they are lost.
    number = as_float if isinstance(column.dataType, DoubleType) else as_written
    # A column built of values does not tell where a field in it is missing.
    nested = settings.fail_on_missing_field and pa.types.is_nested(field.type)
    build = None if nested else column_builder(column.dataType, settings)
    return Column(field, _as_it_is if build is None else _of_list(build), lambda v: read(number(v)))


def _as_it_is(values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    raise ValueError("the digits of numbers are lost")


def _of_list(build: BuildColumn) -> Callable[[Any], pa.Array]:
    return lambda values: build(list(values))


def document(message: bytes) -> dict[str, Any]:
    """The object that a message is; ValueError = it needs the row path."""
    if not message.startswith(b"{"):
        message = message.removeprefix(BYTE_ORDER_MARK)
        if not message.startswith(b"{"):
            raise ValueError("the message is not plainly an object")
    if len(message) > 2 * DEEPEST and too_deep(message):
        raise ValueError("the message is nested too deep")
    if b"-0" in message and _MINUS_ZERO.search(message):
        raise ValueError("a number may be -0")
    read: dict[str, Any] = orjson.loads(message)
    return read


def as_written(value: Any) -> Any:
    """A parsed value with its numbers as they stood in the message; ValueError = that is not known."""
    kind = type(value)
    if kind is int:
        return Number(value)
    if kind is list:
        return [as_written(item) for item in value]
    if kind is dict:
        return {name: as_written(item) for name, item in value.items()}
    if kind is float:
        raise ValueError("the digits of a number are lost")
    return value


def as_float(value: Any) -> Any:
    """The same for a column of 64-bit floats: these digits are read as the same number."""
    return Number(repr(value)) if type(value) is float else as_written(value)


def column_builder(kind: DataType, settings: Settings) -> BuildColumn | None:
    """Compiles what makes a column of this type of parsed values; None = orjson loses what it needs."""
    if isinstance(kind, MapType):
        return _inner(kind.valueType, settings, _map)
    if isinstance(kind, ArrayType):
        return _inner(kind.elementType, settings, _list)
    if isinstance(kind, StructType):
        return _object(kind, settings)
    how = leaf(kind, settings)
    return _leaf(how) if how.from_orjson else None


def _object(columns: StructType, settings: Settings) -> BuildColumn | None:
    children = [column_builder(field.dataType, settings) for field in columns.fields]
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


def _inner(
    kind: DataType, settings: Settings, outer: Callable[[BuildColumn], BuildColumn]
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


def _leaf(how: Leaf) -> BuildColumn:
    def build(values: list[Any]) -> pa.Array:
        _only(values, how.from_orjson)
        try:
            return how.column.convert(pa.array(values, how.column.parsed))
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
