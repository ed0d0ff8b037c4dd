"""The ways in which columns are read; each compiles the reading of some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from pyspark_upsert_kafka.formats.conform import conform, rows_lacking
from pyspark_upsert_kafka.formats.json.fields import fields_of
from pyspark_upsert_kafka.formats.json.lines import line_parser
from pyspark_upsert_kafka.formats.json.maps import gatherer
from pyspark_upsert_kafka.formats.json.plans import plan
from pyspark_upsert_kafka.formats.json.reading import row_reader
from pyspark_upsert_kafka.formats.json.settings import Settings

Columns = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to some columns of their rows; ValueError = the batch is refused."""

Way = Callable[[StructType, "list[pa.Field]", Settings], Columns]
"""Compiles the reading of some columns."""


def fastest_way(kind: DataType, target: pa.DataType, settings: Settings) -> Way:
    """The fastest way that a type has."""
    if not _holds(kind, MapType | VariantType):
        return together
    # orjson's values do not tell where a field is missing.
    missing_matters = settings.fail_on_missing_field
    if missing_matters or _holds(kind, VariantType) or gatherer(target, settings) is None:
        return one_by_one
    return gathered


def _holds(kind: DataType, wanted: Any) -> bool:
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, wanted)
    return isinstance(kind, MapType) and _holds(kind.valueType, wanted)


def together(_: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """One text of all messages, parsed by ``pyarrow.json``."""
    plans = [plan(field.type, settings) for field in target]
    names = [field.name for field in target]
    parse = line_parser(pa.schema(list(zip(names, [kind for kind, _ in plans], strict=True))))
    demanded = _all_required(target) if settings.fail_on_missing_field else target

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        parsed = [_only_chunk(column) for column in parse(messages).columns]
        restored = [restore(c) for c, (_, restore) in zip(parsed, plans, strict=True)]
        return _checked(restored, demanded, target)

    return columns


def _checked(
    columns: list[pa.Array], demanded: list[pa.Field], target: list[pa.Field]
) -> list[pa.Array]:
    """The columns in the types that the table has, with a value wherever one is demanded."""
    if any(rows_lacking(c, field) for c, field in zip(columns, demanded, strict=True)):
        raise ValueError("a field is missing")
    return [conform(c, field.type) for c, field in zip(columns, target, strict=True)]


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


def gathered(_: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """Messages parsed by orjson; each leaf becomes a column at once."""
    names = [field.name for field in target]
    ways = [gatherer(field.type, settings) for field in target]

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        fields = fields_of(messages, names)
        gathered = [gather(values) for gather, values in zip(ways, fields, strict=True) if gather]
        return _checked(gathered, target, target)

    return columns


def one_by_one(columns: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """The exact way reads each message."""
    row = row_reader(columns, settings)

    def arrays(messages: Sequence[bytes]) -> list[pa.Array]:
        values = zip(*map(row, messages), strict=True)
        return [pa.array(v, field.type) for v, field in zip(values, target, strict=True)]

    return arrays
