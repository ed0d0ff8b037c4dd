"""Rows to JSON, column by column: each column becomes texts, and the texts are joined.

There is no row path, so equal rows give equal bytes, whatever other rows are in their batch. The rules are those of
Flink's ``RowDataToJsonConverters``. The schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from functools import partial

import polars as pl
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
)

from pyspark_upsert_kafka.formats.exact_types import as_lists
from pyspark_upsert_kafka.formats.json.leaf_writers import Writer, leaf_writer, map_keys, string
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.text_columns import (
    TextParts,
    as_binary,
    joined,
    naming_column,
    or_else,
    per_list,
)

Fields = list[tuple[str, Writer]]
"""The fields of an object: each name with the comma before and the colon behind it, its writer."""


class JsonEncoder:
    """Rows to JSON objects.

    Args:
        columns: The columns of the rows.
        settings: How they are written.
    """

    def __init__(self, columns: StructType, settings: Settings) -> None:
        self._write = _object(columns, settings, "")

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One object for each row. Raises EncodeError."""
        texts = joined(self._write(rows.to_struct_array()), rows.num_rows)
        return as_binary(texts)


def _object(columns: StructType, settings: Settings, path: str) -> Writer:
    fields = [
        (
            f",{string(field.name)}:",
            _writer(field.dataType, settings, path + field.name),
        )
        for field in columns.fields
    ]
    return partial(_without_nulls if settings.ignore_null_fields else _with_nulls, fields)


def _with_nulls(fields: Fields, array: pa.Array) -> TextParts:
    parts: TextParts = []
    for (name, write), child in zip(fields, array.flatten(), strict=True):
        parts += [name if parts else name[1:], *or_else(write(child), child, "null")]
    return ["{", *parts, "}"]


def _without_nulls(fields: Fields, array: pa.Array) -> TextParts:
    parts: TextParts = []
    for (name, write), child in zip(fields, array.flatten(), strict=True):
        parts += or_else([name, *write(child)], child, "")
    texts = joined(parts or [""], len(array)).str.strip_prefix(",")
    return ["{", texts, "}"]


def _value(kind: DataType, settings: Settings, path: str) -> Writer:
    write = _writer(kind, settings, path)
    return lambda array: or_else(write(array), array, "null")


def _array(element: Writer, array: pa.Array) -> TextParts:
    values = array.flatten()
    texts = joined(element(values), len(values))
    return ["[", _per_row(array, texts), "]"]


def _map(key: Writer, value: Writer, array: pa.Array) -> TextParts:
    lists = as_lists(array)
    keys, values = lists.flatten().flatten()
    texts = joined([*key(keys), ":", *value(values)], len(keys))
    return ["{", _per_row(lists, texts), "}"]


def _per_row(lists: pa.Array, texts: pl.Series) -> pl.Series:
    """The texts of each list's elements, with commas between them."""
    return per_list(lists, texts).list.join(",", ignore_nulls=True)


def _writer(kind: DataType, settings: Settings, path: str) -> Writer:
    if isinstance(kind, StructType):
        return _object(kind, settings, f"{path}.")
    if isinstance(kind, ArrayType):
        return partial(_array, _value(kind.elementType, settings, f"{path}[]"))
    if isinstance(kind, MapType):
        return _map_writer(kind, settings, path)
    return naming_column(path, leaf_writer(kind, settings))


def _map_writer(kind: MapType, settings: Settings, path: str) -> Writer:
    mode, literal = settings.map_null_key_mode, settings.map_null_key_literal
    key = naming_column(path, lambda keys: map_keys(keys, mode, literal))
    return partial(_map, key, _value(kind.valueType, settings, f"{path}{{}}"))
