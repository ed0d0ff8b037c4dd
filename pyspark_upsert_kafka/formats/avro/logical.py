"""Logical types: which stand on which type, and when one is well-formed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.formats.avro.model import Logical

_STAND_ON = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
    "decimal": ("bytes", "fixed"),
}
"""Those that mean something here; ``duration``, for one, is a plain fixed."""


def logical_type(declared: Mapping[str, Any], kind: str, size: int = 0) -> Logical | None:
    """The logical type of a declaration; None when it has none, or an unknown or ill-formed one.

    The specification has readers ignore such a one and use the type it stands on.

    Args:
        declared: The declaration.
        kind: The type that it stands on.
        size: Number of bytes, of a fixed.
    """
    name = declared.get("logicalType")
    if not isinstance(name, str) or kind not in _STAND_ON.get(name, ()):
        return None
    if name == "uuid" and kind == "fixed" and size != 16:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision:
        return None
    if precision < 1 or (kind == "fixed" and precision > largest_precision(size)):
        return None
    return Logical(name, precision, scale)


def largest_precision(size: int) -> int:
    """How many digits, whichever they are, fit into so many bytes as two's complement."""
    return math.floor((8 * size - 1) * math.log10(2)) if size else 0
