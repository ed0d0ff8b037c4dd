"""The column path: all fields of all messages are parsed as texts, and then each column is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.formats.base64_text import binaries
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.column_path import Column, read_columns
from pyspark_upsert_kafka.formats.conversion import (
    Conversion,
    Convert,
    converted,
    finite,
    unchanged,
)
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.csv.lines import FALSE, TRUE, check_no_hexadecimals, line_parser
from pyspark_upsert_kafka.formats.csv.row_path import field_reader
from pyspark_upsert_kafka.formats.decoding import PartialPath, VectorisedPath
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, dates


def conversion(column: StructField, kind: pa.DataType, dialect: Dialect) -> Conversion:
    """How a column of that type is read."""
    if pa.types.is_floating(kind):
        return Conversion(kind, finite)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return Conversion(kind)
    if pa.types.is_nested(kind):
        return Conversion(pa.string(), _one_by_one(column, kind, dialect))
    return Conversion(pa.string(), _text_only(kind, dialect))


def conversion_of_texts(kind: pa.DataType, dialect: Dialect) -> Convert | None:
    """The way from texts to a type; None = there is none for all texts of a column at once."""
    if pa.types.is_nested(kind):
        return None
    if pa.types.is_string(kind):
        return unchanged
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _empty_is_null(dialect, _numbers(kind))
    if pa.types.is_boolean(kind):
        return _empty_is_null(dialect, _booleans)
    return _text_only(kind, dialect)


def _text_only(kind: pa.DataType, dialect: Dialect) -> Convert:
    """The way from texts to a type that the parser reads as text."""
    if pa.types.is_binary(kind):
        return binaries
    if pa.types.is_timestamp(kind):
        return _empty_is_null(dialect, _timestamps(zoned=kind.tz is not None))
    return _empty_is_null(dialect, _decimals(kind) if pa.types.is_decimal(kind) else dates)


def _empty_is_null(dialect: Dialect, convert: Convert) -> Convert:
    """Without a null literal the empty text is NULL; in a column of texts the parser does not see to it."""
    if dialect.null_literal is not None:
        return convert

    def with_nulls(texts: pa.Array) -> pa.Array:
        empty = pc.equal(texts, "")
        if pc.any(empty).as_py():
            texts = pc.if_else(empty, pa.scalar(None, pa.string()), texts)
        return convert(texts)

    return with_nulls


def _numbers(kind: pa.DataType) -> Convert:
    def convert(texts: pa.Array) -> pa.Array:
        check_no_hexadecimals(texts)
        return finite(pc.ascii_trim(texts, " \t").cast(kind))

    return convert


def _booleans(texts: pa.Array) -> pa.Array:
    true = pc.is_in(texts, pa.array(TRUE))
    if not pc.all(pc.or_(true, pc.is_in(texts, pa.array([*FALSE, None])))).as_py():
        raise ValueError("a text is neither true nor false")
    return pc.if_else(texts.is_valid(), true, pa.scalar(None, pa.bool_()))


def _timestamps(*, zoned: bool) -> Convert:
    sql, iso = TimestampText("SQL", zoned), TimestampText("ISO-8601", zoned)

    def convert(texts: pa.Array) -> pa.Array:
        try:
            return sql.column(texts)
        except ValueError:
            return iso.column(texts)

    return convert


def _decimals(kind: pa.Decimal128Type) -> Convert:
    """Plain digits that fit as they stand; what must be rounded or scaled takes the row path."""
    whole, places = kind.precision - kind.scale, kind.scale
    fraction = rf"(\.[0-9]{{1,{places}}})?" if places else ""
    plain = rf"^-?[0-9]{{1,{whole}}}{fraction}$" if whole else rf"^-?0{fraction}$"

    def convert(texts: pa.Array) -> pa.Array:
        if pc.all(pc.match_substring_regex(texts, plain)).as_py() is False:
            raise ValueError("a decimal is not plain")
        return texts.cast(kind)

    return convert


def _one_by_one(column: StructField, kind: pa.DataType, dialect: Dialect) -> Convert:
    """Arrays and structs: each text as the row path reads it."""
    read = field_reader(column, dialect)
    return lambda texts: pa.array([read(text) for text in texts.to_pylist()], kind)


def compile_column_path(columns: StructType, target: pa.Schema, dialect: Dialect) -> PartialPath:
    """Compiles the column path.

    It refuses a batch with a message that is not plainly one record; and every batch of a dialect that
    the parser does not have.
    """
    readers = [
        Column(field, conversion_of_texts(field.type, dialect), field_reader(column, dialect))
        for column, field in zip(columns, target, strict=True)
    ]
    parse = line_parser([pa.string()] * len(readers), dialect)

    def read(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        if parse is None:
            return None
        try:
            texts = parse(messages)
        except ValueError:
            return None
        return read_columns(readers, texts, len(messages))

    return read


def compile_vectorised_path(
    columns: StructType, target: pa.Schema, dialect: Dialect
) -> VectorisedPath | None:
    """Compiles the vectorised path; None when the parser does not have the dialect."""
    conversions = [
        conversion(column, field.type, dialect)
        for column, field in zip(columns, target, strict=True)
    ]
    parse = line_parser([each.parsed for each in conversions], dialect)
    if parse is None:
        return None

    def read(messages: Sequence[bytes]) -> pa.RecordBatch | None:
        try:
            arrays = converted(parse(messages), conversions, target)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return batch_of(arrays, target, len(messages))

    return read
