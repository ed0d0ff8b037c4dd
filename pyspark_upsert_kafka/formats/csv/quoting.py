"""Which texts are quoted and how: the rules of Jackson's ``CsvEncoder``, so that bytes are Flink's.

It quotes a text that is longer than 24 UTF-16 units, or holds a character that is no greater than the
delimiter or the quote character, whichever is greater: with ``,`` and ``"`` every blank, ``#`` and
``+``. That is more than must be quoted, but for line breaks when both characters are smaller. Since
Jackson 2.14 a backslash counts too, unless there is an escape character.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from pyspark_upsert_kafka.formats.csv.dialect import Dialect
from pyspark_upsert_kafka.formats.text_columns import TextParts

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
