"""Columns as texts, for encoders of text formats: how Java spells numbers, base64, and the joining of a row's parts.

How texts are read: ``text_values.py``. This is a module of its own, since tasks that only read do without polars.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, TypeAlias, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import EncodeError

TextParts: TypeAlias = "list[str | pl.Series]"
"""A column of texts in parts: constants and columns, which stand side by side in each text.

Joining costs the most, so it is done once, for the names, quotes and values of a whole row together.
"""

_Written = TypeVar("_Written")

# Room for 38 digits, and for any exponent.
_ANY_EXPONENT = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)
# Decimals that Java writes with an exponent: tiny ones, and whole ones that end in zeros.
_NEEDS_EXPONENT = r"^-?0\.0{6}|^-?\d+0$"
_INFINITIES = {"inf": "Infinity", "-inf": "-Infinity"}
# The powers of ten that a number may have as its first digit's.
_POWERS: dict[Any, tuple[int, Any]] = {
    pl.Float32: (-45, np.array([f"1e{power}" for power in range(-45, 39)], np.float32)),
    pl.Float64: (-324, np.array([f"1e{power}" for power in range(-324, 309)], np.float64)),
}
# Below this the gaps between numbers are so wide that one digit may tell a number apart.
_TINY: dict[Any, float] = {pl.Float32: 100 * 2.0**-149, pl.Float64: 100 * 2.0**-1074}


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


def per_list(lists: pa.Array, texts: pl.Series) -> pl.Series:
    """The texts of the elements of some lists, as lists again; a null list has none."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    return pl.Series(pa.ListArray.from_arrays(offsets, texts.to_arrow()))


def naming_column(
    path: str, write: Callable[[pa.Array], _Written]
) -> Callable[[pa.Array], _Written]:
    """The writer of a column, whose ValueErrors become EncodeErrors that name the column."""

    def named(array: pa.Array) -> _Written:
        try:
            return write(array)
        except ValueError as why:
            raise EncodeError(path, str(why)) from None

    return named


def base64_texts(column: pa.Array) -> pl.Series:
    """A column of binary as texts: the standard alphabet, padded."""
    return pl.Series(column).bin.encode("base64")


def java_texts(decimals: pa.Array) -> pl.Series:
    """A column of decimals, each as `java_text` writes it, null where it is null."""
    texts = pl.Series(decimals).cast(pl.String)
    if decimals.type.scale:
        texts = texts.str.strip_chars_end("0").str.strip_chars_end(".")
    with_exponent = texts.str.contains(_NEEDS_EXPONENT).fill_null(value=False)
    if with_exponent.any():
        texts = texts.scatter(
            with_exponent.arg_true(), [java_text(text) for text in texts.filter(with_exponent)]
        )
    return texts


def java_text(plain: str) -> str:
    """A decimal as Java's ``BigDecimal.stripTrailingZeros().toString()`` writes it.

    >>> java_text("123.4500"), java_text("100"), java_text("0.000000027"), java_text("0.00")
    ('123.45', '1E+2', '2.7E-8', '0')
    """
    return str(Decimal(plain).normalize(_ANY_EXPONENT)) if Decimal(plain) else "0"


def float_texts(array: pa.Array) -> pl.Series:
    """The texts of a column of FLOAT or DOUBLE in the spelling of ``Double.toString`` and ``Float.toString``, null where it is null.

    Digits: as few as tell the number apart from its neighbours, as in Java 19 and newer. Layout: from 0.001
    to below ten million ``12.5``, else ``1.25E7``; always at least one digit behind the point.

    >>> float_texts(pa.array([12.5, 12500000, -0.00125, float("inf")])).to_list()
    ['12.5', '1.25E7', '-0.00125', 'Infinity']
    """
    numbers: pl.Series = pl.Series(array)
    texts = numbers.cast(pl.String)
    sizes = numbers.abs()
    scientific = ((sizes < 1e-3) & (sizes > 0)) | (sizes >= 1e7)  # NaN is the greatest of all
    if not scientific.any():
        return texts
    finite = numbers.is_finite()
    scientific = scientific & finite
    if scientific.all() and not scientific.null_count():
        return _scientific(numbers, texts)
    at = scientific.fill_null(value=False).arg_true()
    texts = texts.scatter(at, _scientific(numbers.gather(at), texts.gather(at)))
    return texts if finite.all() else texts.replace(_INFINITIES)


def _scientific(numbers: pl.Series, texts: pl.Series) -> pl.Series:
    """The texts that Java writes with an exponent."""
    if texts.str.contains("e", literal=True).any():
        texts = texts.str.split_exact("e", 1).struct.field("field_0")
    digits = texts.str.replace(".", "", literal=True).str.strip_chars_start("-0")
    digits = digits.str.strip_chars_end("0")
    first, others = digits.str.head(1), digits.str.slice(1)
    negative, lone = numbers < 0, others == ""
    if negative.any():
        first = _where(negative, "-" + first, first)
    if lone.any():
        others = _where(lone, "0", others)
    made = joined([first, ".", others, "E", _exponents(numbers).cast(pl.String)], len(numbers))
    return _with_two_digits(numbers, made, lone)


def _where(condition: pl.Series, then: pl.Series | str, otherwise: pl.Series) -> pl.Series:
    chosen = pl.lit(then) if isinstance(then, str) else then
    return pl.select(pl.when(condition).then(chosen).otherwise(otherwise)).to_series()


def _exponents(numbers: pl.Series) -> pl.Series:
    least, powers = _POWERS[type(numbers.dtype)]
    return pl.Series(np.searchsorted(powers, numbers.abs().to_numpy(), side="right") - 1 + least)


def _with_two_digits(numbers: pl.Series, texts: pl.Series, lone: pl.Series) -> pl.Series:
    """Java writes the nearest number of two digits where one digit would do: 4.9E-324, not 5E-324."""
    at = (lone & (numbers.abs() < _TINY[type(numbers.dtype)])).arg_true()
    if not len(at):
        return texts
    halves = [f"{number:.1e}".split("e") for number in numbers.gather(at).to_list()]
    return texts.scatter(at, [f"{digits}E{int(power)}" for digits, power in halves])
