"""The way by columns: each message is parsed by orjson, and then each column is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.formats.by_column import Column, read_columns
from pyspark_upsert_kafka.formats.decoding import PartialPath
from pyspark_upsert_kafka.formats.json.fields import as_float, as_written, document
from pyspark_upsert_kafka.formats.json.maps import gatherer
from pyspark_upsert_kafka.formats.json.reading import field_reader
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.ways import Columns, fastest_way, together


def reader_by_columns(columns: StructType, target: pa.Schema, settings: Settings) -> PartialPath:
    """Compiles the way by columns.

    It leaves out the messages whose bytes or values are bad, and those that orjson may get wrong.
    """
    names = target.names
    ways = [_column(c, field, settings) for c, field in zip(columns, target, strict=True)]
    spelled, read_spelled = _spelled(columns, target, settings)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray]:
        rows, places = [], []
        for at, message in enumerate(messages):
            try:
                values = document(message)
            except ValueError:
                continue
            if settings.fail_on_missing_field and not values.keys() >= {*names}:
                continue
            # Only what is needed is kept: the collector would walk through all documents over and over.
            rows.append(tuple(map(values.get, names)))
            places.append(at)
        found: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        for at, array in zip(spelled, read_spelled([messages[at] for at in places]), strict=False):
            found[at] = array
        batch, odd = read_columns(ways, found, len(rows))
        left = np.ones(len(messages), np.bool_)
        left[places] = odd
        return batch, left

    return read


def _column(column: StructField, field: pa.Field, settings: Settings) -> Column:
    read = field_reader(column.dataType, settings, column.name, nullable=column.nullable)
    # The digits of a float are those of its column, or they are lost.
    spell = as_float if pa.types.is_float64(field.type) else as_written
    # A column gathered from values does not tell where a field in it is missing.
    nested = settings.fail_on_missing_field and pa.types.is_nested(field.type)
    gather = None if nested else gatherer(field.type, settings)
    return Column(field, _as_it_is if gather is None else _listed(gather), lambda v: read(spell(v)))


def _as_it_is(values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    raise ValueError("the digits of numbers are lost")


def _listed(gather: Callable[[list[Any]], pa.Array]) -> Callable[[Any], pa.Array]:
    return lambda values: gather(list(values))


def _spelled(
    columns: StructType, target: pa.Schema, settings: Settings
) -> tuple[list[int], Callable[[Sequence[bytes]], list[pa.Array]]]:
    """Which columns need numbers as they are spelled, and the way to them; it gives none where it fails.

    Those are decimals and 32-bit floats, which orjson's values do not become without a loss.
    """
    at = [
        i
        for i, (column, field) in enumerate(zip(columns, target, strict=True))
        if gatherer(field.type, settings) is None
        and fastest_way(column.dataType, field.type, settings) is together
    ]
    if not at:
        return [], lambda _: []
    some = StructType([columns[i] for i in at])
    parse: Columns = together(some, [target.field(i) for i in at], settings)

    def read(messages: Sequence[bytes]) -> list[pa.Array]:
        try:
            return parse(messages) if messages else []
        except ValueError:
            return []

    return at, read
