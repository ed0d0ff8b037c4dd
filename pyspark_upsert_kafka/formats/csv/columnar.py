"""The fast way to read: the columns of a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.formats.base64_text import binaries
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.by_column import Column, read_columns
from pyspark_upsert_kafka.formats.conform import conform, rows_lacking
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.lines import FALSE, TRUE, check_no_hexadecimals, line_parser
from pyspark_upsert_kafka.formats.csv.reading import field_reader
from pyspark_upsert_kafka.formats.decoding import PartialPath, VectorisedPath
from pyspark_upsert_kafka.formats.moments import TimestampText, dates

Restore = Callable[[pa.Array], pa.Array]
"""A column as it was parsed to the column that the table has; ValueError = refused."""


def columnar_reader(
    columns: StructType, target: pa.Schema, dialect: Dialect
) -> VectorisedPath | None:
    """Compiles the fast way; None when the dialect is not one for it."""
    plans = [_plan(c, wanted.type, dialect) for c, wanted in zip(columns, target, strict=True)]
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


def reader_by_columns(columns: StructType, target: pa.Schema, dialect: Dialect) -> PartialPath:
    """Compiles the way by columns: all fields are parsed as texts, and then each column is read.

    It refuses a batch with a message that is not plainly one record; and every batch of a dialect that
    the fast way is not for.
    """
    ways = [
        Column(wanted, _from_texts(wanted.type, dialect), field_reader(column, dialect))
        for column, wanted in zip(columns, target, strict=True)
    ]
    parse = line_parser([pa.string()] * len(ways), dialect)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        if parse is None:
            return None
        try:
            texts = parse(messages)
        except ValueError:
            return None
        return read_columns(ways, texts, len(messages))

    return read


def _plan(column: StructField, kind: pa.DataType, dialect: Dialect) -> tuple[pa.DataType, Restore]:
    """The type to parse a column as, and the way from there to the type wanted."""
    if pa.types.is_floating(kind):
        return kind, _finite
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return kind, _as_is
    if pa.types.is_nested(kind):
        return pa.string(), _one_by_one(column, kind, dialect)
    return pa.string(), _restore(kind, dialect)


def _from_texts(kind: pa.DataType, dialect: Dialect) -> Restore | None:
    """The way from texts to the type wanted, when there is one for all texts of a column at once."""
    if pa.types.is_nested(kind):
        return None
    if pa.types.is_string(kind):
        return _as_is
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _nulls_of(dialect, _numbers(kind))
    if pa.types.is_boolean(kind):
        return _nulls_of(dialect, _booleans)
    return _restore(kind, dialect)


def _restore(kind: pa.DataType, dialect: Dialect) -> Restore:
    if pa.types.is_binary(kind):
        return binaries
    if pa.types.is_timestamp(kind):
        return _nulls_of(dialect, _timestamps(zoned=kind.tz is not None))
    return _nulls_of(dialect, _decimals(kind) if pa.types.is_decimal(kind) else dates)


def _as_is(array: pa.Array) -> pa.Array:
    return array


def _finite(array: pa.Array) -> pa.Array:
    """NaN and infinity have other spellings for the parser than for Java."""
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is not finite")
    return array


def _numbers(kind: pa.DataType) -> Restore:
    def restore(texts: pa.Array) -> pa.Array:
        check_no_hexadecimals(texts)
        return _finite(pc.ascii_trim(texts, " \t").cast(kind))

    return restore


def _booleans(texts: pa.Array) -> pa.Array:
    true = pc.is_in(texts, pa.array(TRUE))
    if not pc.all(pc.or_(true, pc.is_in(texts, pa.array([*FALSE, None])))).as_py():
        raise ValueError("a text is neither true nor false")
    return pc.if_else(texts.is_valid(), true, pa.scalar(None, pa.bool_()))


def _nulls_of(dialect: Dialect, restore: Restore) -> Restore:
    """Without a null literal the empty text is NULL; in a column of texts the parser does not see to it."""
    if dialect.null_literal is not None:
        return restore

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
