"""The vectorised path and the column path: what they read by ``pyarrow.json``, by orjson, or value by value.

On the vectorised path each column is read by the fastest strategy that its type allows. ``pyarrow.json`` parses all messages
together; orjson parses them one by one, and their values become columns, which holds for maps; the row path reads the values
too. On the column path each message is parsed by orjson, and then each column is read.

orjson is strict about what JSON is, and of duplicate names it keeps the last, as the row path does. What it loses is
refused: the sign of ``-0``, and the digits of what is no 64-bit integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    MapType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.decoding import MOST_LEFT, PROBE, Mask, Path, UnreadableError
from pyspark_upsert_kafka.formats.json import JsonSettings
from pyspark_upsert_kafka.formats.json.json_document import Number, plain_object
from pyspark_upsert_kafka.formats.json.pyarrow_columns import (
    Columns,
    pyarrow_columns,
    with_escapes,
)
from pyspark_upsert_kafka.formats.json.row_path import field_reader, leaf, row_reader
from pyspark_upsert_kafka.formats.parsed_columns import (
    BuildColumn,
    Column,
    column_builder,
    leaf_builder,
    read_columns,
)

_Strategy = Callable[[StructType, "list[pa.Field]", JsonSettings], Columns]
"""Compiles the reading of some columns."""


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, settings: JsonSettings
) -> Path | None:
    """Compiles the vectorised path; None when it can read no column but by the row path."""
    strategies = [_fastest_strategy(column.dataType, settings) for column in columns.fields]
    if strategies and {*strategies} == {_row_columns}:
        return None
    compiled: dict[_Strategy, Columns] = {
        strategy: strategy(
            StructType(_some(columns.fields, [each is strategy for each in strategies])),
            _some(target, [each is strategy for each in strategies]),
            settings,
        )
        # In this order: what refuses a batch at once comes first.
        for strategy in (pyarrow_columns, _orjson_columns, _row_columns)
        if strategy in strategies or (strategy is pyarrow_columns and not strategies)
    }

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        left = np.zeros(len(messages), np.bool_)
        ready: dict[_Strategy, Iterator[pa.Array]] = {}
        try:
            for strategy, of_columns in compiled.items():
                arrays, unread = of_columns(messages)
                left |= unread
                ready[strategy] = iter(arrays)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        arrays = [next(ready[strategy]) for strategy in strategies]
        return batch_of(arrays, target, len(messages)), left

    return read


def _some(fields: Iterable[Any], wanted: list[bool]) -> list[Any]:
    return [field for field, is_wanted in zip(fields, wanted, strict=True) if is_wanted]


def compile_column_path(columns: StructType, target: pa.Schema, settings: JsonSettings) -> Path:
    """Compiles the column path.

    It leaves the messages whose bytes or values are bad, and those that orjson may get wrong.
    """
    readers = [_orjson_column(c, field, settings) for c, field in zip(columns, target, strict=True)]
    with_digits, read_digits = _digit_columns(columns, target, settings)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        try:
            values, left = _parsed_fields(
                messages, target.names, all_names=settings.fail_on_missing_field
            )
            arrays, unread = read_digits(messages)
            for at, array in zip(with_digits, arrays, strict=False):
                values[at] = array
            return read_columns(readers, values, left | unread)
        except ValueError:
            return None

    return read


def _digit_columns(
    columns: StructType, target: pa.Schema, settings: JsonSettings
) -> tuple[list[int], Callable[[Sequence[bytes]], tuple[list[pa.Array], Mask]]]:
    """Which columns need all digits of their numbers, and what reads these columns.

    They are decimals and 32-bit floats: orjson's values have lost digits. What reads them is ``pyarrow.json``; where
    it refuses the batch, no column is read.
    """
    at = [
        i
        for i, column in enumerate(columns)
        if _builder(column.dataType, settings) is None
        and _fastest_strategy(column.dataType, settings) is pyarrow_columns
    ]
    if not at:
        return [], lambda _: ([], False)
    some = StructType([columns[i] for i in at])
    parse: Columns = pyarrow_columns(some, [target.field(i) for i in at], settings)

    def read(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        try:
            return parse(messages)
        except ValueError:
            return [], False

    return at, read


def _fastest_strategy(kind: DataType, settings: JsonSettings) -> _Strategy:
    """The fastest strategy that a type has."""
    if not _holds(kind, MapType | VariantType):
        return pyarrow_columns
    # orjson's values do not tell where a field is missing.
    if settings.fail_on_missing_field or _builder(kind, settings) is None:
        return _row_columns
    return _orjson_columns


def _holds(kind: DataType, wanted: Any) -> bool:
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, wanted)
    return isinstance(kind, MapType) and _holds(kind.valueType, wanted)


def _row_columns(columns: StructType, target: list[pa.Field], settings: JsonSettings) -> Columns:
    """The row path reads each message, as variants must."""
    row, nothing = row_reader(columns, settings), [None] * len(target)

    def read(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        rows: list[Sequence[Any]] = []
        left = np.zeros(len(messages), np.bool_)
        for at, message in enumerate(messages):
            try:
                rows.append(row(message))
            except UnreadableError:
                left[at] = True
                rows.append(nothing)
                if at < PROBE and left.sum() > MOST_LEFT * PROBE:
                    raise
        values = zip(*rows, strict=True)
        return [pa.array(v, field.type) for v, field in zip(values, target, strict=True)], left

    return read


def _parsed_fields(
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
            values = plain_object(message)
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


def _orjson_columns(columns: StructType, target: list[pa.Field], settings: JsonSettings) -> Columns:
    """Compiles the reading of some columns, each of which can be built of orjson's values."""
    readers = [_orjson_column(c, field, settings) for c, field in zip(columns, target, strict=True)]
    names = [field.name for field in target]

    def read(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        values, left = _parsed_fields(messages, names)
        return [reader.read(each, left) for reader, each in zip(readers, values, strict=True)], left

    return read


def _orjson_column(column: StructField, field: pa.Field, settings: JsonSettings) -> Column:
    """How a column is read of orjson's values."""
    read = field_reader(column.dataType, settings, column.name, nullable=column.nullable)
    # The digits of a float are those of its column, or they are lost.
    number = _as_float if isinstance(column.dataType, DoubleType) else _as_written
    # A column built of values does not tell where a field in it is missing.
    nested = settings.fail_on_missing_field and pa.types.is_nested(field.type)
    build = None if nested else _builder(column.dataType, settings)
    return Column(field, _as_it_is if build is None else _of_list(build), lambda v: read(number(v)))


def _as_it_is(values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    raise ValueError("the digits of numbers are lost")


def _of_list(build: BuildColumn) -> Callable[[Any], pa.Array]:
    return lambda values: build(list(values))


def _as_written(value: Any) -> Any:
    """A parsed value with its numbers as they stood in the message; ValueError = that is not known."""
    kind = type(value)
    if kind is int:
        return Number(value)
    if kind is list:
        return [_as_written(item) for item in value]
    if kind is dict:
        return {name: _as_written(item) for name, item in value.items()}
    if kind is float:
        raise ValueError("the digits of a number are lost")
    return value


def _as_float(value: Any) -> Any:
    """The same for a column of 64-bit floats: these digits are read as the same number."""
    return Number(repr(value)) if type(value) is float else _as_written(value)


def _builder(kind: DataType, settings: JsonSettings) -> BuildColumn | None:
    """Compiles what makes a column of orjson's values; None = it loses what the type needs."""
    return column_builder(kind, partial(_leaf_builder, settings))


def _leaf_builder(settings: JsonSettings, kind: DataType) -> BuildColumn | None:
    how = leaf(kind, settings)
    return leaf_builder(how.from_orjson, how.column) if how.from_orjson else None
