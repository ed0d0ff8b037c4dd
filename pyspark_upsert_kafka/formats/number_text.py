"""Text to numbers and booleans, exactly, and decimals to text: nothing is truncated, wrapped or made infinite.

The rules are those of Flink's ``JsonParserToRowDataConverters`` and ``DecimalData``, but that what
Flink would make NULL or cut silently is an error here. Each function raises ValueError with what
was expected.
"""

from __future__ import annotations

import math
import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import polars as pl

BLANK = "".join(map(chr, range(0x21)))
"""What Java's ``String.trim()`` takes away."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# Room for 38 digits and one more from rounding, and for any exponent.
_EXACT = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_UP)
# Digits of the largest 64-bit integer; more must not even be spelled out, as in 1e999999999.
_INTEGER_DIGITS = 19
# Decimals that Java writes with an exponent: tiny ones, and whole ones that end in zeros.
_NEEDS_EXPONENT = r"^-?0\.0{6}|^-?\d+0$"


def integer(text: str, bits: int) -> int:
    """The integer that a number such as ``12``, ``12.0`` or ``1.2e1`` is; nothing is rounded."""
    limit = 1 << (bits - 1)
    value = _whole(text)
    if value is None or not -limit <= value < limit:
        raise ValueError(f"expected a whole number from {-limit} to {limit - 1}")
    return value


def integer_text(text: str, bits: int) -> int:
    """The integer that a text spells, in digits only, as Java's ``parseInt`` wants it."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("expected a whole number")
    return integer(text, bits)


def boolean(text: str) -> bool:
    """The boolean that a text spells, in any case."""
    lowered = text.strip(BLANK).lower()
    if lowered not in ("true", "false"):
        raise ValueError("expected true or false")
    return lowered == "true"


def double(text: str) -> float:
    """The nearest 64-bit float; the names of Java's non-finite ones are understood."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    return _finite(float(_checked(text)), "DOUBLE")


def single(text: str) -> float:
    """The nearest 32-bit float, rounded once, from the text.

    Rounding to 64 bits first and then to 32 can end one unit off.
    """
    if text in _SPECIAL:
        return _SPECIAL[text]
    digits = pa.scalar(_checked(text).lstrip("+"), pa.string())
    return _finite(float(digits.cast(pa.float32()).as_py()), "FLOAT")


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """The decimal, rounded half up to the scale, as Flink's ``DecimalData.fromBigDecimal`` does."""
    number = _exact(text)
    places = precision - scale
    if not _fits(number, places):
        raise ValueError(f"expected a DECIMAL({precision},{scale})")
    rounded = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if not _fits(rounded, places):
        raise ValueError(f"expected a DECIMAL({precision},{scale})")
    return rounded


def java_texts(decimals: pa.Array) -> pl.Series:
    """A column of decimals, each as `java_text` writes it, null where it is null."""
    import polars as pl  # what reads numbers imports this module, and has no use for it

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
    return str(Decimal(plain).normalize(_EXACT)) if Decimal(plain) else "0"


def _checked(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueError("expected a number")
    return text


def _exact(text: str) -> Decimal:
    try:
        return Decimal(_checked(text))
    except InvalidOperation:
        raise ValueError("expected a number with a sane exponent") from None


def _fits(number: Decimal, places: int) -> bool:
    return not number or number.adjusted() < places


def _finite(value: float, kind: str) -> float:
    if math.isinf(value):
        raise ValueError(f"out of range of {kind}")
    return value


def _whole(text: str) -> int | None:
    if _WHOLE.fullmatch(text) and len(text) < _INTEGER_DIGITS:
        return int(text)
    number = _exact(text)
    if number and number.adjusted() >= _INTEGER_DIGITS:
        return None
    return int(number) if number == number.to_integral_value() else None
