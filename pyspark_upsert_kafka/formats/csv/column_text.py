"""Columns of simple types as text, each type in the spelling of ``RowDataToCsvConverters``."""

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
from pyspark_upsert_kafka.formats.number_text import java_texts
from pyspark_upsert_kafka.formats.simple_types import BITS
from pyspark_upsert_kafka.formats.text_columns import TextParts
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, date_texts

ToText = Callable[[pa.Array], pl.Series]
"""A column to its texts, null where it is null; raises ValueError."""

_BARE = BooleanType | DecimalType | DoubleType | FloatType
_IN_TIMESTAMPS = frozenset("0123456789-: .Z")
_IN_NUMBERS = frozenset("0123456789+-.eENaNInfinitytruefalse")


def to_text(kind: DataType, dialect: Dialect) -> ToText:
    """How a simple type is spelled."""
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


_LONG = 24
_TWO_UNITS = r"[\x{10000}-\x{10FFFF}]"

Quote = Callable[[pl.Series], TextParts]
"""Texts to fields; null stays null. Raises ValueError for what cannot be written without quotes."""


def quoter(dialect: Dialect) -> Quote:
    """Compiles the function from texts to fields."""
    special = "".join(map(_class_of, dialect.special))
    if dialect.quote is None:
        return _refusing(f"[{special}]")
    highest = _class_of(max(dialect.delimiter, dialect.quote))
    backslash = _class_of("\\") if dialect.escape is None else ""
    return _quoting(rf"[\x00-{highest}{special}{backslash}]", dialect.quote, dialect.escape)


def _class_of(character: str) -> str:
    """A character as it stands in a class of a regular expression."""
    return rf"\x{{{ord(character):x}}}"


def _refusing(special: str) -> Quote:
    def fields(texts: pl.Series) -> TextParts:
        if texts.str.contains(special).any():
            raise ValueError(
                "it holds a character that needs quotes, and 'disable-quote-character' is set"
            )
        return [texts]

    return fields


def _quoting(special: str, quote: str, escape: str | None) -> Quote:
    doubled = [quote] if escape in (None, quote) else [quote, str(escape)]

    def fields(texts: pl.Series) -> TextParts:
        needed = _needed(texts, special)
        if not needed.any():
            return [texts]
        inner = texts
        for character in doubled:
            inner = inner.str.replace_all(character, character * 2, literal=True)
        if needed.all():
            return [quote, inner, quote]
        enclosed = pl.concat_str(pl.lit(quote), inner, pl.lit(quote))
        return [pl.select(pl.when(needed).then(enclosed).otherwise(texts)).to_series()]

    return fields


def _needed(texts: pl.Series, special: str) -> pl.Series:
    found = texts.str.contains(special)
    units = texts.str.len_bytes()
    if not (units > _LONG).any():
        return found
    characters = texts.str.len_chars()
    if not (units == characters).all():
        characters = characters + texts.str.count_matches(_TWO_UNITS)
    return found | (characters > _LONG)
