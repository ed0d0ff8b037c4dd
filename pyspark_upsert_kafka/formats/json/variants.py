"""Variants: any JSON value, in the two binary halves that Spark keeps.

PySpark's own ``VariantVal`` builds and takes them apart. Its ``toJson`` is not used: it escapes what
is not ASCII, rounds decimals to 28 digits and writes ``inf``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, localcontext
from typing import Any

from pyspark.sql.types import VariantVal

from pyspark_upsert_kafka.formats.json.document import (
    HALF,
    Number,
    compact,
    holds_half,
    too_deep,
)

DEEPEST_WRITTEN = 200
"""How deep a VARIANT may nest to be written, on every Python: PySpark takes up to four calls for each level, of a thousand."""

_EXACT = Context(prec=100)
_TOO_DEEP = (
    f"a VARIANT is nested too deep to be written as JSON: more than {DEEPEST_WRITTEN} levels"
)


def variant(value: Any) -> dict[str, bytes]:
    """A parsed JSON value as a variant's two halves. Raises ValueError."""
    if any(math.isinf(float(number)) for number in _numbers(value)):
        raise ValueError("expected numbers within the range of DOUBLE")
    text = compact(value)
    if holds_half(text):
        raise ValueError(HALF)
    try:
        built = VariantVal.parseJson(text)
    except RecursionError:
        raise ValueError("nested too deep for a VARIANT") from None
    return {"value": built.value, "metadata": built.metadata}


def variant_text(halves: dict[str, bytes]) -> str:
    """A variant as compact JSON. Raises ValueError when it is malformed, or nests too deep."""
    try:
        with localcontext(_EXACT):
            text = compact(VariantVal(halves["value"], halves["metadata"]).toPython())
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if too_deep(text.encode(), DEEPEST_WRITTEN):
        raise ValueError(_TOO_DEEP)
    return text


def _numbers(value: Any) -> Iterator[str]:
    if type(value) is Number:
        yield value
    elif type(value) is list or type(value) is dict:
        for item in value.values() if type(value) is dict else value:
            yield from _numbers(item)
