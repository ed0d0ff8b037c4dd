"""The fast way to read: the columns of a whole batch at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.decoding import VectorisedPath
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.ways import fastest_way, one_by_one, together


def columnar_reader(
    columns: StructType, target: pa.Schema, settings: Settings
) -> VectorisedPath | None:
    """Compiles the fast way; None when it can read no column.

    Each column goes the fastest way that its type has: parsed together, gathered when it holds maps,
    or, as variants must, taken from each message by the exact way.
    """
    ways = [
        fastest_way(field.dataType, kind, settings)
        for field, kind in zip(columns, target.types, strict=True)
    ]
    if ways and {*ways} == {one_by_one}:
        return None
    compiled = {
        way: way(
            StructType(_some(columns.fields, [each is way for each in ways])),
            _some(target, [each is way for each in ways]),
            settings,
        )
        for way in {*ways} or {together}
    }

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            ready = {way: iter(columns(messages)) for way, columns in compiled.items()}
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of([next(ready[way]) for way in ways], target, len(messages))

    return read


def _some(fields: Iterable[Any], wanted: list[bool]) -> list[Any]:
    return [field for field, is_wanted in zip(fields, wanted, strict=True) if is_wanted]
