"""Columns of text that are put together late."""

from __future__ import annotations

from typing import TypeAlias

import polars as pl
import pyarrow as pa

Pieces: TypeAlias = "list[str | pl.Series]"
"""A column of texts, as what stands side by side in each: constants and columns.

Joining is what costs, so it waits: a row is joined once, its names, quotes and values together.
"""


def joined(pieces: Pieces, count: int) -> pl.Series:
    """One column of ``count`` texts; null where one of the columns is."""
    parts = [pl.lit(piece) if isinstance(piece, str) else piece for piece in pieces]
    if len(parts) == 1 and isinstance(parts[0], pl.Series):
        return parts[0]
    texts = pl.select(pl.concat_str(parts)).to_series()
    return texts if len(texts) == count else texts.new_from_index(0, count)


def or_else(pieces: Pieces, array: pa.Array, instead: str) -> Pieces:
    """The pieces, with another text in the places where the array is null."""
    if not array.null_count:
        return pieces
    texts = joined(pieces, len(array))
    valid = pl.Series(array.is_valid())
    return [pl.select(pl.when(valid).then(texts).otherwise(pl.lit(instead))).to_series()]


def quoted(texts: pl.Series, suffix: str = "") -> Pieces:
    """Texts as JSON strings, when nothing in them needs an escape."""
    return ['"', texts, f'{suffix}"']
