"""Rows to JSON, column by column: each column becomes texts, and the texts are joined.

There is one way to write, not a fast and an exact one: every type has a columnar one, so equal rows
give equal bytes whatever stands beside them. The rules are those of Flink's
``RowDataToJsonConverters``. The schema is compiled into a tree of functions once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.conform import as_lists
from pyspark_upsert_kafka.formats.json import leaves
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.texts import Pieces, joined, or_else

Writer = Callable[[pa.Array], Pieces]
"""A column of values to their JSON texts; what it says of a null does not matter."""

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

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        """One object for each row. Raises EncodeError."""
        texts = joined(self._write(rows.to_struct_array()), rows.num_rows)
        return texts.cast(pl.Binary).to_list()


def _object(columns: StructType, settings: Settings, path: str) -> Writer:
    fields = [
        (f",{leaves.string(field.name)}:", _writer(field.dataType, settings, path + field.name))
        for field in columns.fields
    ]
    return partial(_without_nulls if settings.ignore_null_fields else _with_nulls, fields)


def _with_nulls(fields: Fields, array: pa.Array) -> Pieces:
    pieces: Pieces = []
    for (name, write), child in zip(fields, array.flatten(), strict=True):
        pieces += [name if pieces else name[1:], *or_else(write(child), child, "null")]
    return ["{", *pieces, "}"]


def _without_nulls(fields: Fields, array: pa.Array) -> Pieces:
    pieces: Pieces = []
    for (name, write), child in zip(fields, array.flatten(), strict=True):
        pieces += or_else([name, *write(child)], child, "")
    texts = joined(pieces or [""], len(array)).str.strip_prefix(",")
    return ["{", texts, "}"]


def _value(kind: DataType, settings: Settings, path: str) -> Writer:
    write = _writer(kind, settings, path)
    return lambda array: or_else(write(array), array, "null")


def _array(element: Writer, array: pa.Array) -> Pieces:
    values = array.flatten()
    texts = joined(element(values), len(values))
    return ["[", _per_row(array, texts), "]"]


def _map(key: Writer, value: Writer, array: pa.Array) -> Pieces:
    lists = as_lists(array)
    keys, values = lists.flatten().flatten()
    texts = joined([*key(keys), ":", *value(values)], len(keys))
    return ["{", _per_row(lists, texts), "}"]


def _per_row(lists: pa.Array, texts: pl.Series) -> pl.Series:
    """The texts of each list's elements, with commas between them."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    grouped = pa.ListArray.from_arrays(offsets, texts.to_arrow())
    return pl.Series(grouped).list.join(",", ignore_nulls=True)


def _writer(kind: DataType, settings: Settings, path: str) -> Writer:
    if isinstance(kind, StructType):
        return _object(kind, settings, f"{path}.")
    if isinstance(kind, ArrayType):
        return partial(_array, _value(kind.elementType, settings, f"{path}[]"))
    if isinstance(kind, MapType):
        return _map_writer(kind, settings, path)
    return _blaming(path, _leaf(kind, settings))


def _map_writer(kind: MapType, settings: Settings, path: str) -> Writer:
    mode, literal = settings.map_null_key_mode, settings.map_null_key_literal
    key = _blaming(path, lambda keys: leaves.map_keys(keys, mode, literal))
    return partial(_map, key, _value(kind.valueType, settings, f"{path}{{}}"))


def _leaf(kind: DataType, settings: Settings) -> Writer:
    if isinstance(kind, TimestampType):
        return partial(leaves.timestamps, settings.timestamps)
    if isinstance(kind, TimestampNTZType):
        return partial(leaves.timestamps, settings.local_timestamps)
    if isinstance(kind, DecimalType) and not settings.plain_decimals:
        return leaves.decimals
    if isinstance(kind, DoubleType | FloatType):
        return leaves.key_floats if settings.is_key else leaves.floats
    return _LEAVES.get(type(kind), leaves.plain)


_LEAVES: dict[type[DataType], Writer] = {
    BinaryType: leaves.binaries,
    DateType: leaves.dates,
    DayTimeIntervalType: leaves.intervals,
    StringType: leaves.strings,
    VariantType: leaves.variants,
}


def _blaming(path: str, write: Writer) -> Writer:
    def written(array: pa.Array) -> Pieces:
        try:
            return write(array)
        except ValueError as why:
            raise EncodeError(path, str(why)) from None

    return written
