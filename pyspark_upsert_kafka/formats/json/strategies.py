"""Strategies by which the vectorised path reads columns; each compiles the reading of some of them.

Each column takes the fastest one that its type allows: ``pyarrow.json`` parses all messages together; orjson
parses them one by one, and their values become columns, which holds for maps; the row path reads the values too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from pyspark_upsert_kafka.formats.conversion import conformed, converted
from pyspark_upsert_kafka.formats.json.column_builders import column_builder
from pyspark_upsert_kafka.formats.json.conversions import conversion
from pyspark_upsert_kafka.formats.json.lines import line_parser
from pyspark_upsert_kafka.formats.json.orjson_parser import fields_of
from pyspark_upsert_kafka.formats.json.row_path import row_reader
from pyspark_upsert_kafka.formats.json.settings import Settings

Columns = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to some columns of their rows; ValueError = the batch is refused."""

Strategy = Callable[[StructType, "list[pa.Field]", Settings], Columns]
"""Compiles the reading of some columns."""


def fastest_strategy(kind: DataType, target: pa.DataType, settings: Settings) -> Strategy:
    """The fastest strategy that a type has."""
    if not _holds(kind, MapType | VariantType):
        return pyarrow_strategy
    # orjson's values do not tell where a field is missing.
    missing_matters = settings.fail_on_missing_field
    if missing_matters or _holds(kind, VariantType) or column_builder(target, settings) is None:
        return row_strategy
    return orjson_strategy


def _holds(kind: DataType, wanted: Any) -> bool:
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, wanted)
    return isinstance(kind, MapType) and _holds(kind.valueType, wanted)


def pyarrow_strategy(_: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """One text of all messages, parsed by ``pyarrow.json``."""
    conversions = [conversion(field.type, settings) for field in target]
    parsed = [(f.name, each.parsed) for f, each in zip(target, conversions, strict=True)]
    parse = line_parser(pa.schema(parsed))
    demanded = _all_required(target) if settings.fail_on_missing_field else target

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        return converted(parse(messages), conversions, target, demanded)

    return columns


def _all_required(target: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields as if all were NOT NULL: the parser does not tell a missing field from a null."""
    return [field.with_nullable(False).with_type(_required(field.type)) for field in target]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_all_required(kind))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_required(kind.value_type)))
    return kind


def orjson_strategy(_: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """Messages parsed by orjson; their values become columns."""
    names = [field.name for field in target]
    builders = [column_builder(field.type, settings) for field in target]

    def columns(messages: Sequence[bytes]) -> list[pa.Array]:
        fields = fields_of(messages, names)
        built = [build(values) for build, values in zip(builders, fields, strict=True) if build]
        return conformed(built, target)

    return columns


def row_strategy(columns: StructType, target: list[pa.Field], settings: Settings) -> Columns:
    """The row path reads each message, as variants must."""
    row = row_reader(columns, settings)

    def arrays(messages: Sequence[bytes]) -> list[pa.Array]:
        values = zip(*map(row, messages), strict=True)
        return [pa.array(v, field.type) for v, field in zip(values, target, strict=True)]

    return arrays
