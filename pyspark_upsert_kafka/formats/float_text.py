"""Columns of floats as text, in the spelling of Java's ``Double.toString`` and ``Float.toString``.

Digits: as few as tell the number apart from its neighbours, as in Java 19 and newer. Layout: from 0.001
to below ten million ``12.5``, else ``1.25E7``; always at least one digit behind the point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.text_columns import joined

_INFINITIES = {"inf": "Infinity", "-inf": "-Infinity"}
# The powers of ten that a number may have as its first digit's.
_POWERS: dict[Any, tuple[int, Any]] = {
    pl.Float32: (-45, np.array([f"1e{power}" for power in range(-45, 39)], np.float32)),
    pl.Float64: (-324, np.array([f"1e{power}" for power in range(-324, 309)], np.float64)),
}
# Below this the gaps between numbers are so wide that one digit may tell a number apart.
_TINY: dict[Any, float] = {pl.Float32: 100 * 2.0**-149, pl.Float64: 100 * 2.0**-1074}


def float_texts(array: pa.Array) -> pl.Series:
    """The texts of a column of FLOAT or DOUBLE, null where it is null.

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


def key_float_texts(array: pa.Array) -> pl.Series:
    """The texts of floats in a key: -0.0 equals 0.0, so both have one text."""
    return float_texts(pc.add(array, pa.scalar(0.0, array.type)))


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
