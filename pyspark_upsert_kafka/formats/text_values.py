"""Text to numbers, booleans and binary, exactly: nothing is truncated, wrapped or made infinite.

The rules are those of Flink's ``JsonParserToRowDataConverters`` and ``DecimalData``, but that what
Flink would make NULL or cut silently is an error here. Each function raises ValueError with what
was expected.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

import pyarrow as pa

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs write before a text in UTF-8: it is no part of the text, as for Flink's parsers."""

BLANK = "".join(map(chr, range(0x21)))
"""What Java's ``String.trim()`` takes away."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
# Room for 38 digits and one more from rounding, and for any exponent.
_EXACT = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_UP)
# Digits of the largest 64-bit integer; more must not even be spelled out, as in 1e999999999.
_INTEGER_DIGITS = 19
# base64 has groups of so many characters, of which so many may be padding.
_UNIT, _MOST_PADDING = 4, 2
_EXPECTED_BASE64 = "expected BINARY as base64 text"


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


def binary(text: str) -> bytes:
    """The bytes that a text spells in base64, as Jackson reads it (MIME-NO-LINEFEEDS): standard alphabet, padded, strict."""
    digits = text.rstrip("=")
    # Python takes more padding than there may be, and which of it depends on its version.
    if len(text) % _UNIT or len(text) - len(digits) > _MOST_PADDING or "=" in digits:
        raise ValueError(_EXPECTED_BASE64)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_EXPECTED_BASE64) from None


def binaries(texts: pa.Array) -> pa.Array:
    """A column of texts as binary, each as `binary` reads it."""
    import polars as pl  # few tables have such a column

    decoded = pl.Series(texts).str.decode("base64", strict=False)
    if decoded.null_count() != texts.null_count:
        raise ValueError(_EXPECTED_BASE64)
    return decoded.to_arrow().cast(pa.binary())


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
