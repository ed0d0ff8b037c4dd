"""The vectorised path: each column is read by the fastest strategy that its type allows.

``pyarrow.json`` parses all messages together; orjson parses them one by one, and their values become columns,
which holds for maps; the row path reads the values too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.decoding import VectorisedPath
from pyspark_upsert_kafka.formats.json.control_characters import with_escapes
from pyspark_upsert_kafka.formats.json.orjson_columns import column_builder, orjson_columns
from pyspark_upsert_kafka.formats.json.pyarrow_columns import pyarrow_columns
from pyspark_upsert_kafka.formats.json.row_path import row_reader
from pyspark_upsert_kafka.formats.json.settings import Settings

Columns = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to some columns of their rows; ValueError = the batch is refused."""

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
    row = row_reader(columns, settings)

    def arrays(messages: Sequence[bytes]) -> list[pa.Array]:
        values = zip(*map(row, messages), strict=True)
        return [pa.array(v, field.type) for v, field in zip(values, target, strict=True)]

    return arrays


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, settings: Settings
) -> VectorisedPath | None:
    """Compiles the vectorised path; None when it can read no column but by the row path."""
    strategies = [fastest_strategy(column.dataType, settings) for column in columns.fields]
    if strategies and {*strategies} == {row_columns}:
        return None
    compiled = {
        strategy: strategy(
            StructType(_some(columns.fields, [each is strategy for each in strategies])),
            _some(target, [each is strategy for each in strategies]),
            settings,
        )
        for strategy in {*strategies} or {pyarrow_columns}
    }

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            ready = {strategy: iter(columns(messages)) for strategy, columns in compiled.items()}
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of([next(ready[strategy]) for strategy in strategies], target, len(messages))

    def read_again(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        rows = read(messages)
        if rows is None:
            escaped = with_escapes(messages)
            rows = None if escaped is None else read(escaped)
        return rows

    return read_again


def _some(fields: Iterable[Any], wanted: list[bool]) -> list[Any]:
    return [field for field, is_wanted in zip(fields, wanted, strict=True) if is_wanted]
