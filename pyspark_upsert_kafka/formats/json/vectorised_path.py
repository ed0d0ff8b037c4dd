"""The vectorised path: the columns of a whole batch at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.decoding import VectorisedPath
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.strategies import (
    fastest_strategy,
    pyarrow_strategy,
    row_strategy,
)


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, settings: Settings
) -> VectorisedPath | None:
    """Compiles the vectorised path; None when it can read no column but by the row path."""
    strategies = [
        fastest_strategy(field.dataType, kind, settings)
        for field, kind in zip(columns, target.types, strict=True)
    ]
    if strategies and {*strategies} == {row_strategy}:
        return None
    compiled = {
        strategy: strategy(
            StructType(_some(columns.fields, [each is strategy for each in strategies])),
            _some(target, [each is strategy for each in strategies]),
            settings,
        )
        for strategy in {*strategies} or {pyarrow_strategy}
    }

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            ready = {strategy: iter(columns(messages)) for strategy, columns in compiled.items()}
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of([next(ready[strategy]) for strategy in strategies], target, len(messages))

    return read


def _some(fields: Iterable[Any], wanted: list[bool]) -> list[Any]:
    return [field for field, is_wanted in zip(fields, wanted, strict=True) if is_wanted]
