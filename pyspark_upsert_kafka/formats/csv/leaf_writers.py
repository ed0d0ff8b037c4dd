"""How each type that has no parts is written: a column as texts, in the spelling of ``RowDataToCsvConverters``.

How each type is read: ``leaf_readers.py``. This is a module of its own, since tasks that only read do without polars.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.base64_text import base64_texts
from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.float_text import float_texts, key_float_texts
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.number_text import java_texts
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, date_texts

ToText = Callable[[pa.Array], pl.Series]
"""A column to its texts, null where it is null; raises ValueError."""

_BARE = BooleanType | DecimalType | DoubleType | FloatType
_IN_TIMESTAMPS = frozenset("0123456789-: .Z")
_IN_NUMBERS = frozenset("0123456789+-.eENaNInfinitytruefalse")


def leaf_writer(kind: DataType, dialect: Dialect) -> ToText:
    """The writer of a type without parts."""
    if isinstance(kind, TimestampType | TimestampNTZType):
        return partial(_timestamps, TimestampText("SQL", isinstance(kind, TimestampType)))
    if isinstance(kind, DecimalType) and dialect.scientific_decimals:
        return java_texts
    if isinstance(kind, DoubleType | FloatType):
        return key_float_texts if dialect.is_key else float_texts
    return _TO_TEXT.get(type(kind), _plain)


def is_bare(kind: DataType, dialect: Dialect) -> bool:
    """Whether values of the type need no look for special characters, and Jackson has none.

    Flink takes none even where the delimiter is a character that numbers have.
    """
    bare = type(kind) in BITS or isinstance(kind, _BARE)
    return bare and _IN_NUMBERS.isdisjoint(dialect.special)


def is_quoted(kind: DataType, dialect: Dialect) -> bool:
    """Whether each value of the type is quoted as it stands: a timestamp, for the blank in it."""
    if dialect.quote is None or not isinstance(kind, TimestampType | TimestampNTZType):
        return False
    has_nothing_to_double = _IN_TIMESTAMPS.isdisjoint({dialect.quote, dialect.escape})
    return has_nothing_to_double and max(dialect.delimiter, dialect.quote) >= " "


def _plain(array: pa.Array) -> pl.Series:
    """Texts, whole numbers, booleans, and decimals with every digit of their scale."""
    return pl.Series(array).cast(pl.String)


def _dates(array: pa.Array) -> pl.Series:
    return pl.Series(date_texts(array))


def _timestamps(timestamp_format: TimestampText, array: pa.Array) -> pl.Series:
    texts = pl.Series(timestamp_format.texts(array))
    return texts + timestamp_format.suffix if timestamp_format.suffix else texts


_TO_TEXT: dict[type[DataType], ToText] = {BinaryType: base64_texts, DateType: _dates}
