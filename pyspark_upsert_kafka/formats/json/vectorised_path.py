"""The vectorised path: each column is read by the fastest strategy that its type allows.

``pyarrow.json`` parses all messages together; orjson parses them one by one, and their values become columns,
which holds for maps; the row path reads the values too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.decoding import MOST_LEFT, PROBE, Mask, Path, UnreadableError
from pyspark_upsert_kafka.formats.json.orjson_columns import (
    Columns,
    column_builder,
    orjson_columns,
)
from pyspark_upsert_kafka.formats.json.pyarrow_columns import pyarrow_columns
from pyspark_upsert_kafka.formats.json.row_path import row_reader
from pyspark_upsert_kafka.formats.json.settings import Settings

Strategy = Callable[[StructType, "list[pa.Field]", Settings], Columns]
"""Compiles the reading of some columns."""


def fastest_strategy(kind: DataType, settings: Settings) -> Strategy:
    """The fastest strategy that a type has."""
    if not _holds(kind, MapType | VariantType):
        return pyarrow_columns
    # orjson's values do not tell where a field is missing.
    if settings.fail_on_missing_field or column_builder(kind, settings) is None:
        return row_columns
    return orjson_columns


def _holds(kind: DataType, wanted: Any) -> bool:
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, wanted)
    return isinstance(kind, MapType) and _holds(kind.valueType, wanted)


def row_columns(columns: StructType, target: list[pa.Field], settings: Settings) -> Columns:
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


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, settings: Settings
) -> Path | None:
    """Compiles the vectorised path; None when it can read no column but by the row path."""
    strategies = [fastest_strategy(column.dataType, settings) for column in columns.fields]
    if strategies and {*strategies} == {row_columns}:
        return None
    compiled: dict[Strategy, Columns] = {
        strategy: strategy(
            StructType(_some(columns.fields, [each is strategy for each in strategies])),
            _some(target, [each is strategy for each in strategies]),
            settings,
        )
        # In this order: what refuses a batch at once comes first.
        for strategy in (pyarrow_columns, orjson_columns, row_columns)
        if strategy in strategies or (strategy is pyarrow_columns and not strategies)
    }

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        left = np.zeros(len(messages), np.bool_)
        ready: dict[Strategy, Iterator[pa.Array]] = {}
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
