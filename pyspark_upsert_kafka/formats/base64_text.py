"""Binary as base64 text, as Jackson reads and writes it (MIME-NO-LINEFEEDS): standard alphabet, padded, strict."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import polars as pl


_UNIT, _MOST_PADDING = 4, 2
_EXPECTED = "expected BINARY as base64 text"


def binary(text: str) -> bytes:
    """The bytes that a text spells. Raises ValueError."""
    digits = text.rstrip("=")
    # Python takes more padding than there may be, and which of it depends on its version.
    if len(text) % _UNIT or len(text) - len(digits) > _MOST_PADDING or "=" in digits:
        raise ValueError(_EXPECTED)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_EXPECTED) from None


def binaries(texts: pa.Array) -> pa.Array:
    """A column of texts as binary. Raises ValueError when one is not plain base64."""
    decoded = _series(texts).str.decode("base64", strict=False)
    if decoded.null_count() != texts.null_count:
        raise ValueError(_EXPECTED)
    return decoded.to_arrow().cast(pa.binary())


def base64_texts(column: pa.Array) -> pl.Series:
    """A column of binary as texts."""
    return _series(column).bin.encode("base64")


def _series(array: pa.Array) -> pl.Series:
    import polars as pl  # what reads JSON imports this module, and few tables have such a column

    return pl.Series(array)
