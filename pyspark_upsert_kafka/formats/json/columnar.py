"""The fast way to read: the columns of a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from pyspark_upsert_kafka.formats.batches import Fast, batch_of
from pyspark_upsert_kafka.formats.conform import conform, rows_lacking
from pyspark_upsert_kafka.formats.json.lines import line_parser
from pyspark_upsert_kafka.formats.json.plans import plan
from pyspark_upsert_kafka.formats.json.reading import row_reader
from pyspark_upsert_kafka.formats.json.settings import Settings

Columns = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to some columns of their rows; ValueError = the batch is refused."""


def columnar_reader(columns: StructType, target: pa.Schema, settings: Settings) -> Fast | None:
    """Compiles the fast way; None when it can read no column.

    Columns that it cannot read (maps, variants) are taken from each message by the exact way, the
    others are still parsed together.
    """
    by_batch = [_is_vectorised(field.dataType) for field in columns.fields]
    if by_batch and not any(by_batch):
        return None
    together = _together(_some(target, by_batch), settings)
    one_by_one = _one_by_one(columns, target, [not fast for fast in by_batch], settings)

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            ready = {True: iter(together(messages)), False: iter(one_by_one(messages))}
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of([next(ready[fast]) for fast in by_batch], target, len(messages))

    return read


def _is_vectorised(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_vectorised(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_vectorised(kind.elementType)
    return not isinstance(kind, MapType | VariantType)


def _some(fields: Iterable[Any], wanted: list[bool]) -> list[Any]:
    return [field for field, is_wanted in zip(fields, wanted, strict=True) if is_wanted]


def _together(target: list[pa.Field], settings: Settings) -> Columns:
    plans = [plan(field.type, settings) for field in target]
    names = [field.name for field in target]
    parse = line_parser(pa.schema(list(zip(names, [kind for kind, _ in plans], strict=True))))
    demanded = _all_required(target) if settings.fail_on_missing_field else target

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        parsed = [_only_chunk(column) for column in parse(messages).columns]
        restored = [restore(c) for c, (_, restore) in zip(parsed, plans, strict=True)]
        if any(rows_lacking(c, field) for c, field in zip(restored, demanded, strict=True)):
            raise ValueError("a field is missing")
        return [conform(c, field.type) for c, field in zip(restored, target, strict=True)]

    return columns


def _only_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _all_required(target: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields as if all were NOT NULL: the parser does not tell a missing field from a null."""
    return [field.with_nullable(False).with_type(_required(field.type)) for field in target]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_all_required(kind))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_required(kind.value_type)))
    return kind


def _one_by_one(
    columns: StructType, target: pa.Schema, wanted: list[bool], settings: Settings
) -> Columns:
    if not any(wanted):
        return lambda _: []
    row = row_reader(StructType(_some(columns.fields, wanted)), settings)
    kinds = [field.type for field in _some(target, wanted)]

    def arrays(messages: Sequence[bytes]) -> list[pa.Array]:
        values = zip(*map(row, messages), strict=True)
        return [pa.array(v, kind) for v, kind in zip(values, kinds, strict=True)]

    return arrays
