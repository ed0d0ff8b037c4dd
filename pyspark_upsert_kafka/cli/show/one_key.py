"""``--key``: the one key that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BooleanType,
    DayTimeIntervalType,
    NumericType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.cli.show.spelling import ISO, encodable_type
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.table.arrow import arrow_schema, canonical_floats
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json.row_path import row_reader
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.reading.rows import Rows

_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false")


@dataclass(frozen=True)
class OneKey:
    """A key of a table.

    Args:
        names: The table's columns.
        values: One row: the columns of the key, under their names in the table.
    """

    names: tuple[str, ...]
    values: pa.RecordBatch

    def matching(self, changes: Iterable[tuple[RawBatch, Rows]]) -> Iterator[tuple[RawBatch, Rows]]:
        """The rows that have this key."""
        for batch, rows in changes:
            mask = self._mask(rows)
            deletes = None if rows.deletes is None else rows.deletes.filter(mask)
            chosen = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
            places = chosen if rows.places is None else rows.places[chosen]
            columns = [column.filter(mask) for column in rows.columns]
            yield batch, Rows(columns, deletes, rows.bad, places)

    def _mask(self, rows: Rows) -> pa.BooleanArray:
        mask = pa.repeat(pa.scalar(True), len(rows))
        for name, value in zip(self.values.schema.names, self.values.columns, strict=True):
            column = canonical_floats(rows.columns[self.names.index(name)])
            mask = pc.and_(mask, pc.is_in(column, value_set=canonical_floats(value)))
        return mask


def one_key(text: str, table: Table) -> OneKey:
    """The key in the argument's text.

    Raises:
        OptionError: It is not one value for each column of the key, or a value is none of its column's type.
    """
    if not table.key:
        raise OptionError("--key needs a table with a key, and messages of --append have none.")
    given = key_texts(text, table.key_names)
    columns = [_value(field, given[field.name]) for field in table.key]
    values = pa.RecordBatch.from_arrays(columns, list(table.key_names))
    return OneKey(tuple(table.schema.names), values)


def key_texts(text: str, columns: Sequence[str]) -> Mapping[str, str]:
    """The text of each column's value; a value may hold commas, but no other ``,column=``.

    Raises:
        OptionError: They are not the columns of the key, each once.

    >>> key_texts("name=Smith, John,id=7", ["id", "name"])
    {'name': 'Smith, John', 'id': '7'}
    """
    names = {name.lower(): name for name in columns}
    longest_first = sorted(map(re.escape, columns), key=len, reverse=True)
    begin, *parts = re.split(rf"(?:^|,)\s*({'|'.join(longest_first)})=", text, flags=re.IGNORECASE)
    found = [names[part.lower()] for part in parts[::2]]
    if begin or sorted(found) != sorted(columns):
        example = ",".join(f"{name}=..." for name in columns)
        raise OptionError(
            f"--key {text!r} is not a value for each column of the key, since the whole key tells where it "
            f"is: write --key {example}."
        )
    return dict(zip(found, parts[1::2], strict=True))


def _value(field: StructField, text: str) -> pa.Array:
    """A value in the spelling of the output, as an array of one."""
    kind = encodable_type(field.dataType)
    simple = isinstance(kind, NumericType | BooleanType) and _LITERAL.fullmatch(text)
    literal: Any = orjson.Fragment(text) if simple else text
    read = row_reader(StructType([StructField(field.name, kind)]), ISO)
    try:
        (value,) = read(orjson.dumps({field.name: literal}))
        if isinstance(field.dataType, DayTimeIntervalType) and value is not None:
            value = timedelta(microseconds=int(value * 1000))
        return pa.array([value], arrow_schema(StructType([field])).field(0).type)
    except (UnreadableError, pa.ArrowInvalid) as why:
        raise OptionError(
            f"--key: {text!r} is no value of column {field.name!r}, which is "
            f"{field.dataType.simpleString().upper()}: {str(why).rstrip('.')}."
        ) from None
