"""The fast way to read: the columns of a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.formats.base64_text import binaries
from pyspark_upsert_kafka.formats.batches import Fast, batch_of, sparing_columns
from pyspark_upsert_kafka.formats.conform import conform, rows_lacking
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.lines import line_parser
from pyspark_upsert_kafka.formats.csv.reading import field_reader
from pyspark_upsert_kafka.formats.moments import TimestampText, dates

Restore = Callable[[pa.Array], pa.Array]
"""A column as it was parsed to the column that the table has; ValueError = refused."""


def columnar_reader(columns: StructType, target: pa.Schema, dialect: Dialect) -> Fast | None:
    """Compiles the fast way; None when the dialect is not one for it.

    When a batch is refused for values that are odd in some columns all along, such as decimals that
    must be rounded, only those are read by the exact way.
    """
    every = frozenset(range(len(target)))
    plain = _reader(columns, target, dialect, frozenset())
    if plain is None or len(every) < 2:
        return plain

    def without(odd: frozenset[int]) -> Fast:
        return cast("Fast", _reader(columns, target, dialect, odd))

    return sparing_columns(plain, {at: without(every - {at}) for at in every}, without)


def _reader(
    columns: StructType, target: pa.Schema, dialect: Dialect, odd: frozenset[int]
) -> Fast | None:
    plans = [
        (pa.string(), _one_by_one(column, wanted.type, dialect))
        if at in odd
        else _plan(column, wanted.type, dialect)
        for at, (column, wanted) in enumerate(zip(columns, target, strict=True))
    ]
    parse = line_parser([kind for kind, _ in plans], dialect)
    if parse is None:
        return None

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            parsed = parse(messages)
            restored = [restore(c) for c, (_, restore) in zip(parsed, plans, strict=True)]
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        if any(rows_lacking(c, field) for c, field in zip(restored, target, strict=True)):
            return None
        arrays = [conform(c, field.type) for c, field in zip(restored, target, strict=True)]
        return batch_of(arrays, target, len(messages))

    return read


def _plan(column: StructField, kind: pa.DataType, dialect: Dialect) -> tuple[pa.DataType, Restore]:
    """The type to parse a column as, and the way from there to the type wanted."""
    if pa.types.is_floating(kind):
        return kind, _finite
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return kind, _as_is
    if pa.types.is_binary(kind):
        return pa.string(), binaries
    if pa.types.is_nested(kind):
        return pa.string(), _one_by_one(column, kind, dialect)
    restore = _from_text(kind)
    return pa.string(), restore if dialect.null_literal is not None else _with_nulls(restore)


def _from_text(kind: pa.DataType) -> Restore:
    if pa.types.is_timestamp(kind):
        return _timestamps(zoned=kind.tz is not None)
    if pa.types.is_decimal(kind):
        return _decimals(kind)
    return dates


def _as_is(array: pa.Array) -> pa.Array:
    return array


def _finite(array: pa.Array) -> pa.Array:
    """NaN and infinity have other spellings for the parser than for Java."""
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is not finite")
    return array


def _with_nulls(restore: Restore) -> Restore:
    """The empty text is NULL; in a column of texts the parser does not see to that."""

    def restored(texts: pa.Array) -> pa.Array:
        empty = pc.equal(texts, "")
        if pc.any(empty).as_py():
            texts = pc.if_else(empty, pa.scalar(None, pa.string()), texts)
        return restore(texts)

    return restored


def _timestamps(*, zoned: bool) -> Restore:
    sql, iso = TimestampText("SQL", zoned), TimestampText("ISO-8601", zoned)

    def restore(texts: pa.Array) -> pa.Array:
        try:
            return sql.column(texts)
        except ValueError:
            return iso.column(texts)

    return restore


def _decimals(kind: pa.Decimal128Type) -> Restore:
    """Plain digits that fit as they stand; what must be rounded or scaled goes the exact way."""
    whole, places = kind.precision - kind.scale, kind.scale
    fraction = rf"(\.[0-9]{{1,{places}}})?" if places else ""
    plain = rf"^-?[0-9]{{1,{whole}}}{fraction}$" if whole else rf"^-?0{fraction}$"

    def restore(texts: pa.Array) -> pa.Array:
        if pc.all(pc.match_substring_regex(texts, plain)).as_py() is False:
            raise ValueError("a decimal is not plain")
        return texts.cast(kind)

    return restore


def _one_by_one(column: StructField, kind: pa.DataType, dialect: Dialect) -> Restore:
    """Parsed as texts together, and read one by one by the exact way: arrays, structs, odd values."""
    read = field_reader(column, dialect)

    def restore(texts: pa.Array) -> pa.Array:
        return pa.array([read(text) for text in texts.to_pylist()], kind)

    return restore
