"""Columns of text, kept in parts until a whole row is joined; encoders of text formats use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import EncodeError

TextParts: TypeAlias = "list[str | pl.Series]"
"""A column of texts in parts: constants and columns, which stand side by side in each text.

Joining costs the most, so it is done once, for the names, quotes and values of a whole row together.
"""


Written = TypeVar("Written")


def joined(parts: TextParts, count: int) -> pl.Series:
    """One column of ``count`` texts; null where one of the columns is."""
    columns = [pl.lit(part) if isinstance(part, str) else part for part in parts]
    if len(parts) == 1 and isinstance(parts[0], pl.Series):
        return parts[0]
    texts = pl.select(pl.concat_str(columns)).to_series()
    return texts if len(texts) == count else texts.new_from_index(0, count)


def as_binary(texts: pl.Series) -> pa.LargeBinaryArray:
    """Each text in UTF-8."""
    return texts.cast(pl.Binary).to_arrow()


def or_else(parts: TextParts, array: pa.Array, instead: str) -> TextParts:
    """The parts, with another text in the places where the array is null."""
    if not array.null_count:
        return parts
    texts = joined(parts, len(array))
    valid = pl.Series(array.is_valid())
    return [pl.select(pl.when(valid).then(texts).otherwise(pl.lit(instead))).to_series()]


def per_list(lists: pa.Array, texts: pl.Series) -> pl.Series:
    """The texts of the elements of some lists, as lists again; a null list has none."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    return pl.Series(pa.ListArray.from_arrays(offsets, texts.to_arrow()))


def quoted(texts: pl.Series, suffix: str = "") -> TextParts:
    """Texts in double quotes; none of them holds a character that needs an escape."""
    return ['"', texts, f'{suffix}"']


def naming_column(path: str, write: Callable[[pa.Array], Written]) -> Callable[[pa.Array], Written]:
    """The writer of a column, whose ValueErrors become EncodeErrors that name the column."""

    def named(array: pa.Array) -> Written:
        try:
            return write(array)
        except ValueError as why:
            raise EncodeError(path, str(why)) from None

    return named
