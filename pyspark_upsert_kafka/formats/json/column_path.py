"""The column path: each message is parsed by orjson, and then each column is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DoubleType, StructField, StructType

from pyspark_upsert_kafka.core.bytes_column import some_of
from pyspark_upsert_kafka.formats.decoding import PartialPath
from pyspark_upsert_kafka.formats.json.orjson_columns import (
    BuildColumn,
    as_float,
    as_written,
    column_builder,
    document,
)
from pyspark_upsert_kafka.formats.json.pyarrow_columns import Parser, pyarrow_columns
from pyspark_upsert_kafka.formats.json.row_path import field_reader
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.vectorised_path import fastest_strategy
from pyspark_upsert_kafka.formats.parsed_columns import Column, read_columns


def compile_column_path(columns: StructType, target: pa.Schema, settings: Settings) -> PartialPath:
    """Compiles the column path.

    It leaves out the messages whose bytes or values are bad, and those that orjson may get wrong.
    """
    names = target.names
    readers = [_column(c, field, settings) for c, field in zip(columns, target, strict=True)]
    with_digits, read_digits = _digit_columns(columns, target, settings)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        rows, places = _documents(messages, names, all_names=settings.fail_on_missing_field)
        found: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        arrays = read_digits(some_of(messages, places))
        for at, array in zip(with_digits, arrays, strict=False):
            found[at] = array
        batch, bad = read_columns(readers, found, len(rows))
        fallback = np.ones(len(messages), np.bool_)
        fallback[places] = bad
        return batch, fallback

    return read


def _documents(
    messages: Sequence[bytes], names: Sequence[str], *, all_names: bool
) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Some fields of each message that orjson reads, and which messages these are."""
    rows, places = [], []
    for at, message in enumerate(messages):
        try:
            values = document(message)
        except ValueError:
            continue
        if all_names and not values.keys() >= {*names}:
            continue
        # Only what is needed is kept: the collector would walk through all documents over and over.
        rows.append(tuple(map(values.get, names)))
        places.append(at)
    return rows, places


def _column(column: StructField, field: pa.Field, settings: Settings) -> Column:
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


def _digit_columns(
    columns: StructType, target: pa.Schema, settings: Settings
) -> tuple[list[int], Callable[[Sequence[bytes]], list[pa.Array]]]:
    """Which columns need all digits of their numbers, and what reads these columns.

    They are decimals and 32-bit floats: orjson's values have lost digits. What reads them is ``pyarrow.json``; where
    it refuses the batch, no column is read.
    """
    at = [
        i
        for i, column in enumerate(columns)
        if column_builder(column.dataType, settings) is None
        and fastest_strategy(column.dataType, settings) is pyarrow_columns
    ]
    if not at:
        return [], lambda _: []
    some = StructType([columns[i] for i in at])
    parse: Parser = pyarrow_columns(some, [target.field(i) for i in at], settings)

    def read(messages: Sequence[bytes]) -> list[pa.Array]:
        try:
            return parse(messages) if messages else []
        except ValueError:
            return []

    return at, read
