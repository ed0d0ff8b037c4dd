"""The column path: each message is parsed by orjson, and then each column is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.formats.decoding import Mask, Path
from pyspark_upsert_kafka.formats.json.orjson_columns import (
    column_builder,
    documents,
    orjson_column,
)
from pyspark_upsert_kafka.formats.json.pyarrow_columns import Parser, pyarrow_columns
from pyspark_upsert_kafka.formats.json.settings import Settings
from pyspark_upsert_kafka.formats.json.vectorised_path import fastest_strategy
from pyspark_upsert_kafka.formats.parsed_columns import read_columns


def compile_column_path(columns: StructType, target: pa.Schema, settings: Settings) -> Path:
    """Compiles the column path.

    It leaves the messages whose bytes or values are bad, and those that orjson may get wrong.
    """
    readers = [orjson_column(c, field, settings) for c, field in zip(columns, target, strict=True)]
    with_digits, read_digits = _digit_columns(columns, target, settings)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, Mask] | None:
        try:
            values, left = documents(
                messages, target.names, all_names=settings.fail_on_missing_field
            )
            arrays, unread = read_digits(messages)
            for at, array in zip(with_digits, arrays, strict=False):
                values[at] = array
            return read_columns(readers, values, left | unread)
        except ValueError:
            return None

    return read


def _digit_columns(
    columns: StructType, target: pa.Schema, settings: Settings
) -> tuple[list[int], Callable[[Sequence[bytes]], tuple[list[pa.Array], Mask]]]:
    """Which columns need all digits of their numbers, and what reads these columns.

    They are decimals and 32-bit floats: orjson's values have lost digits. What reads them is ``pyarrow.json``; where
    it refuses the batch, no column is read.
    """
    at = [
        i
        for i, column in enumerate(columns)
        if column_builder(column.dataType, settings) is None
        and fastest_strategy(column.dataType, settings) is pyarrow_columns
    ]
    if not at:
        return [], lambda _: ([], False)
    some = StructType([columns[i] for i in at])
    parse: Parser = pyarrow_columns(some, [target.field(i) for i in at], settings)

    def read(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        try:
            return parse(messages)
        except ValueError:
            return [], False

    return at, read
